// Spans that the program named: time and memory of their threads while they lasted, with the spans within them.

class Spans {
  constructor(state) {
    this.state = state;
    this.part = state.data.spans;
    const shown = (value, text) => (unknown(value) ? "" : amount(text(value)));
    const known = (name) => this.part.own.grids[name];
    const time = (name, title, hint) => known(name) && { id: name, title, hint, value: (row) => row.values[name], cell: (row) => shown(row.values[name], (value) => (value > 5e5 ? seconds(value / NS) : "")) };
    const size = (name, title, hint) => known(name) && { id: name, title, hint, value: (row) => row.values[name], cell: (row) => shown(row.values[name], (value) => (value > 0 ? bytes(value) : "")) };
    const columns = [
      { ...time("cpu", "CPU", "CPU time of their threads while they lasted"), class: "strong" },
      time("wait", "waiting"),
      time("lasted", "lasted", "Time in which one was open, added up over threads"),
      size("allocated", "allocated"),
      size("kept", "kept", "What was allocated in them and still held at the end"),
      size("copied", "copied"),
      { id: "times", title: "times", hint: "How many there are in all of the time", class: "alltime", value: (row) => row.times, cell: (row) => (unknown(row.times) ? "" : count(row.times)) },
      { id: "name", title: "span", kind: "text", class: "grow", value: (row) => row.name, cell: (row) => row.name },
    ].filter(Boolean);
    this.table = new Table({ label: "Spans", columns, sort: "cpu", first: 20 });
    byId("spans").hidden = false;
    section("spans", "Spans", "With the spans within them; of their own threads only.").append(this.table.element);
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
      for (const measure of Object.keys(this.part.own.grids)) values[measure] = this.part.own.grids[measure].sum(row, from, to);
      // What is in no span has no length, and what of it was kept is unknown.
      if (row === last) values.lasted = values.kept = null;
      rows.push({ id: row, order: row, name: name[row], times: times[row], values });
    }
    this.table.show(rows.filter((row) => row.id === last || Object.values(row.values).some((value) => value > 0)));
  }
}
