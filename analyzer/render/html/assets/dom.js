// Elements. Text from the recording only ever passes through text nodes and attributes, never through markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, text]) => element.style.setProperty(key, text));
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);
const key = (kind) => el("i", { class: `key back-${kind}` });

// Says something to those who listen instead of looking.
function say(text) {
  byId("said").textContent = text;
}

// A row of buttons of which one is pressed.
function choice(label, options, chosen, pick) {
  const buttons = options.map(([value, text]) =>
    el("button", { type: "button", "data-value": value, "aria-pressed": String(value === chosen), onclick: () => {
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === value)));
      pick(value);
    } }, text));
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

// One tooltip for the whole page: `content` makes what it shows, when it is shown.
function tip(element, content) {
  const box = byId("tip");
  const place = (x, y) => {
    const width = box.offsetWidth;
    const height = box.offsetHeight;
    box.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - width - 8))}px`;
    box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  };
  const show = (x, y) => {
    const made = content();
    if (!made) return;
    box.replaceChildren(made);
    box.hidden = false;
    place(x, y);
  };
  element.addEventListener("pointerenter", (event) => show(event.clientX, event.clientY));
  element.addEventListener("pointermove", (event) => box.hidden || place(event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => { box.hidden = true; });
  element.addEventListener("focus", () => {
    if (!element.matches(":focus-visible")) return;
    const at = element.getBoundingClientRect();
    show(at.left, at.bottom - 12);
  });
  element.addEventListener("blur", () => { box.hidden = true; });
}

// A tooltip's title and rows of [name, value, note].
function facts(title, rows) {
  const body = rows.filter(Boolean).map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))));
  return el("div", {}, title && el("h4", {}, title), el("table", {}, el("tbody", {}, body)));
}

function section(id, title, hint, ...tools) {
  const box = byId(id);
  box.replaceChildren(el("div", { class: "title" }, el("h2", { id: `${id}-title` }, title), el("span", { class: "hint" }, hint), tools));
  return box;
}
