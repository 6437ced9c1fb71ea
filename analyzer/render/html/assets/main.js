// Starts everything, and what belongs to no single part: addresses.

function followAddresses(views) {
  const follow = () => {
    const told = readAddress(location.hash);
    if (!told || (told.file && document.getElementById(told.file) && told.line === null)) return;
    if (told.window) {
      const { start, width, count: spans } = views.state.data.bins;
      const [low, high] = told.window.map((at) => Math.max(0, Math.min(spans, Math.round((at - start) / width))));
      if (low < high) views.state.change({ from: low, to: high });
    }
    if (told.file && !views.places.reveal(told.file, told.line)) say("That line has no time in this window");
  };
  addEventListener("hashchange", follow);
  // The same link, clicked again, brings its line back into view.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) follow();
  });
  follow();
}

async function start() {
  showThemes();
  const [doc, block] = await unpack();
  byId("bar").hidden = false;
  byId("main").hidden = false;
  const views = new Views(doc, block);
  followSearch((search) => views.state.change({ search }));
  const measureBar = () => document.documentElement.style.setProperty("--bar", `${byId("bar").offsetHeight + 12}px`);
  addEventListener("resize", measureBar);
  measureBar();
  followAddresses(views);
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("main").hidden = false;
  byId("lines").replaceChildren(el("p", { class: "empty" }, `This browser cannot show the report (${error.message}). Browsers from 2023 on can.`));
  throw error;
});
