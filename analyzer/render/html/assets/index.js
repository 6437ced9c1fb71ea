// The index of several recordings: a table, and the choice of two for a diff. Totals that are not known yet are asked for.

const ASK_MS = 700;
const BUSY_MS = 1000; // what takes less needs no bar

class IndexPage {
  constructor(data) {
    this.data = data;
    this.base = null;
    this.search = "";
    const text = (id, title, kind, hint) => ({ id, title, hint, kind: "text", class: kind, value: (row) => row[id], cell: (row) => row[id] });
    const amount_ = (id, title, show, hint, kind = "") => ({ id, title, hint, class: kind, value: (row) => this.totals(row)[id], cell: (row) => this.total(row, id, show) });
    this.table = new Table({ label: "Recordings", sort: "created_utc", first: 50, nothing: () => (this.search ? `Nothing matches “${this.search}”.` : "There are none."), columns: [
      { id: "diff", title: "diff", class: "text", cell: (row) => row.error === null && this.button(row) },
      { id: "name", title: "recording", kind: "text", class: "text", value: (row) => row.name, cell: (row) => this.link(row) },
      amount_("cpu", "CPU", seconds, "CPU time of all threads and processes", "strong"),
      amount_("wall", "time", seconds, "From the beginning of the recording to its end"),
      amount_("wait", "waiting", seconds, "Waiting of the main thread", "wide"),
      amount_("peak", "peak", bytes, "Memory held at the peak", "wide"),
      { ...text("created_utc", "begun", "text wide second"), cell: (row) => row.when || "?" },
      text("labels", "labels", "text wide"),
      { ...text("program", "program", "grow"), cell: (row) => el("span", { class: row.error === null ? "code" : "soft", title: row.error ?? row.program }, row.error ?? row.program) },
    ] });
    this.busy = el("p", { class: "hint", role: "status", hidden: true });
    section("lines", "Recordings", "").append(this.busy, this.table.element);
    // The page may be shown again as it was left.
    addEventListener("pageshow", () => this.rest());
    this.show();
    this.ask();
  }

  // A bar for work of the server: without an amount, if it is not known how much of it is done.
  work(text, done = null, of = null) {
    this.busy.replaceChildren(el("progress", done === null ? {} : { value: done, max: of }), ` ${text}`);
    this.busy.hidden = false;
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = null;
    this.busy.hidden = true;
  }

  // The browser shows this page until it has the next one.
  leave(text) {
    this.rest();
    this.timer = setTimeout(() => this.work(text), BUSY_MS);
  }

  totals(row) {
    return this.data.totals[row.address] || {};
  }

  // A total that is still to come is empty, one that is unknown a question mark.
  total(row, id, show) {
    return row.address in this.data.totals ? show(this.totals(row)[id]) : "";
  }

  link(row) {
    if (row.error !== null) return row.name;
    const leave = (event) => event.ctrlKey || event.metaKey || event.shiftKey || this.leave(`The page of ${row.name} is being made.`);
    return [el("a", { href: `report/${row.address}`, onclick: leave }, row.name), row.being_written && el("small", {}, " is still being written")];
  }

  // The first click chooses the base, the second the recording that is compared with it.
  button(row) {
    const mine = this.base === row.address;
    const text = mine ? "base" : this.base === null ? "compare" : "with this";
    return el("button", { type: "button", class: "quiet", "aria-pressed": String(mine), onclick: () => this.choose(row) }, text);
  }

  choose(row) {
    if (this.base !== null && this.base !== row.address) {
      this.leave(`The diff with ${row.name} is being made.`);
      location.href = `diff/${this.base}/${row.address}`;
      return;
    }
    this.base = this.base === null ? row.address : null;
    this.show();
    say(this.base === null ? "No base is chosen" : `${row.name} is the base: choose the recording to compare with it`);
  }

  show() {
    const base = this.data.recordings.find((row) => row.address === this.base);
    const hint = base ? `The base is ${base.name}: click “with this” at the recording to compare with it.` : "Click a name for its report, or “compare” at two recordings for what changed from the first to the second.";
    byId("lines").querySelector(".hint").textContent = hint;
    const wanted = this.search.toLowerCase();
    const rows = this.data.recordings.map((row, order) => ({ ...row, id: row.address, order }));
    this.table.show(rows.filter((row) => !wanted || [row.name, row.program, row.labels].some((each) => each.toLowerCase().includes(wanted))));
  }

  get pending() {
    return this.data.recordings.some((row) => !(row.address in this.data.totals) && row.error === null && !row.being_written);
  }

  async ask() {
    const began = performance.now();
    while (this.pending) {
      await new Promise((done) => setTimeout(done, ASK_MS));
      let answer = null;
      try {
        answer = await (await fetch("totals")).json();
      } catch {
        break; // the command has ended
      }
      const done = Object.keys(answer).length;
      // The page that the reader waits for has its own bar.
      if (performance.now() - began > BUSY_MS && !this.timer) this.work("The recordings are being added up.", done, this.data.recordings.length);
      if (done === Object.keys(this.data.totals).length) continue;
      this.data.totals = answer;
      this.show();
    }
    if (!this.timer) this.rest();
  }
}

openPage((data) => {
  const page = new IndexPage(data);
  showNavigation();
  return (search) => {
    page.search = search;
    page.show();
  };
});
