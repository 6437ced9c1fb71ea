// The sections of the report below the lines and the flame graph.

// Leaks and domains of memory.

function showMemory(state) {
  const { memory, leaks } = state.data;
  if (!memory) return;
  const box = section("memory", "Memory and leaks", "Leaks are lines whose blocks are not given back, with the likelihood of the paper's rule.");
  if (leaks && leaks.length) {
    const columns = [
      { id: "rate", title: "grows by", hint: "Bytes per second, with the 95 % interval", value: (row) => row.rate, cell: (row) => [`${bytes(row.rate)}/s`, el("small", {}, unknown(row.rate_low) ? "" : ` ${bytes(row.rate_low)} to ${bytes(row.rate_high)}`)] },
      { id: "likelihood", title: "likelihood", value: (row) => row.likelihood, cell: (row) => `${(row.likelihood * 100).toFixed(1)} %` },
      { id: "bytes", title: "not given back", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
      { id: "place", title: "line", kind: "text", class: "place", value: (row) => `${row.file}:${row.line}`,
        cell: (row) => (row.file ? placeLink(row.file, row.line, state, { class: "code", title: row.file }) : "no line") },
      { id: "source", title: "source", kind: "text", class: "grow", value: (row) => row.source || row.function, cell: (row) => el("span", { class: "code" }, (row.source || `in ${row.function}`).trim()) },
    ];
    const open = (row) => el("div", { class: "detailbox" }, el("div", {},
      el("div", {}, row.path_share ? `The call path of ${percent(row.path_share)} % of it:` : "The call path:"),
      el("ol", { class: "callpath" }, row.path.map((step) => el("li", {}, step))),
      row.native && el("div", { class: "code" }, `allocated by ${row.native}`)));
    const table = new Table({ label: "Leaks", columns, sort: "rate", open });
    box.append(table.element);
    table.show(leaks.map((leak, id) => ({ ...leak, id, order: id })));
  } else if (leaks) {
    box.append(el("p", { class: "empty" }, "No leak was found."));
  }
  if (memory.domains.length) {
    const whole = memory.domains.reduce((sum, [, , allocated]) => sum + (allocated || 0), 0) || 1;
    const columns = [
      { id: "allocated", title: "allocated", value: (row) => row.allocated, cell: (row) => meter(bytes(row.allocated), row.allocated / whole, "memory") },
      { id: "freed", title: "freed", value: (row) => row.freed, cell: (row) => bytes(row.freed) },
      { id: "name", title: "by", kind: "text", class: "grow", value: (row) => row.name, cell: (row) => row.name },
    ];
    const called = { native: "malloc of native code", mapped: "anonymous mappings", raw: "Python: raw", mem: "Python: buffers", obj: "Python: objects" };
    const table = new Table({ label: "Memory by allocator", columns, sort: "allocated" });
    box.append(el("div", { style: { "margin-top": "0.7rem" } }, table.element));
    table.show(memory.domains.filter(([, , allocated]) => allocated > 0).map(([name, , allocated, freed], id) => ({ id, order: id, name: called[name] || name, allocated, freed })));
  }
}

// Repeated work: what native code loads or stores again, with both call paths side by side.

function showRedundancies(state) {
  const { redundancies } = state.data;
  if (!redundancies) return;
  byId("redundancies").hidden = false;
  const box = section("redundancies", "Repeated work", "Native code that loads or stores again what an earlier call did, in the whole recording.");
  if (!redundancies.length) {
    box.append(el("p", { class: "empty" }, "None above what is usual."));
    return;
  }
  const columns = [
    { id: "quantity", title: "CPU", hint: "CPU time of what is repeated, with the 95 % interval", class: "strong", value: (row) => row.quantity_s,
      cell: (row) => [seconds(row.quantity_s), el("small", {}, ` ${seconds(row.quantity_s_low)} to ${seconds(row.quantity_s_high)}`)] },
    { id: "share", title: "repeated", hint: "Of the pairs of accesses in two calls, those that met the same value; behind it what is usual", value: (row) => row.redundant_share,
      cell: (row) => [`${percent(row.redundant_share)} %`, el("small", {}, ` usual ${percent(row.base_rate)} %`)] },
    { id: "traps", title: "pairs", value: (row) => row.traps, cell: (row) => `${row.traps} ${row.kind}s` },
    { id: "category", title: "kind", kind: "text", value: (row) => row.category || "", cell: (row) => row.category || "not decided" },
    { id: "place", title: "line", kind: "text", class: "place", value: (row) => `${row.file}:${row.line}`,
      cell: (row) => placeLink(row.file, row.line, state, { class: "code", title: row.file }) },
    { id: "source", title: "source", kind: "text", class: "grow", value: (row) => row.source || row.function, cell: (row) => el("span", { class: "code" }, row.source || `in ${row.function}`) },
  ];
  const path = (title, place, steps) => el("div", {}, el("div", {}, title), el("ol", { class: "callpath" },
    [...steps, place].map((step) => el("li", {}, step))));
  const open = (row) => el("div", { class: "detailbox" },
    el("p", {}, row.why, row.remedy && el("span", {}, ` Usually helps: ${row.remedy}`)), el("span", {}),
    path("The first access:", `${row.file}:${row.line}`, row.native_path),
    path("The same again:", row.partner_line === null ? "line not known" : `${row.partner_file}:${row.partner_line}`, row.partner_native_path));
  const table = new Table({ label: "Repeated work", columns, sort: "quantity", open });
  box.append(table.element);
  table.show(redundancies.map((row, id) => ({ ...row, id, order: id })));
}

// Suggestions: a section of all of them, and those of one line where it is opened.

function showSuggestions(state) {
  const { suggestions } = state.data;
  if (!suggestions.length) return;
  const box = section("suggestions", "Suggestions", "Only where a rule is certain.");
  box.append(el("div", { class: "suggestions" }, suggestions.map((each) =>
    el("article", {},
      el("h3", {}, each.file ? placeLink(each.file, each.line, state, { class: "code" }) : "The whole program", el("b", {}, each.figure)),
      suggestionText(each)))));
}

// What happens, what to write instead, and where the documentation shows both.
function suggestionText(each) {
  return [el("p", {}, each.text), el("p", {}, el("b", {}, "Instead: "), `${each.instead}.`), el("p", { class: "code link" }, each.link)];
}

// The suggestions for a line, to be shown beside its figures.
function suggestionsAt(state, file, line) {
  const found = state.data.suggestions.filter((each) => each.file === file && each.line === line);
  return found.length ? el("div", { class: "suggestion" }, found.flatMap(suggestionText)) : null;
}

// The tree of processes: who started whom, and what each used. It is of the whole time, whatever window is chosen.

const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 31: "SIGSYS" };

