// The flame graph of a fleet: the call tree by functions over all recordings.

class FleetFlame extends BoxTree {
  constructor(data, page) {
    super("Flame graph", data.flame.parent);
    this.page = page;
    this.data = data;
    this.nothing = "Nothing of it was recorded.";
    const measures = [["cpu", "CPU"], ["wait", "waiting, all threads"]].filter(([name]) => this.of(name, this.callees(null)) > 0);
    this.measure = measures.length ? measures[0][0] : "cpu";
    const picks = choice("What the graph shows", measures, this.measure, (name) => {
      this.measure = name;
      this.zoomed = null;
      this.draw();
    });
    section("flame", "Flame graph", "Of all recordings. Width is the amount; callers stand above what they call. Click to look closer, Escape to go back.").append(...this.below(picks));
    this.draw();
  }

  of(measure, nodes) {
    return nodes.reduce((sum, node) => sum + (this.data.flame[measure][node] || 0), 0);
  }

  width(node) {
    return this.data.flame[this.measure][node] || 0;
  }

  matches(node) {
    return Boolean(this.page.search) && `${this.name(node)} ${this.file(node)}`.toLowerCase().includes(this.page.search.toLowerCase());
  }

  file(node) {
    const { flame, names } = this.data;
    return flame.file[node] < 0 ? "" : names[flame.file[node]];
  }

  name(node) {
    const { flame, names } = this.data;
    const name = flame.name[node] < 0 ? "?" : names[flame.name[node]];
    return name === "<module>" && flame.file[node] >= 0 ? `<module> ${shortPath(this.file(node))}` : name;
  }

  amount(whole) {
    return `${seconds(whole)} ${this.measure === "cpu" ? "CPU" : "waiting, all threads"}`;
  }

  look(node) {
    const { flame, of } = this.data;
    const [name, file, folded] = [this.name(node), this.file(node), flame.folded[node]];
    const own = this.width(node) - this.sum(this.callees(node));
    const whole = this.whole;
    const about = () => {
      const rows = [["with calls", seconds(this.width(node)), `${percent(this.width(node) / whole) || "<0.1"} %`], ["of that its own", seconds(Math.max(0, own)), `${percent(own / whole) || "0"} %`]];
      if (flame.recordings[node] !== null) rows.push(["recordings", count(flame.recordings[node]), `of ${count(of)}`]);
      if (folded) rows.push(["boxes that are too small", count(folded), ""]);
      const box = facts(name, rows);
      if (file) box.append(el("div", { class: "soft code" }, file));
      return box;
    };
    return {
      kind: folded ? "special" : /^(site-packages|python)\//.test(file) ? "other" : "own",
      label: `${percent(this.width(node) / whole) || "0"} %, ${seconds(this.width(node))}`,
      style: this.measure === "wait" ? { "--hue": "var(--wait)" } : {},
      about,
    };
  }
}

// The page of a fleet: lines, functions, spans, memory and recordings, and the flame graph over all.

class FleetPage {
  constructor(data) {
    this.data = data;
    this.search = "";
    this.metric = data.metrics[0].name;
    nameFiles(["lines", "functions"].flatMap((name) => data[name][this.metric].rows).map((row) => this.text(row.file)).filter(Boolean));
    byId("metrics").replaceChildren(choice("What the tables show", data.metrics.map((each) => [each.name, each.name]), this.metric, (name) => {
      this.metric = name;
      this.showTables();
    }));
    this.tables = {};
    for (const [name, title] of [["lines", "Lines"], ["functions", "Functions"]]) {
      this.tables[name] = new Table({ label: title, columns: this.columns(name), sort: "value", first: name === "lines" ? 30 : 15, open: (row) => this.opened(row),
        nothing: () => (this.search ? `Nothing matches “${this.search}”.` : "Nothing was recorded.") });
      section(name, title, "").append(this.tables[name].element);
    }
    this.flame = new FleetFlame(data, this);
    this.showSpans();
    this.showMemory();
    this.showRecordings();
    this.showTables();
  }

