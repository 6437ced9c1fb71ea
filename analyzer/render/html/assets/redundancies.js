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
