// What all pages have around their parts: the choice of colours, links to the parts, the search.

function showThemes() {
  const store = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("tachograph-theme");
      localStorage.setItem("tachograph-theme", value);
    } catch {
      // Pages opened from a file may have no storage; then the choice lasts as long as the page.
    }
    return null;
  };
  const apply = (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  };
  // In a notebook "auto" is what the notebook looks like, which it tells; a sandbox hides it from the page.
  let around = "auto";
  const known = ["light", "dark"].includes(store()) ? store() : "auto";
  let chosen = known;
  const show = () => apply(chosen === "auto" ? around : chosen);
  show();
  addEventListener("message", (event) => {
    if (event.source !== parent || parent === window || !["light", "dark"].includes(event.data?.tachographTheme)) return;
    around = event.data.tachographTheme;
    show();
  });
  byId("theme").replaceChildren(...choice("Colours", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], known, (value) => {
    chosen = value;
    show();
    store(value);
  }).children);
}

function showNavigation() {
  const links = [...document.querySelectorAll("main > section, #about")].filter((part) => part.querySelector("h2"));
  byId("nav").replaceChildren(...links.map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
}

// `/` leads into the search, Escape empties it; `search` is told what is wanted.
function followSearch(search) {
  const input = byId("search");
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => search(input.value.trim()), 120);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    input.value = "";
    search("");
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

// Begins a page with its data; `make` draws it, and returns the function that a search is handed to.
function openPage(make, kind = "page") {
  const begin = async () => {
    showThemes();
    const parts = await unpack();
    byId("bar").hidden = false;
    byId("main").hidden = false;
    followSearch(make(...parts));
    document.documentElement.dataset.ready = "yes";
  };
  begin().catch((error) => {
    byId("main").hidden = false;
    byId("lines").replaceChildren(el("p", { class: "empty" }, `This browser cannot show the ${kind} (${error.message}). Browsers from 2023 on can.`));
    throw error;
  });
}
