// The differential flame graph: the shape of one side, coloured by the difference.

class DiffFlame extends BoxTree {
  constructor(data, page) {
    super("Flame graph of the difference", data.calls.parent);
    this.data = data;
    this.page = page;
    this.side = "new";
    this.nothing = "Nothing of it on this side.";
    const side = choice("Whose shape", [["new", "shape of the new"], ["base", "shape of the base"], ["both", "the larger of both"]], this.side, (value) => {
      this.side = value;
      this.draw();
    });
    section("flame", "Flame graph of the difference", "Width is one side's amount, colour the difference. The base's shape also shows what vanished.").append(...this.below(side));
    this.draw();
  }

  values(node) {
    const values = this.data.calls.values[this.page.metric];
    return values ? { base: values.base[node] || 0, new: values.new[node] || 0, verdict: values.verdict[node] } : { base: 0, new: 0, verdict: 4 };
  }

  // Of both sides' larger one, a caller is at least as wide as what it calls.
  width(node) {
    const values = this.values(node);
    return this.side === "both" ? Math.max(values.base, values.new, this.sum(this.callees(node))) : values[this.side];
  }

  matches(node) {
    return Boolean(this.page.search) && this.name(node).toLowerCase().includes(this.page.search.toLowerCase());
  }

  name(node) {
    const { calls, names } = this.data;
    return calls.function[node] < 0 ? "?" : names[calls.function[node]];
  }

  amount(whole) {
    return `${this.page.show(whole)} ${this.page.current.label}`;
  }

  look(node) {
    const { calls, names, verdicts } = this.data;
    const values = this.values(node);
    const sure = !["no evidence", "unknown", "not judged"].includes(verdicts[values.verdict]);
    const difference = values.new - values.base;
    const larger = Math.max(values.new, values.base) || 1;
    const strength = sure ? 35 + 45 * Math.min(1, Math.abs(difference) / larger) : 14 * Math.min(1, (4 * Math.abs(difference)) / larger);
    const kind = Math.abs(difference) < larger * 0.002 ? "same" : difference > 0 ? "more" : "less";
    const status = values.base === 0 && sure ? "appeared" : values.new === 0 && sure ? "gone" : "";
    const name = this.name(node);
    const about = () => {
      const place = calls.file[node] < 0 ? "" : `${shortPath(names[calls.file[node]])}:${calls.line[node] ?? "?"}`;
      const box = facts(name, [["base", this.page.show(values.base)], ["new", this.page.show(values.new)], ["difference", this.page.showDifference(difference), verdicts[values.verdict]]]);
      if (place) box.append(el("div", { class: "soft code" }, place));
      return box;
    };
    return {
      kind: `${kind} ${status}`,
      label: `${this.page.show(values.base)} before, ${this.page.show(values.new)} now, ${verdicts[values.verdict]}`,
      style: { "--strength": `${strength.toFixed(0)}%` },
      about,
    };
  }
}

// The page of a diff: totals, lines, functions and files with their differences, and the flame graph.

// What a number of the size `most` is told in: the size of the unit, and its name.
function unitOf(most, unit) {
  if (unit === "s") return most >= 119.5 ? [60, "min"] : most >= 0.0995 ? [1, "s"] : most >= 0.000995 ? [1e-3, "ms"] : [1e-6, "µs"];
  const power = Math.min(4, most < 999.5 ? 0 : Math.floor(Math.log10(most * 1.0005) / 3));
  return [1000 ** power, ["B", "KB", "MB", "GB", "TB"][power] + (unit === "bytes/s" ? "/s" : "")];
}

class DiffPage {
  constructor(data) {
    this.data = data;
    this.search = "";
    const changed = data.totals.find((row) => row.metric === "cpu");
    this.metric = data.metrics.some((each) => each.name === "cpu") && changed ? "cpu" : (data.metrics[0] || {}).name;
    byId("metrics").replaceChildren(choice("What is compared", data.metrics.map((each) => [each.name, each.label]), this.metric, (name) => {
      this.metric = name;
      this.flame.zoomed = null;
      this.redraw();
    }));
    byId("keys").replaceChildren(el("span", {}, el("i", { class: "key more" }), "more"), el("span", {}, el("i", { class: "key less" }), "less"),
      el("span", {}, el("i", { class: "key pale" }), "pale: no evidence"));
    this.showTotals();
    this.tables = {};
    for (const [name, title] of [["lines", "Lines"], ["functions", "Functions"], ["native", "Native functions"], ["files", "Files"]]) {
      if (name === "native" && !data.native.rows.length) continue;
      const left = data[name].left_out;
      this.tables[name] = new Table({ label: title, columns: this.columns(name), sort: "size", first: name === "lines" ? 30 : 12,
        nothing: () => (this.search ? `Nothing matches “${this.search}”.` : "Nothing to compare.") });
      section(name, title, left ? `${count(left)} with smaller differences are not shown here.` : "").append(this.tables[name].element);
    }
    this.flame = new DiffFlame(data, this);
    this.redraw();
  }

