// The table of lines, and those of functions and files.

class Places {
  constructor(state) {
    this.state = state;
    this.data = state.data;
    const { file, line } = this.data.lines.columns;
    // Samples cannot tell what is less than a thousandth of the peak.
    this.least = this.data.memory ? Math.max(1, this.data.memory.peak / 1000) : 1;
    this.byPlace = new Map(file.map((path, row) => [`${path}:${line[row]}`, row]));
    this.source = new SourceView(state, this.byPlace);
    const memory = this.data.recorded.has("allocated");
    const copies = this.data.recorded.has("copied");
    const nothing = () => state.nothing;
    const first = this.firstSort();
    this.lines = new Table({ label: this.data.sections.lines.title, columns: this.columns("lines", memory, copies), sort: first, matters: (row) => this.matters(row), open: (row) => this.detail(row), nothing });
    this.functions = new Table({ label: this.data.sections.functions.title, columns: this.columns("functions", memory, copies), sort: "total", first: 15, matters: (row) => this.matters(row), nothing });
    this.files = new Table({ label: this.data.sections.files.title, columns: this.columns("files", memory, copies), sort: this.firstSort(), first: 12, matters: (row) => this.matters(row), nothing });
    for (const name of ["lines", "functions", "files"]) {
      const { title, hint } = this.data.sections[name];
      section(name, title, name === "lines" ? `${this.data.charged} ${hint}` : hint).append(this[name].element);
    }
    state.listen(() => this.show());
    this.lines.sorted = () => state.sortedBy(this.lines.sort, first);
    this.show();
  }

  // As the page was asked for (--sort), where there is such a column. A column's `sort` is its name there, if not its id.
  firstSort() {
    const asked = this.columns("lines", this.data.recorded.has("allocated"), this.data.recorded.has("copied")).find((column) => (column.sort || column.id) === this.data.sort);
    if (asked && asked.id !== "cpu") return asked.id;
    const ids = [this.state.cpu > 0 && "cpu", this.data.recorded.has("wait") && "wait", this.data.recorded.has("allocated") && "allocated"];
    return ids.find(Boolean) || "cpu";
  }

  rows(name) {
    const part = this.data[name];
    const columns = part.columns;
    const rows = [];
    for (let row = 0; row < part.count; row++) {
      const file = columns.file ? columns.file[row] : null;
      const label = columns.function ? columns.function[row] : file;
      const line = columns.line ? columns.line[row] : null;
      if (!this.state.matches(file, label, this.text(name, file, line))) continue;
      const values = measure(part, row, this.state);
      // What rounds to nothing in every column is no row.
      const some = values.share >= 0.0005 || values.total_share >= 0.0005 || values.wait > 5e5 || values.allocated > 0 || values.copied > 0;
      const held = this.state.whole && columns.peak_bytes && columns.peak_bytes[row] >= this.least;
      const then = this.state.moment !== null && part.own.sum("net", row, 0, this.state.moment) >= this.least;
      const called = this.state.whole && columns.calls_low && columns.calls_low[row] > 0;
      if (some || held || then || called) rows.push({ id: row, order: row, file, label, line, values, part });
    }
    return rows;
  }

  // Whether a row has a number worth reading: a thousandth of the time, a hundredth of the memory.
  matters({ values, part, id }) {
    const peak = this.state.whole && part.columns.peak_bytes ? part.columns.peak_bytes[id] : 0;
    return values.share >= 0.001 || values.total_share >= 0.001 || values.wait >= this.state.length * NS * 0.001
      || peak >= this.least * 10 || values.allocated >= 0.01 * (this.state.overall("allocated") || Infinity) || values.copied >= 0.01 * (this.state.overall("copied") || Infinity);
  }

  text(name, file, line) {
    const known = name === "lines" && file !== null && this.data.sources.get(file);
    return known ? known.get(line) : null;
  }

