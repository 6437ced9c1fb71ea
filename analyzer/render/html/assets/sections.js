// The sections of the report below the lines and the flame graph.

// The place and the source of a row that is of a line, as columns of a section.
const placeColumn = (state) => ({ class: "place", value: (row) => `${row.file}:${row.line}`,
  cell: (row) => (row.file ? placeLink(row.file, row.line, state, { class: "code", title: row.file }) : "no line") });
const sourceColumn = { class: "grow", value: (row) => row.source || row.function, cell: (row) => el("span", { class: "code" }, (row.source || `in ${row.function}`).trim()) };

// Leaks and domains of memory.

function showMemory(state) {
  const { memory, tables: { leaks, allocators } } = state.data;
  if (!memory) return;
  const described = state.data.sections.leaks;
  const box = section("memory", "Memory and leaks", described.hint);
  if (leaks && leaks.length) {
    const columns = sectionColumns(described, {
      rate_bytes_per_s: { cell: (row) => [`${bytes(row.rate_bytes_per_s)}/s`, el("small", {}, unknown(row.rate_low) ? "" : ` ${bytes(row.rate_low)} to ${bytes(row.rate_high)}`)] },
      likelihood: { cell: (row) => `${fixed(row.likelihood * 100, 1)} %` },
      leaked_bytes: { cell: (row) => bytes(row.leaked_bytes) },
      place: placeColumn(state),
      source: sourceColumn,
    });
    const open = (row) => el("div", { class: "detailbox" }, el("div", {},
      el("div", {}, row.path_share ? `The call path of ${percent(row.path_share)} % of it:` : "The call path:"),
      el("ol", { class: "callpath" }, row.path.map((step) => el("li", {}, step))),
      row.native && el("div", { class: "code" }, `allocated by ${row.native}`)));
    const table = new Table({ label: described.title, columns, sort: "rate_bytes_per_s", open });
    box.append(table.element);
    table.show(leaks.map((leak, id) => ({ ...leak, id, order: id })));
  } else if (leaks) {
    box.append(el("p", { class: "empty" }, described.nothing));
  }
  if (allocators && allocators.length) {
    const { title, ...columns } = state.data.sections.allocators;
    const whole = allocators.reduce((sum, row) => sum + (row.allocated_bytes || 0), 0) || 1;
    const own = {
      allocated_bytes: { cell: (row) => meter(bytes(row.allocated_bytes), row.allocated_bytes / whole, "memory") },
      freed_bytes: { cell: (row) => bytes(row.freed_bytes) },
      by: { class: "grow" },
    };
    const table = new Table({ label: title, columns: sectionColumns(columns, own), sort: "allocated_bytes" });
    box.append(el("div", { style: { "margin-top": "0.7rem" } }, table.element));
    table.show(allocators.map((row, id) => ({ ...row, id, order: id })));
  }
}

// Sections that are one table of the whole time; those that are not here have the cells of their units.
const TABLES = {
  // What native code loads or stores again, with both call paths side by side.
  redundancies(state) {
    const path = (label, place, steps) => el("div", {}, el("div", {}, label), el("ol", { class: "callpath" },
      [...steps, place].map((step) => el("li", {}, step))));
    const open = (row) => el("div", { class: "detailbox" },
      el("p", {}, row.why, row.remedy && el("span", {}, ` Usually helps: ${row.remedy}`)), el("span", {}),
      path("The first access:", `${row.file}:${row.line}`, row.native_path),
      path("The same again:", row.partner_line === null ? "line not known" : `${row.partner_file}:${row.partner_line}`, row.partner_native_path));
    const own = {
      quantity_s: { cell: (row) => [`at least ${seconds(row.quantity_s_low)}`, el("small", {}, ` of ${seconds(row.line_cpu_s)}`)] },
      redundant_share: { cell: (row) => [row.redundant_share === null ? "not known" : `${percent(row.redundant_share)} %`, el("small", {}, ` usual ${percent(row.base_rate)} %`)] },
      traps: { cell: (row) => `${row.traps} ${row.kind}s` },
      category: { value: (row) => row.category || "", cell: (row) => row.category || "not decided" },
      place: placeColumn(state),
      source: sourceColumn,
    };
    return { own, sort: "quantity_s", open, unfolded: true };
  },

  // Tasks below those that await them; sorted by coroutine it is the tree.
  awaiting(state) {
    const own = {
      function: { class: "named", value: (row) => -row.order, cell: (row) =>
        el("span", { style: { "padding-left": `${Math.min(row.depth, 40) * 1.2}em` } }, el("b", {}, row.function)) },
      place: placeColumn(state),
      awaited: { class: "grow", cell: (row) => [row.awaited, el("small", { class: "code" }, ` ${row.source || ""}`)] },
    };
    return { own, sort: "function", first: 60 };
  },

  // The tree: who started whom, and what each used.
  processes(state) {
    const listed = (row) => row.recorded === "listed";
    const time = (name) => ({ cell: (row) => (unknown(row[name]) ? "?" : seconds(row[name])) });
    const own = {
      wall_s: time("wall_s"),
      user_s: time("user_s"),
      system_s: time("system_s"),
      samples: { cell: (row) => (listed(row) ? "" : count(row.samples)) },
      peak_bytes: { cell: (row) => (unknown(row.peak_bytes) ? "" : bytes(row.peak_bytes)) },
      exit_status: { cell: (row) => row.exit },
      name: { class: "grow named", value: (row) => -row.order, cell: (row) =>
        el("span", { style: { "padding-left": `${Math.min(row.depth, 40) * 1.2}em` }, title: row.command }, listed(row) ? row.name : el("b", {}, row.name), el("small", {}, ` ${[row.pid, ...row.remarks].join(" · ")}`)) },
    };
    return { own, sort: "name", first: 30, has: (key) => key !== "peak_bytes" || state.data.memory };
  },
};

