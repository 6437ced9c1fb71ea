// What is shown: the answer that was asked for, or one of those beside it (another scope, one thread, one process).

const KINDS = { scope: "whose lines are charged", thread: "one thread", process: "one process" };

class Views {
  constructor(doc, block) {
    this.block = block;
    const { names, views, meaning, sort } = doc;
    const generated = new Set(doc.generated.map((number) => names[number]));
    this.shared = { names, meaning, sort, generated, sources: sources(doc) };
    this.documents = [doc, ...views.map((view) => view.document)];
    nameFiles(filesOf(this.documents, names));
    this.choice = byId("view");
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
    document.querySelectorAll("main > section").forEach((part) => part.replaceChildren());
    for (const part of ["processes", "redundancies", "spans"]) byId(part).hidden = true;
    if (before) showHead(this.state.data.head);
    new Timeline(this.state);
    showSuggestions(this.state);
    this.places = new Places(this.state);
    new FlameGraph(this.state);
    showMemory(this.state);
    showRedundancies(this.state);
    showProcesses(this.state);
    new Threads(this.state);
    if (this.state.data.spans) new Spans(this.state);
    showNavigation();
    if (before) say(`Showing ${this.choice.selectedOptions[0].textContent}`);
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
