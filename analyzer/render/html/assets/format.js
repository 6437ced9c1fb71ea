// Numbers as people read them; the same as analyzer/report_data/numbers.py. null and NaN are unknown: "?".

const unknown = (value) => value === null || value === undefined || Number.isNaN(value);

// As toFixed, but a value exactly between two texts takes the even digit, as Python's formats have it.
function fixed(value, digits) {
  const size = Math.abs(value);
  const scaled = size * 10 ** digits;
  const between = scaled % 1 === 0.5 && /^50*$/.test(size.toFixed(100).split(".")[1].slice(digits));
  if (!between) return value.toFixed(digits);
  const below = Math.floor(scaled);
  return ((Math.sign(value) * (below + (below % 2))) / 10 ** digits).toFixed(digits);
}

// About `digits` significant digits of what is at least 1, without an exponent and without zeros behind the point.
const short = (value, digits) => String(Number(fixed(value, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))))));

function seconds(value) {
  if (unknown(value)) return "?";
  if (value === 0) return "0 s";
  if (value < 0.0995) return value >= 0.001 ? `${short(value * 1e3, 3)} ms` : `${fixed(value * 1e6, 0)} µs`;
  if (value < 9.95) return `${fixed(value, 2)} s`;
  if (value < 119.5) return `${fixed(value, 1)} s`;
  const whole = Number(fixed(value, 0));
  const minutes = Math.floor(whole / 60);
  if (minutes < 120) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

// A moment on an axis whose ticks are `step` seconds apart.
function moment(value, step) {
  if (step >= 3600) return `${Math.round(value / 3600)} h`;
  if (step >= 60) {
    const minutes = Math.round(value / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")} h`;
  }
  const digits = step >= 1 ? 0 : Math.min(4, Math.ceil(-Math.log10(step)));
  return `${value.toFixed(digits)} s`;
}

function percent(share) {
  if (unknown(share)) return "?";
  if (share < 0.0005) return "";
  return share >= 0.9995 ? "100" : fixed(share * 100, 1);
}

// Half the width of an interval of shares, in percentage points.
function margin(low, high) {
  if (unknown(low) || unknown(high)) return "";
  const half = (high - low) * 50;
  return half < 9.95 ? `±${fixed(half, 1)}` : `±${fixed(half, 0)}`;
}

function bytes(count) {
  if (unknown(count)) return "?";
  const size = Math.abs(count);
  if (size < 999.5) return `${fixed(count, 0)} B`;
  const units = ["KB", "MB", "GB", "TB", "PB"];
  let value = count;
  let unit = "";
  for (unit of units) {
    value /= 1000;
    if (Math.abs(value) < 999.5) break;
  }
  return `${short(value, 3)} ${unit}`;
}

// About three digits with a letter: 812, 1.2k, 35M.
function shortCount(value) {
  if (unknown(value)) return "?";
  if (value < 9999.5) return fixed(value, 0);
  let unit = "";
  for (unit of ["k", "M", "G", "T"]) {
    value /= 1000;
    if (value < 999.5) break;
  }
  return `${fixed(value, value < 99.95 ? 1 : 0)}${unit}`;
}

// A time of any length: 41 ns, 1.3 µs, 250 ms; calls are much shorter than what else a page tells of.
function shortTime(value) {
  if (unknown(value)) return "?";
  for (const [limit, scale, unit] of [[9.995e-7, 1e9, "ns"], [9.995e-4, 1e6, "µs"], [0.9995, 1e3, "ms"]]) {
    if (value < limit) return `${fixed(value * scale, value > 0 && value * scale < 9.95 ? 1 : 0)} ${unit}`;
  }
  return seconds(value);
}

// The end of a path: the name of the file where no other of the tables has it (`nameFiles` looks), else its folder too.
const UNIQUE = new Set();

function shortPath(path) {
  if (path.startsWith("<")) return path;
  const parts = path.split("/");
  return parts.slice(UNIQUE.has(path) ? -1 : -2).join("/");
}

function nameFiles(paths) {
  const holders = new Map();
  for (const path of new Set(paths)) {
    const name = path.split("/").pop();
    holders.set(name, (holders.get(name) || []).concat(path));
  }
  for (const [name, [path, ...others]] of holders) if (!others.length && !name.startsWith("__")) UNIQUE.add(path);
}

const count = (number) => number.toLocaleString("en-US");

// Wilson's score interval of a share of `samples` equal samples, as intervals.py has it.
function wilson(share, samples) {
  if (!(samples > 0) || unknown(share)) return [NaN, NaN];
  const z = 1.959963984540054;
  const p = Math.min(1, Math.max(0, share));
  const square = (z * z) / samples;
  const centre = p + square / 2;
  const reach = z * Math.sqrt((p * (1 - p)) / samples + square / (4 * samples));
  const low = p <= 0 ? 0 : (centre - reach) / (1 + square);
  const high = p >= 1 ? 1 : (centre + reach) / (1 + square);
  return [Math.max(0, low), Math.min(1, high)];
}

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