// Leaks and allocators are in the section of memory.
function showTables(state) {
  for (const [name, { title, hint, nothing, ...described }] of Object.entries(state.data.sections)) {
    const rows = state.data.tables[name];
    if (!rows || ["leaks", "allocators"].includes(name)) continue;
    const { own = {}, has, unfolded = false, ...options } = TABLES[name] ? TABLES[name](state) : {};
    if (!byId(name)) byId("main").append(el("section", { id: name, "aria-labelledby": `${name}-title` }));
    byId(name).hidden = false;
    const box = section(name, title, hint);
    if (!rows.length) {
      box.append(el("p", { class: "empty" }, nothing));
      continue;
    }
    const columns = sectionColumns(described, own, has);
    const table = new Table({ label: title, columns, sort: columns[0].id, ...options });
    box.append(table.element);
    if (unfolded) rows.forEach((row, id) => table.opened.set(id, true));
    table.show(rows.map((row, id) => ({ ...row, id, order: id })));
  }
}

// Suggestions: a section of all of them, and those of one line where it is opened.

function showSuggestions(state) {
  const { suggestions, hot_spot: spot } = state.data;
  if (!suggestions.length) {
    if (spot) section("suggestions", state.data.sections.suggestions.title, "no rule applies").append(el("p", {}, spot));
    return;
  }
  const { title, hint } = state.data.sections.suggestions;
  const box = section("suggestions", title, hint);
  box.append(el("div", { class: "suggestions" }, suggestions.map((each) =>
    el("article", {},
      el("h3", {}, each.file ? placeLink(each.file, each.line, state, { class: "code" }) : "The whole program", el("b", {}, each.figure)),
      suggestionText(each)))));
}

// What happens, what to write instead, and where the documentation shows both.
function suggestionText(each) {
  return [el("p", {}, each.text), el("p", {}, el("b", {}, each.certainty === "likely" ? "Perhaps: " : "Instead: "), `${each.instead}.`), el("p", { class: "code link" }, each.link)];
}

// The suggestions for a line, to be shown beside its figures.
function suggestionsAt(state, file, line) {
  const found = state.data.suggestions.filter((each) => each.file === file && each.line === line);
  return found.length ? el("div", { class: "suggestion" }, found.flatMap(suggestionText)) : null;
}

// Threads: when each of them worked, and when it waited.