  text(number) {
    return number === undefined || number < 0 ? "" : this.data.names[number];
  }

  get current() {
    return this.data.metrics.find((each) => each.name === this.metric);
  }

  show(value) {
    if (unknown(value)) return "?";
    if (this.current.kind === "share") return `${percent(value) || "0"} %`;
    return this.current.kind === "s" ? seconds(value) : bytes(value);
  }

  amount(value) {
    return ["cpu", "wait"].includes(this.metric) ? seconds(value) : bytes(value);
  }

  columns(name) {
    return [
      { id: "value", title: () => this.metric, class: "strong", value: (row) => row.values[0], cell: (row) => this.show(row.values[0]) },
      { id: "interval", title: "95 % interval", class: "wide", cell: (row) => (unknown(row.values[1]) ? "" : el("small", {}, `${this.show(row.values[1])} to ${this.show(row.values[2])}`)) },
      { id: "amount", title: "in all", class: "wide", value: (row) => row.amount, cell: (row) => this.amount(row.amount) },
      { id: "recordings", title: "recordings", value: (row) => row.recordings, cell: (row) => [count(row.recordings), el("small", {}, ` of ${count(this.data.of)}`)] },
      { id: "place", title: name === "lines" ? "line" : "file", kind: "text", class: "place", value: (row) => `${row.path}:${String(row.line ?? 0).padStart(7)}`, cell: (row) => el("span", { class: "code", title: row.path }, this.place(row)) },
      { id: "label", title: name === "lines" ? "source" : "function", kind: "text", class: "grow", value: (row) => row.label, cell: (row) => [el("span", { class: "at code" }, this.place(row)), el("span", { class: "code" }, row.code ? coloured(codePieces(row.code)) : row.label)] },
    ];
  }

  place(row) {
    if (!row.path) return "no file";
    return row.line === undefined || row.line === null ? shortPath(row.path) : `${shortPath(row.path)}:${row.line}`;
  }

  // Of an opened row: its values by label, and the recordings that have the most of it.
  opened(row) {
    const parts = this.data.labels.map((label, at) => this.part(`by ${label.name}`, label.values.map((value, number) => [value, this.show(row.by[at][number])])));
    parts.push(this.part("recordings with the most", row.most.map(([number, value]) => [this.recording(this.data.recordings[number]), this.show(value)])));
    const place = row.path ? `${row.path}:${row.line ?? row.full}` : row.full;
    const command = el("div", { class: "source code" }, `tachograph fleet find ${shellWord(this.data.url)} ${shellWord(place)} --top 3 --fetch here`);
    return el("div", { class: "bywhat" }, el("div", { class: "source code" }, row.path ? `${row.path}${row.line ? `:${row.line}` : ""}  ${row.full}` : row.full), parts, command);
  }

  // The name of a recording, which leads to its own page where there is one.
  recording(row) {
    const name = this.text(row.path);
    return row.page ? el("a", { href: row.page }, name) : name;
  }

