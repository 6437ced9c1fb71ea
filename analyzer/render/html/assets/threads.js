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
