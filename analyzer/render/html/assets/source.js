// The source around a line, with the time of each line beside it.

const AROUND = 6;

class SourceView {
  constructor(state, byPlace) {
    this.state = state;
    this.byPlace = byPlace;
    this.strings = new Map();
  }

  has(file) {
    return this.state.data.sources.has(file);
  }

  whole(file) {
    const lines = this.state.data.sources.get(file);
    return lines && lines.size === Math.max(...lines.keys());
  }

  // The lines around `line`, or all that are known.
  show(file, line, all = false) {
    const known = this.state.data.sources.get(file);
    if (!known) return el("div", { class: "empty" }, "The source text of this file is not in the report.");
    const numbers = all ? [...known.keys()] : [];
    if (!all) for (let number = line - AROUND; number <= line + AROUND; number++) if (known.has(number)) numbers.push(number);
    if (!numbers.length) return el("div", { class: "empty" }, "The file has no such line: it may have changed while the program ran.");
    const values = new Map();
    for (const number of numbers) {
      const row = this.byPlace.get(`${file}:${number}`);
      if (row !== undefined) values.set(number, measure(this.state.data.lines, row, this.state));
    }
    const longest = Math.max(1, ...[...values.values()].map((each) => each.cpu));
    const indent = all ? 0 : Math.min(...numbers.map((number) => known.get(number)).filter((text) => text.trim()).map((text) => text.length - text.trimStart().length));
    if (!this.strings.has(file)) this.strings.set(file, strings(known));
    const open = this.strings.get(file);
    const rows = [];
    let previous = null;
    for (const number of numbers) {
      if (previous !== null && number !== previous + 1) rows.push(el("tr", { class: "gap" }, el("td", { colspan: 4 }, "⋯")));
      rows.push(this.row(number, coloured(codePieces(known.get(number).slice(Number.isFinite(indent) ? indent : 0), open.get(number))), values.get(number), longest, number === line));
      previous = number;
    }
    const box = el("div", { class: "source", tabindex: "0", role: "region", "aria-label": `Source of ${file}` }, el("table", {}, el("tbody", {}, rows)));
    if (all) requestAnimationFrame(() => { const here = box.querySelector(".here"); if (here) box.scrollTop = here.offsetTop - box.clientHeight / 2; });
    return box;
  }

  row(number, text, values, longest, here) {
    const spent = values && values.cpu > 0;
    const wait = values && values.wait > this.state.length * NS * 0.001 ? `${shortWait(values.wait)} wait` : "";
    const line = el("tr", { class: here ? "here" : "" },
      el("td", { class: "g" }, spent && bar(values, longest)),
      el("td", { class: "v" }, spent ? [percent(values.share), wait && " ", wait && el("small", {}, wait)] : wait),
      el("td", { class: "n" }, number),
      el("td", {}, text.length ? text : " "));
    if (values) tip(line, () => facts(`line ${number}`, exact(values, this.state)));
    return line;
  }
}

const shortWait = (ns) => seconds(ns / NS).replace(" ", "");