  columns(name, memory, copies) {
    const part = this.data[name];
    const largest = (pick) => Math.max(1, ...(this.current[name] || []).map((row) => pick(row) || 0));
    const all = (id) => (row) => (part.columns[id] ? part.columns[id][row.id] : null);
    // A measure of the whole time, as report_data/columns.py describes it.
    const wholeTime = ({ name: id, key, unit, part: kind, title, hint, rank }) => {
      const value = all(id);
      const some = (row) => UNITS[unit].some(value(row), this.least);
      const text = (row) => (some(row) || (UNITS[unit].zero && !unknown(value(row))) ? UNITS[unit].text(value(row)) : "");
      const most = () => (unit === "share" ? 1 : Math.max(1e-9, ...(this.current[name] || []).map((row) => value(row) || 0)));
      return { id: key, title, class: ["alltime", "alltime wide", "alltime wide second"][rank - 1], hint: `${hint} (of the whole time)`, value, has: some,
        cell: (row) => (kind ? meter(text(row), value(row) / most(), kind) : text(row)) };
    };
    const measures = (isBytes) => this.data.measures.filter((each) => each.title && part.columns[each.name] && (each.unit === "bytes") === isBytes).map(wholeTime);
    const flow = (id, sort, title, hint, kind) => ({
      id, sort, title, class: id === "allocated" ? "wide second" : "wide", hint, value: (row) => row.values[id], has: (row) => row.values[id] > 0,
      cell: (row) => meter(row.values[id] > 0 ? bytes(row.values[id]) : "", row.values[id] / largest((each) => each.values[id]), kind),
    });
    this.current = this.current || {};
    const then = (row) => (this.state.moment === null ? null : part.own.sum("net", row.id, 0, this.state.moment));
    const waits = this.data.recorded.has("wait");
    return [
      { id: "bar", title: "", class: "bars", cell: (row) => this.barCell(name, row, largest) },
      { id: "cpu", csv: [["cpu_s", (row) => row.values.cpu / NS], ["cpu_share", (row) => row.values.share], ["cpu_share_low", (row) => row.values.low], ["cpu_share_high", (row) => row.values.high]], title: "CPU %", hint: "Its own share of the CPU time, with half the width of the 95 % interval", class: "strong", value: (row) => row.values.cpu,
        cell: (row) => shareCell(row.values.share, row.values.low, row.values.high) },
      { id: "total", csv: [["total_cpu_s", (row) => row.values.total_cpu / NS]], title: "with calls", hint: "Share of the CPU time with everything that was called", class: name === "lines" ? "wide second" : name === "functions" ? "" : "wide", value: (row) => row.values.total_cpu,
        cell: (row) => amount(percent(row.values.total_share)) },
      waits && { id: "wait", csv: [["wait_s", (row) => row.values.wait / NS]], title: "waiting", class: "", hint: "Time that threads waited here, all of them together", value: (row) => row.values.wait, has: (row) => row.values.wait > 5e5,
        cell: (row) => meter(row.values.wait > 5e5 ? seconds(row.values.wait / NS) : "", row.values.wait / largest((each) => each.values.wait), "wait") },
      waits && part.columns.wait_for && { id: "reason", title: "for", kind: "text", class: "wide reason", hint: "What most of the waiting was for (of the whole time)",
        value: (row) => mainReason(waitFor(part, row.id)), has: (row) => row.values.wait > 5e5,
        cell: (row) => (row.values.wait > 5e5 ? mainReason(waitFor(part, row.id)) : "") },
      name !== "files" && { id: "place", csv: [["file", (row) => row.file], ["line", (row) => row.line]], title: name === "lines" ? "line" : "at", kind: "text", class: "place", value: (row) => `${row.file}:${String(row.line).padStart(7)}`, cell: (row) => this.placeCell(row) },
      { id: "label", csv: [[name === "files" ? "file" : "function", (row) => row.label], ...(name === "lines" ? [["source", (row) => this.text(name, row.file, row.line)]] : [])], title: name === "lines" ? "source" : name === "files" ? "file" : "function", kind: "text", class: "grow", value: (row) => row.label || "",
        cell: (row) => this.labelCell(name, row) },
      ...callColumns(part.columns, all, this.data.sections.calls),
      ...measures(false),
      memory && flow("allocated", "allocated", "allocated", "Bytes allocated here", "memory"),
      memory && {
        id: "moment", title: () => (this.state.moment === null ? "at a moment" : `after ${seconds(this.state.at())}`), class: "wide",
        hint: "Held at the moment that was picked on the timeline", value: (row) => then(row), has: (row) => then(row) >= this.least,
        cell: (row) => meter(then(row) >= this.least ? bytes(then(row)) : "", then(row) / largest(then), "memory"),
      },
      ...measures(true),
      part.columns.timeline && { id: "timeline", title: "held over time", class: "sparks alltime wide second", has: (row) => Boolean(part.columns.timeline[row.id]),
        cell: (row) => sparkline(part.columns.timeline[row.id], this.data.bins, "memory held over time") },
      copies && flow("copied", "copies", "copied", "Bytes copied here", "copies"),
    ].filter(Boolean);
  }