  get current() {
    return this.data.metrics.find((each) => each.name === this.metric) || { label: "", unit: "s" };
  }

  redraw() {
    this.showTables();
    this.flame.draw();
  }

  show(value, unit = this.current.unit) {
    if (unknown(value)) return "?";
    if (this.data.shares) return `${percent(value) || "0"} %`;
    return unit === "s" ? seconds(value) : unit === "bytes/s" ? `${bytes(value)}/s` : bytes(value);
  }

  showDifference(value, unit = this.current.unit) {
    if (unknown(value)) return "?";
    const sign = value > 0 ? "+" : value < 0 ? "−" : "";
    return `${sign}${this.show(Math.abs(value), unit)}`;
  }

  verdict(number) {
    const word = this.data.verdicts[number];
    const kind = ["slower", "more"].includes(word) ? "more" : ["faster", "less"].includes(word) ? "less" : "none";
    return el("span", { class: `verdict ${kind}` }, word);
  }

  // A bar from 0 to the difference, with the interval as a thin line.
  range(values, reach) {
    const x = (value) => 50 + 49 * Math.max(-1, Math.min(1, value / reach));
    const sure = !["no evidence", "unknown", "not judged"].includes(this.data.verdicts[values.verdict]);
    const [from, to] = [x(Math.min(0, values.difference)), x(Math.max(0, values.difference))];
    const line = !unknown(values.low) && !unknown(values.high) && svg("line", { class: "reach", x1: x(values.low), x2: x(values.high), y1: 5, y2: 5 });
    return svg("svg", { class: "range", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: `${values.difference > 0 ? "more" : "less"} ${sure ? "" : "pale"}`, x: from, width: Math.max(0.4, to - from), y: 1.5, height: 7 }),
      svg("line", { class: "zero", x1: 50, x2: 50, y1: 0, y2: 10 }), line);
  }

  exact(values, unit = this.current.unit) {
    const change = unknown(values.change) ? "" : `${values.change > 0 ? "+" : ""}${(values.change * 100).toFixed(1)} %`;
    return facts("", [["base", this.show(values.base, unit)], ["new", this.show(values.new, unit)],
      ["difference", this.showDifference(values.difference, unit), change],
      ["interval", this.interval(values.low, values.high, unit)],
      ["verdict", this.data.verdicts[values.verdict]]]);
  }

  // Both ends in the unit of the larger one.
  interval(low, high, unit) {
    if (unknown(low) || unknown(high)) return "?";
    const most = Math.max(Math.abs(low), Math.abs(high));
    const [scale, name] = this.data.shares ? [0.01, "%"] : unitOf(most, unit);
    const places = most / scale >= 100 ? 0 : most / scale >= 10 ? 1 : 2;
    const told = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${(Math.abs(value) / scale).toFixed(places)}`;
    return `${told(low)} to ${told(high)} ${name}`;
  }

  rangeCell(values, reach, unit) {
    const cell = el("div", {}, this.range(values, reach));
    tip(cell, () => this.exact(values, unit));
    return cell;
  }

  // Of the whole program: metrics have different units, so all bars of the table are changes relative to the base.
  relativeCell(row, reach) {
    const part = (value) => (unknown(value) || !row.base ? null : value / row.base);
    const cell = unknown(part(row.difference)) ? el("div", {}) : el("div", {}, this.range({ verdict: row.verdict,
      difference: part(row.difference), low: part(row.low), high: part(row.high) }, reach));
    tip(cell, () => this.exact(row, row.unit));
    return cell;
  }

  showTotals() {
    const changes = this.data.totals.filter((row) => row.base).map((row) => Math.abs(row.difference / row.base)).filter((each) => each === each);
    const reach = Math.min(10, Math.max(0.02, ...changes) * 1.5);
    const columns = [
      { id: "label", title: "of the whole program", kind: "text", cell: (row) => row.label },
      { id: "base", title: "base", class: "wide", cell: (row) => this.totalText(row, row.base) },
      { id: "new", title: "new", class: "strong", cell: (row) => this.totalText(row, row.new) },
      { id: "change", title: "change", cell: (row) => (unknown(row.change) ? "" : `${row.change > 0 ? "+" : ""}${(row.change * 100).toFixed(1)} %`) },
      { id: "range", title: `change, with its interval (bars end at ±${percent(reach)} %)`, class: "ranges", kind: "text", cell: (row) => this.relativeCell(row, reach) },
      { id: "verdict", title: "verdict", kind: "text", class: "grow", cell: (row) => this.verdict(row.verdict) },
    ];
    const table = new Table({ label: "The whole program", columns, sort: "label" });
    section("totals", "The whole program", "A verdict is given only where the interval excludes 0 and the difference is large enough to matter.").append(table.element);
    table.columns[0].value = (row) => row.order;
    table.sort = { id: "label", down: false };
    table.show(this.data.totals.filter((row) => row.base || row.new).map((row, id) => ({ ...row, id, order: id })));
  }

  totalText(row, value) {
    if (unknown(value)) return "?";
    return row.unit === "s" ? seconds(value) : row.unit === "bytes/s" ? `${bytes(value)}/s` : bytes(value);
  }

  columns(name) {
    const of = (row) => row.values[this.metric];
    const columns = [
      { id: "range", title: "difference", class: "ranges", cell: (row) => this.rangeCell(of(row), this.reach[name]) },
      { id: "size", title: "size", hint: "Sort by the size of the difference", class: "strong", value: (row) => Math.abs(of(row).difference ?? 0), cell: (row) => this.showDifference(of(row).difference) },
      { id: "base", title: "base", class: "wide", value: (row) => of(row).base, cell: (row) => this.show(of(row).base) },
      { id: "new", title: "new", class: "wide", value: (row) => of(row).new, cell: (row) => this.show(of(row).new) },
      { id: "verdict", title: "verdict", kind: "text", class: "text", value: (row) => this.data.verdicts[of(row).verdict], cell: (row) => this.verdict(of(row).verdict) },
    ];
    if (name === "native") {
      columns.push({ id: "library", title: "library", kind: "text", class: "place", value: (row) => row.module, cell: (row) => el("span", { class: "code" }, row.module) });
    } else if (name !== "files") {
      columns.push({ id: "place", title: name === "lines" ? "line" : "at", kind: "text", class: "place", value: (row) => `${row.path}:${String(row.line).padStart(7)}`,
        cell: (row) => el("span", { class: "code", title: row.path }, row.path ? `${shortPath(row.path)}:${row.line ?? "?"}` : "no line") });
    }
    columns.push({ id: "label", title: name === "lines" ? "source" : name === "files" ? "file" : "function", kind: "text", class: "grow", value: (row) => row.label,
      cell: (row) => [name !== "files" && row.path && el("span", { class: "at code" }, `${shortPath(row.path)}:${row.line ?? "?"}`), el("span", { class: name === "files" ? "code path" : "code", title: row.before && row.before !== row.label ? `before: ${row.before}` : "" }, row.code ? coloured(codePieces(row.code)) : row.label),
        row.status !== "same" && el("span", { class: "status" }, row.status)] });
    return columns;
  }

  showTables() {
    this.reach = {};
    const text = (number) => (number < 0 ? "" : this.data.names[number]);
    for (const [name, table] of Object.entries(this.tables)) {
      const rows = this.data[name].rows.map((row, id) => {
        const path = text(row.file);
        const code = name === "lines" ? text(row.source).trim() || text(row.base_source).trim() : "";
        const label = code || (name === "files" ? path : text(row.function));
        return { ...row, id, order: id, path, code, label, module: text(row.module), before: text(row.base_source).trim() };
      }).filter((row) => row.values[this.metric])
        .filter((row) => !this.search || [row.path, row.label, row.module].some((each) => each.toLowerCase().includes(this.search.toLowerCase())));
      this.reach[name] = Math.max(1e-12, ...rows.map((row) => Math.abs(row.values[this.metric].difference || 0))) * 1.15;
      table.show(rows);
    }
  }
}

openPage((data) => {
  const page = new DiffPage(data);
  showNavigation();
  return (search) => {
    page.search = search;
    page.redraw();
  };
});