function ended(status) {
  if (unknown(status)) return "?";
  return status >= 0 ? String(status) : SIGNALS[-status] || `signal ${-status}`;
}

function showProcesses(state) {
  const { processes } = state.data;
  if (processes.length < 2) return;
  byId("processes").hidden = false;
  const listed = (row) => row.recorded === "listed";
  const about = (row) => [row.pid, row.origin === "fork" && "fork", listed(row) && "not recorded", row.recorded === "native" && "without Python stacks"].filter(Boolean).join(" · ");
  const columns = [
    { id: "wall", title: "lived", class: "wide", value: (row) => row.wall_s, cell: (row) => (unknown(row.wall_s) ? "?" : seconds(row.wall_s)) },
    { id: "user", title: "user", hint: "CPU time in user mode until its end, as the kernel counts it", value: (row) => row.user_s, cell: (row) => (unknown(row.user_s) ? "?" : seconds(row.user_s)) },
    { id: "system", title: "system", class: "wide", hint: "CPU time in the kernel until its end", value: (row) => row.system_s, cell: (row) => (unknown(row.system_s) ? "?" : seconds(row.system_s)) },
    { id: "samples", title: "samples", class: "wide", value: (row) => row.samples, cell: (row) => (listed(row) ? "" : count(row.samples)) },
    state.data.memory && { id: "peak", title: "peak", hint: "Most memory held", value: (row) => row.peak_bytes, cell: (row) => (unknown(row.peak_bytes) ? "" : bytes(row.peak_bytes)) },
    { id: "exit", title: "exit", value: (row) => row.exit_status, cell: (row) => ended(row.exit_status) },
    { id: "tree", title: "process", kind: "text", class: "grow named", value: (row) => -row.order, cell: (row) =>
      el("span", { style: { "padding-left": `${Math.min(row.depth, 40) * 1.2}em` }, title: row.command }, listed(row) ? row.name : el("b", {}, row.name), el("small", {}, ` ${about(row)}`)) },
  ].filter(Boolean);
  const table = new Table({ label: "Processes", columns, sort: "tree", first: 30 });
  section("processes", "Processes", "Of the whole time. Each is below the one that started it; sort by process for the tree.").append(table.element);
  table.show(processes.map((row, order) => ({ ...row, id: row.process, order })));
}

// Threads: when each of them worked, and when it waited.

class Threads {
  constructor(state) {
    this.state = state;
    this.part = state.data.threads;
    const processes = new Set(this.part.columns.process);
    const columns = [
      { id: "cpu", title: "CPU", class: "strong", value: (row) => row.values.cpu, cell: (row) => amount(row.values.cpu > 0 ? seconds(row.values.cpu / NS) : "") },
      { id: "share", title: "%", class: "wide", value: (row) => row.values.share, cell: (row) => amount(percent(row.values.share)) },
      state.data.recorded.has("wait") && { id: "wait", title: "waiting", value: (row) => row.values.wait, cell: (row) => amount(row.values.wait > 5e5 ? seconds(row.values.wait / NS) : "") },
      processes.size > 1 && { id: "process", title: "process", kind: "text", class: "wide", value: (row) => row.owner, cell: (row) => row.owner },
      { id: "name", title: "thread", kind: "text", class: "grow named", value: (row) => row.label, cell: (row) => [row.label, row.main && processes.size > 1 ? " (main)" : "", el("small", {}, ` ${row.tid ?? ""}`)] },
      { id: "strip", title: "over time", hint: "Full height is one core", kind: "text", class: "strips", cell: (row) => this.strip(row) },
    ].filter(Boolean);
    this.table = new Table({ label: "Threads", columns, sort: "cpu", first: 20 });
    section("threads", "Threads", "").append(this.table.element);
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
    const owners = new Map(this.state.data.processes.map((each) => [each.process, `${each.name} ${each.pid}`]));
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
  constructor(state) {
    this.state = state;
    this.part = state.data.spans;
    const { title, hint, columns: described } = state.data.sections.spans;
    this.scale = new Map(described.map(({ key, unit }) => [key, unit === "s" ? NS : 1]));
    const known = new Set([...Object.keys(this.part.own.grids), "times", "name"]);
    const columns = sectionColumns(state.data.sections.spans, { name: { class: "grow" } }, (key) => known.has(key));
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
      rows.push({ id: row, order: row, name: name[row], times: times[row], some: Object.values(values).some((value) => value > 0), ...values });
    }
    this.table.show(rows.filter((row) => row.id === last || row.some));
  }
}