  part(title, rows) {
    return el("div", {}, el("h4", {}, title), el("table", {}, el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", {}, value))))));
  }

  matches(...texts) {
    return !this.search || texts.some((each) => each && each.toLowerCase().includes(this.search.toLowerCase()));
  }

  showTables() {
    for (const [name, table] of Object.entries(this.tables)) {
      const { rows, others, others_amount: rest } = this.data[name][this.metric];
      const hint = `${this.current.unit}${others ? `; ${count(others)} others have ${this.amount(rest)} and are not shown` : ""}`;
      byId(name).querySelector(".hint").textContent = hint;
      table.show(rows.map((row, id) => {
        const full = this.text(row.name);
        const code = name === "lines" ? this.text(row.source).trim() : "";
        return { ...row, id: `${this.metric}-${id}`, order: id, path: this.text(row.file), full, code, label: code || full };
      }).filter((row) => this.matches(row.path, row.label, row.full)));
    }
    this.recordings.show(this.data.recordings.map((row, id) => ({ ...row, id, order: id })).filter((row) => this.matches(...["path", "host", "program", "labels", "created"].map((name) => this.text(row[name])))));
    this.flame.draw();
  }

  // A table of rows that are as they are shown: columns are [id, title, how it is shown, how it is sorted].
  plain(id, title, hint, rows, columns) {
    if (!rows.length) return;
    byId(id).hidden = false;
    const table = new Table({ label: title, sort: columns[0][0], first: 15, columns: columns.map(([name, head, cell, text]) => ({ id: name, title: head, kind: text ? "text" : "", class: text || "", value: (row) => row[name], cell: (row) => cell(row[name], row) })) });
    if (!byId(id).children.length) section(id, title, hint);
    byId(id).append(table.element);
    table.show(rows.map((row, number) => ({ ...row, id: number, order: number })));
  }

  showSpans() {
    const some = (show) => (value) => (unknown(value) ? "" : show(value));
    this.plain("spans", "Spans", "Means over all recordings; CPU and waiting of the span's own thread.", this.data.spans, [
      ["count", "count", count], ["mean_s", "mean", seconds], ["low", "95 % interval", (low, row) => (unknown(low) ? "" : `${seconds(low)} to ${seconds(row.high)}`)],
      ["p50_s", "p50", seconds], ["p95_s", "p95", seconds], ["p99_s", "p99", seconds],
      ["cpu_s", "CPU in each", seconds], ["wait_s", "waiting in each", seconds], ["await_s", "awaiting in each", some(seconds)], ["allocated_bytes", "allocated in each", some(bytes)], ["longest_s", "longest", seconds], ["recordings", "recordings", count], ["name", "span", String, "grow"]]);
  }

  showMemory() {
    this.plain("memory", "Memory", "Per recording: minimum, median, 90th percentile, maximum.", this.data.peaks, [
      ["most", "most", bytes], ["p90", "9 of 10", bytes], ["median", "median", bytes], ["least", "least", bytes], ["recordings", "recordings", count], ["measure", "what", (name) => name.replace("_", " "), "text"], ["largest", "most in", (path) => path || "", "grow"]]);
    this.plain("memory", "Leaks", "", this.data.leaks, [
      ["hosts", "hosts with the leak", count], ["recordings", "recordings", count], ["rate_bytes_per_s", "grows by", (rate) => (unknown(rate) ? "?" : `${bytes(rate)}/s`)],
      ["confirmed", "on several hosts", (sure) => (sure ? "yes" : "no"), "text"], ["file", "line", (file, row) => (file ? `${shortPath(file)}:${row.line}` : "?"), "place"], ["name", "function", (name) => name || "?", "grow"]]);
  }

  showRecordings() {
    const text = (id, title, kind) => ({ id, title, kind: "text", class: kind, value: (row) => this.text(row[id]), cell: (row) => this.text(row[id]) });
    this.recordings = new Table({ label: "Recordings", sort: "cpu", first: 15, nothing: () => `Nothing matches “${this.search}”.`, columns: [
      { id: "cpu", title: "CPU", class: "strong", value: (row) => row.cpu, cell: (row) => seconds(row.cpu) },
      { id: "wall", title: "time", value: (row) => row.wall, cell: (row) => seconds(row.wall) },
      { id: "wait", title: "waiting", class: "wide", has: (row) => !unknown(row.wait), value: (row) => row.wait, cell: (row) => seconds(row.wait) },
      { id: "peak", title: "memory at its peak", class: "wide", has: (row) => !unknown(row.peak), value: (row) => row.peak, cell: (row) => bytes(row.peak) },
      text("host", "host", "wide"), text("created", "begun", "wide"), text("labels", "labels", "place"), { ...text("path", "recording", "grow"), cell: (row) => this.recording(row) }] });
    section("recordings", "Recordings", "Those with the most CPU time.").append(this.recordings.element);
  }
}

// A word as a shell takes it.
function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

openPage((data) => {
  const page = new FleetPage(data);
  showNavigation();
  return (search) => {
    page.search = search;
    page.showTables();
  };
});
