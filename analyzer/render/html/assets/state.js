// What the reader has chosen: a window of time (spans from..to), a moment (the end of a span), a search, how tables are sorted; and who wants to know.

class State {
  constructor(data) {
    this.data = data;
    this.from = 0;
    this.to = data.bins.count;
    this.moment = null;
    this.search = "";
    this.view = null;
    this.sort = null;
    this.listeners = [];
    this.changed = () => {};
  }

  listen(listener) {
    this.listeners.push(listener);
  }

  change(changes) {
    const before = { from: this.from, to: this.to, moment: this.moment, search: this.search };
    Object.assign(this, changes);
    const changed = Object.keys(before).filter((name) => before[name] !== this[name]);
    if (!changed.length) return;
    this.listeners.forEach((listener) => listener(changed));
    this.changed();
  }

  // The table of lines is sorted by another column, or as at first.
  sortedBy({ id, down }, first) {
    this.sort = id === first && down ? null : `${id}${down ? "" : ".up"}`;
    this.changed();
  }

  // What an address has beside a place and a window: the names are those of readAddress.
  get settings() {
    return { view: this.view, search: this.search || null, sort: this.sort };
  }

  get whole() {
    return this.from === 0 && this.to === this.data.bins.count;
  }

  get start() {
    return this.data.bins.start + this.from * this.data.bins.width;
  }

  get end() {
    return this.data.bins.start + this.to * this.data.bins.width;
  }

  // The seconds of a moment, that chosen or another.
  at(moment = this.moment) {
    return this.data.bins.start + moment * this.data.bins.width;
  }

  get length() {
    return (this.to - this.from) * this.data.bins.width;
  }

  // Nanoseconds, samples ... of everything in the window; null if it was not recorded.
  overall(name) {
    const values = this.data.overall[name];
    return values ? values.sum(0, this.from, this.to) : null;
  }

  // CPU time in the window, in ns.
  get cpu() {
    return CPU.reduce((sum, name) => sum + (this.overall(name) || 0), 0);
  }

  // How many equal samples would tell as much as those of the window (Kish).
  get effective() {
    const weight = this.overall("weight") || 0;
    const squared = this.overall("weight_squared") || 0;
    return squared > 0 ? (weight * weight) / squared : 0;
  }

  // Why a table has no rows.
  get nothing() {
    return this.search ? `Nothing matches “${this.search}”${this.whole ? "" : " in this window"}.` : "Nothing here in this window.";
  }

  matches(...texts) {
    const wanted = this.search.toLowerCase();
    return !wanted || texts.some((text) => text && text.toLowerCase().includes(wanted));
  }
}

// The address of a line, of a window, and of what else was chosen: #/srv/app.py:12@1.5-3.25&search=smooth&sort=wait
function address(file, line, state) {
  const place = file === null ? "" : `${encodeURIComponent(file).replaceAll("%2F", "/")}${line === null ? "" : `:${line}`}`;
  const window_ = state.whole ? "" : `@${Number(state.start.toFixed(6))}-${Number(state.end.toFixed(6))}`;
  const settings = Object.entries(state.settings).filter(([, value]) => value !== null).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`);
  return `#${place}${window_}${settings.join("")}`;
}

// A link to a place where the table of lines has any of its file; elsewhere (a library's, out of scope) its name alone.
function placeLink(file, line, state, attributes = {}) {
  const text = `${shortPath(file)}:${line ?? "?"}`;
  const there = state.data.lines.columns.file.includes(file);
  return there ? el("a", { ...attributes, href: address(file, line, state) }, text) : el("span", attributes, text);
}

function readAddress(hash) {
  const match = /^#([^&]*?)(?::(\d+))?(?:@(-?[\d.]+)-(-?[\d.]+))?((?:&[a-z]+=[^&]*)*)$/.exec(hash);
  if (!match || !hash) return null;
  let file = null;
  let settings = {};
  try {
    file = decodeURIComponent(match[1]) || null;
    settings = Object.fromEntries(match[5].split("&").slice(1).map((each) => each.split("=").map(decodeURIComponent)));
  } catch {
    return null;
  }
  return {
    file,
    line: match[2] ? Number(match[2]) : null,
    window: match[3] === undefined ? null : [Number(match[3]), Number(match[4])],
    settings,
  };
}

// What is shown: the answer that was asked for, or one of those beside it (another scope, one thread, one process).