  barCell(name, row, largest) {
    // The bar is of what the table is sorted by: waiting, or else CPU time.
    const waits = this[name] && this[name].sort.id === "wait";
    const box = bar(row.values, largest((each) => (waits ? each.values.wait : each.values.cpu)), waits ? ["wait"] : PARTS);
    const cell = el("div", {}, box);
    const title = row.line === null ? row.label : `${shortPath(row.file)}:${row.line}`;
    tip(cell, () => facts(title, [...exact(row.values, this.state, waitFor(row.part, row.id)), ...exactCalls(row.part.columns, row.id, this.data.sections.calls.columns), ...exactMeasures(row.part, row.id, this.least)]));
    return cell;
  }

  placeCell(row) {
    if (row.file === null) return el("span", { class: "none" }, "no line");
    return placeLink(row.file, row.line, this.state, { title: `${row.file}:${row.line ?? "?"}`, class: "code" });
  }

  labelCell(name, row) {
    const meaning = this.data.meaning[row.label];
    if (meaning) return [el("span", {}, row.label), el("span", { class: "none", title: meaning }, `  ${meaning}`)];
    if (name === "files") return el("span", { class: "code path", title: row.label }, row.label);
    const at = row.file !== null && el("span", { class: "at code" }, `${shortPath(row.file)}:${row.line ?? "?"}`);
    if (name === "functions") return [at, el("span", { class: "code", title: row.label }, row.label)];
    const text = this.text(name, row.file, row.line);
    if (unknown(text)) return [at, el("span", { class: "code" }, row.file === null ? row.label : `in ${row.label}${this.data.generated.has(row.file) ? ", generated code" : ""}`)];
    const leak = row.part.columns.leak_rate_bytes_per_s && row.part.columns.leak_rate_bytes_per_s[row.id] > 0;
    return [at, leak && el("span", { class: "badge", title: "Its blocks are not given back: see Memory and leaks" }, "leak"), leak && " ",
      el("span", { class: "code", title: `in ${row.label}` }, coloured(codePieces(text.trim())))];
  }

  detail(row) {
    if (row.file === null || row.line === null) return el("div", { class: "detailbox" }, row.label === "<other code>" && this.otherCode(), this.exactTable(row));
    const holder = el("div", {}, this.source.show(row.file, row.line));
    const whole = el("button", { type: "button", class: "quiet", onclick: () => {
      const all = whole.textContent.startsWith("Whole");
      holder.replaceChildren(this.source.show(row.file, row.line, all));
      whole.textContent = all ? "Only around the line" : "Whole file";
    } }, "Whole file");
    const link = el("a", { class: "quiet", href: address(row.file, row.line, this.state) }, "Link to this line");
    const side = el("div", {}, suggestionsAt(this.state, row.file, row.line), this.exactTable(row), this.nativeTable(row), this.waiterTable(row), this.allocatorTable(row), el("div", { class: "links" }, this.source.has(row.file) && whole, link));
    return el("div", { class: "detailbox" }, holder, side);
  }

