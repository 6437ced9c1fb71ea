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