const ALWAYS = ["lines", "functions", "files", "suggestions", "threads"]; // sections that every answer may have
const KINDS = { scope: "whose lines are charged", thread: "one thread", process: "one process", span: "one name of spans" };

class Views {
  constructor(doc, block) {
    this.block = block;
    const { names, views, meaning, measures, sections, sort } = doc;
    const generated = new Set(doc.generated.map((number) => names[number]));
    this.shared = { names, meaning, measures, sections, sort, generated, sources: sources(doc) };
    this.documents = [doc, ...views.map((view) => view.document)];
    nameFiles(filesOf(this.documents, names));
    this.choice = byId("view");
    this.labels = ["everything", ...views.map((view) => view.label)];
    this.spans = new Map(views.flatMap((view, place) => (view.kind === "span" ? [[view.label, place + 1]] : [])));
    this.changed = () => {};
    byId("views").hidden = !views.length;
    const option = (view, place) => el("option", { value: place + 1 }, view.label);
    const groups = Object.keys(KINDS).filter((kind) => views.some((view) => view.kind === kind));
    this.choice.replaceChildren(el("option", { value: 0 }, "everything"),
      ...groups.map((kind) => el("optgroup", { label: KINDS[kind] }, views.map((view, place) => view.kind === kind && option(view, place)))));
    this.choice.addEventListener("change", () => this.show(Number(this.choice.value)));
    this.show(0);
  }

  // Draws everything anew; the window and the search stay.
  show(number) {
    const before = this.state;
    this.state = new State(load({ ...this.documents[number], ...this.shared }, this.block));
    if (before && before.data.bins.count === this.state.data.bins.count) Object.assign(this.state, { from: before.from, to: before.to });
    if (before) this.state.search = before.search;
    this.state.view = number ? this.labels[number] : null;
    this.state.changed = () => this.changed();
    document.querySelectorAll("main > section").forEach((part) => part.replaceChildren());
    const parts = Object.keys(this.shared.sections).filter((name) => byId(name) && !ALWAYS.includes(name));
    for (const name of parts) byId(name).hidden = true;
    if (before) showHead(this.state.data.head);
    new Timeline(this.state);
    showSuggestions(this.state);
    this.places = new Places(this.state);
    if (before && before.sort) this.sortLines(before.sort);
    new FlameGraph(this.state);
    showMemory(this.state);
    showTables(this.state);
    new Threads(this.state);
    if (this.state.data.spans) new Spans(this.state, this);
    showNavigation();
    if (before) say(`Showing ${this.choice.selectedOptions[0].textContent}`);
    this.changed();
  }

  // Sorts the lines as an address says: "wait", or "wait.up" for the smallest first.
  sortLines(sort) {
    this.places.lines.sortBy(sort.replace(/\.up$/, ""), !sort.endsWith(".up"));
  }

  // Shows the answer of that label, if there is one.
  choose(label) {
    const number = this.labels.indexOf(label);
    if (number < 0 || label === (this.state.view ?? this.labels[0])) return;
    this.chooseNumber(number);
  }

  chooseNumber(number) {
    this.choice.value = String(number);
    this.show(number);
  }

  // The name of spans, which shows their time alone when it is clicked, and everything when it is clicked again.
  spanName(name) {
    const number = this.spans.get(name);
    if (number === undefined) return name;
    const chosen = Number(this.choice.value) === number;
    return el("button", { type: "button", class: "name", title: chosen ? "Show everything" : `Show “${name}” alone`, "aria-pressed": String(chosen),
      onclick: () => this.chooseNumber(chosen ? 0 : number) }, name);
  }
}

// The figures at the top and the division of the CPU time, as templates/report.html.j2 has them.
function showHead({ figures, split }) {
  byId("figures").replaceChildren(...figures.map(({ label, value, hint }) =>
    el("div", {}, el("dt", {}, label), el("dd", {}, el("b", {}, value), el("small", {}, hint)))));
  const box = byId("split");
  if (!box) return;
  box.hidden = !split.length;
  box.querySelector("svg").replaceChildren(...split.filter(({ kind }) => kind).map(({ kind, name, share, x, width }) =>
    svg("rect", { class: `fill-${kind}`, x, y: 0, width, height: 1 }, svg("title", {}, `${name} ${share}`))));
  box.querySelector("figcaption").replaceChildren(...split.map(({ kind, name, share, time }) =>
    el("span", {}, kind && key(kind), name, " ", el("b", {}, share), ` ${time}`)));
}