class Threads {
  constructor(state) {
    this.state = state;
    this.part = state.data.threads;
    const processes = new Set(this.part.columns.process);
    const { title, hint } = state.data.sections.threads;
    const columns = sectionColumns(state.data.sections.threads, {
      cpu: { value: (row) => row.values.cpu, cell: (row) => amount(row.values.cpu > 0 ? seconds(row.values.cpu / NS) : "") },
      share: { value: (row) => row.values.share, cell: (row) => amount(percent(row.values.share)) },
      wait: { value: (row) => row.values.wait, cell: (row) => amount(row.values.wait > 5e5 ? seconds(row.values.wait / NS) : "") },
      name: { class: "grow named", value: (row) => row.label, cell: (row) => [row.label, row.main && processes.size > 1 ? " (main)" : "", el("small", {}, ` ${row.tid ?? ""}`)] },
    }, (key) => (key !== "wait" || state.data.recorded.has("wait")) && (key !== "owner" || processes.size > 1));
    columns.push({ id: "strip", title: "over time", hint: "Full height is one core", kind: "text", class: "strips", cell: (row) => this.strip(row) });
    this.table = new Table({ label: title, columns, sort: "cpu", first: 20 });
    section("threads", title, hint).append(this.table.element);
    state.listen(() => this.show());
    this.show();
  }

  strip(row) {
    const { count: spans, width } = this.state.data.bins;
    const height = 22;
    const chart = svg("svg", { class: "strip", viewBox: `0 0 ${spans} ${height}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${row.label}: ${seconds(row.values.cpu / NS)} CPU` });
    for (let span = 0; span < spans; span++) {
      let reached = height;
      for (const name of [...CPU, "wait"]) {
        const part = (this.part.own.sum(name, row.id, span, span + 1) || 0) / (width * NS);
        const tall = Math.min(reached, part * height);
        if (tall < 0.15) continue;
        reached -= tall;
        chart.append(svg("rect", { class: `fill-${name}`, x: span, y: reached.toFixed(2), width: 1.03, height: tall.toFixed(2) }));
      }
    }
    const cell = el("div", {}, chart);
    const names = [...CPU, "wait"].filter((name) => row.values[name] > 0);
    tip(cell, () => facts(row.label, names.map((name) => [CALLED[name], seconds(row.values[name] / NS), `${percent(row.values[name] / NS / this.state.length) || "0"} % of the time`])));
    return cell;
  }

  show() {
    const { name, tid, process, main } = this.part.columns;
    const owners = new Map((this.state.data.tables.processes || []).map((each) => [each.process, `${each.name} ${each.pid}`]));
    const rows = [];
    for (let row = 0; row < this.part.count; row++) {
      const label = name[row] || "unnamed";
      const values = measure({ own: this.part.own, total: new Series(null, {}, new Set()) }, row, this.state);
      rows.push({ id: row, order: row, label, tid: tid[row], owner: owners.get(process[row]) || String(process[row]), main: main[row], values });
    }
    this.table.show(rows.filter((row) => row.values.cpu > 0 || row.values.wait > 0 || row.main));
  }
}

// Spans that the program named: time and memory of their threads while they lasted, with the spans within them.

class Spans {
  constructor(state, views) {
    this.state = state;
    this.part = state.data.spans;
    const { title, hint, columns: described } = state.data.sections.spans;
    this.scale = new Map(described.map(({ key, unit }) => [key, unit === "s" ? NS : 1]));
    const known = new Set([...Object.keys(this.part.own.grids), ...Object.keys(this.part.whole), "times", "name"]);
    const times = ["p50_s", "p95_s", "p99_s", "each_cpu_s"].map((key) => [key, { cell: (row) => (unknown(row[key]) ? "" : shortTime(row[key])) }]);
    const columns = sectionColumns(state.data.sections.spans, { ...Object.fromEntries(times), name: { class: "grow", cell: (row) => views.spanName(row.name) } }, (key) => known.has(key));
    this.table = new Table({ label: title, columns, sort: "cpu", first: 20 });
    byId("spans").hidden = false;
    section("spans", title, hint).append(this.table.element);
    state.listen(() => this.show());
    this.show();
  }

  show() {
    const { from, to } = this.state;
    const { name, times } = this.part.columns;
    const last = this.part.count - 1;
    const rows = [];
    for (let row = 0; row <= last; row++) {
      const values = {};
      for (const [measure, grid] of Object.entries(this.part.own.grids)) values[measure] = grid.sum(row, from, to) / this.scale.get(measure);
      // What is in no span has no length, and what of it was kept is unknown.
      if (row === last) values.lasted = values.kept = null;
      const some = Object.values(values).some((value) => value > 0);
      for (const [column, all] of Object.entries(this.part.whole)) values[column] = all[row];
      rows.push({ id: row, order: row, name: name[row], times: times[row], some, ...values });
    }
    this.table.show(rows.filter((row) => row.id === last || row.some));
  }
}
