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