  // The native functions that waited for the line, as the innermost Python frame called them.
  waiterTable(row) {
    const found = (row.part.columns.natives && this.data.waiters[row.id]) || [];
    return found.length ? this.timeTable("waiters", "waited in native functions, of the whole time", found) : null;
  }

  // The functions behind the row of code that no line in scope called.
  otherCode() {
    const rows = this.data.other_code.map(([name, file, line, spent, waited]) => el("tr", {}, el("td", { class: "code" }, name),
      el("td", {}, seconds(spent)), el("td", {}, waited > 0.0005 ? `waits ${seconds(waited)}` : ""), el("td", { class: "code", title: file || "" }, file ? `${shortPath(file)}:${line}` : "")));
    return el("div", {}, el("table", { class: "exact", id: "other-code" }, el("caption", {}, "Its functions with the most CPU time, of the whole time"), el("tbody", {}, rows)),
      el("p", { class: "none" }, "“All code” above shows every line of it."));
  }

  // The native functions that the line's own time was spent in.
  nativeTable(row) {
    const called = (row.part.columns.natives && row.part.columns.natives[row.id]) || [];
    return called.length ? this.timeTable("", "native functions, of the whole time", called) : null;
  }

  // A native function, its library, and where in its source it begins, as far as that is known.
  nativeCell(name, module, place) {
    return el("td", { class: "code", title: place ? `${name}\n${place}` : name }, `${shortNative(name)} `,
      el("span", { class: "soft" }, name.startsWith("[") ? "" : module, place ? ` ${place.split("/").pop()}` : ""));
  }

  timeTable(kind, caption, found) {
    const names = this.data.names;
    return el("table", { class: `exact natives ${kind}` }, el("caption", {}, caption),
      el("tbody", {}, found.map(([name, module, place, time]) => el("tr", {}, this.nativeCell(names[name], names[module], names[place]), el("td", {}, seconds(time))))));
  }

  // The native functions that allocated for the line, as the innermost Python frame called them.
  allocatorTable(row) {
    const found = (row.part.columns.natives && this.data.allocators[row.id]) || [];
    if (!found.length) return null;
    const names = this.data.names;
    return el("table", { class: "exact natives allocators" }, el("caption", {}, "allocated in native functions, of the whole time"),
      el("thead", {}, el("tr", {}, ["", "at peak", "at end", "allocated"].map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, found.map(([name, module, place, ...sizes]) => el("tr", {}, this.nativeCell(names[name], names[module], names[place]),
        sizes.map((size) => el("td", {}, size > 0 ? bytes(size) : ""))))));
  }

  exactTable(row) {
    const rows = [...exact(row.values, this.state, waitFor(row.part, row.id)), ...exactMeasures(row.part, row.id, this.least)];
    const spark = row.part.columns.timeline && row.part.columns.timeline[row.id];
    return el("div", {},
      el("table", { class: "exact" }, el("caption", {}, row.label || ""),
        el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, cell)))))),
      spark && sparkline(spark, this.data.bins, "memory held over time"));
  }

  show() {
    for (const name of ["lines", "functions", "files"]) {
      this.current[name] = this.rows(name);
      this[name].table.classList.toggle("windowed", !this.state.whole);
      this[name].show(this.current[name]);
    }
  }

  // Opens the row of a place, or the nearest one of the file. Returns whether there was any.
  reveal(file, line) {
    const rows = this.current.lines.filter((row) => row.file === file && row.line !== null);
    if (!rows.length) return false;
    const near = (row) => (line === null ? -row.values.cpu : Math.abs(row.line - line));
    const best = rows.reduce((one, two) => (near(two) < near(one) ? two : one));
    return this.lines.reveal(best);
  }
}
