// A table that sorts by its heads, shows the first rows and then more, and may open a row.
//
// columns: { id, title, hint, kind ("text" for words), class, value(row), cell(row) }; rows are any objects with an `id`.
// A column with has(row) is folded away while no row has anything in it; `title` may be a function.

const FIRST_ROWS = 40;
const MORE_ROWS = 200;
const LEAST_ROWS = 5;

const RANKS = ["", "wide", "wide second"];

// The columns of a section as report_data/sections.py describes them, those with a title that `has` says; rows have
// their values by key. `own` says by key what is special about one.
function sectionColumns({ columns }, own = {}, has = () => true) {
  return columns.filter(({ key, title }) => title && has(key)).map(({ key, unit, title, hint, rank, main, whole }) => ({
    id: key, title, hint: hint || null, kind: unit === "text" ? "text" : null,
    class: [main && "strong", whole && "alltime", RANKS[rank - 1]].filter(Boolean).join(" "),
    value: (row) => row[key], cell: (row) => plainCell(unit, row[key]), ...own[key],
  }));
}

// A value of a unit in a table; what is unknown or too little to tell is left out.
function plainCell(unit, value) {
  if (unknown(value)) return "";
  if (unit === "s") return amount(value > 5e-4 ? seconds(value) : "");
  if (unit === "bytes") return amount(value > 0 ? bytes(value) : "");
  if (unit === "mean") return value < 9.95 ? fixed(value, 1) : count(Math.round(value));
  return unit === "share" ? amount(percent(value)) : unit === "count" ? count(value) : value;
}

// Hands a file to the reader, named after the page.
function download(end, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const name = document.title.replace(/ · tachograph$/, "").replace(/[^\w.-]+/g, "-").replace(/^[-.]+|-+$/g, "") || "tachograph";
  el("a", { href: url, download: `${name}-${end}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// A value in a table of comma-separated values. Spreadsheets run text that begins like a formula: it gets an apostrophe.
function csvCell(value) {
  if (unknown(value)) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

class Table {
  constructor({ label, columns, sort, first = FIRST_ROWS, matters = null, open = null, name = (row) => row.id, nothing = () => "Nothing here in this window." }) {
    this.columns = columns;
    this.sort = { id: sort, down: true };
    this.first = first;
    this.shown = first;
    this.matters = matters;
    this.more = false;
    this.open = open;
    this.nothing = nothing;
    this.name = name;
    this.opened = new Map();
    this.rows = [];
    this.heads = columns.map((column) => this.head(column));
    this.body = el("tbody", {});
    this.table = el("table", { class: "data", "aria-label": label }, el("thead", {}, el("tr", {}, this.heads)), this.body);
    this.after = el("div", { class: "more" });
    this.label = label;
    this.sorted = () => {};
    const save = el("button", { type: "button", class: "quiet", title: `Save the rows of “${label}” as comma-separated values`, onclick: () => download(`${label.toLowerCase().replace(/\W+/g, "-")}.csv`, "text/csv", this.csv()) }, "Save as CSV");
    this.saving = el("div", { class: "save" }, save);
    this.element = el("div", { class: "scroll" }, this.table, this.after, this.saving);
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  head(column) {
    const text = column.kind === "text" ? "text" : "";
    const title = () => (typeof column.title === "function" ? column.title() : column.title);
    if (!column.value) return el("th", { scope: "col", class: `${text} ${column.class || ""}`, title: column.hint }, column.title);
    const sorted = () => {
      const down = this.sort.id === column.id ? !this.sort.down : column.kind !== "text";
      this.sortBy(column.id, down);
      say(`Sorted by ${title()}, ${down ? "largest" : "smallest"} first`);
    };
    return el("th", { scope: "col", class: `${text} ${column.class || ""}`, "data-id": column.id },
      el("button", { type: "button", title: column.hint, onclick: sorted }, title()));
  }

  // Sorts by a column, if there is one of that id.
  sortBy(id, down) {
    if (!this.columns.some((column) => column.id === id && column.value)) return;
    this.sort = { id, down };
    this.show(this.rows);
    this.sorted();
  }

  // All rows in the chosen order, each value as it was measured: seconds and bytes. A column may have its own `csv`.
  csv() {
    const columns = this.columns.filter((column) => column.value || column.csv).flatMap((column) => column.csv || [[column.id, column.value]]);
    const lines = this.ordered.map((row) => columns.map(([, value]) => csvCell(value(row))).join(","));
    return [columns.map(([name]) => csvCell(name)).join(","), ...lines, ""].join("\r\n");
  }

  // Shows rows in the chosen order. Rows that were open stay open.
  show(rows) {
    this.rows = rows;
    const before = this.folded;
    this.folded = new Set(this.columns.filter((column) => column.has && !rows.some(column.has)));
    if (!before || before.size !== this.folded.size) requestAnimationFrame(() => this.fit());
    // Rows that hardly matter wait until they are asked for.
    if (this.matters && !this.more) this.shown = Math.min(this.first, Math.max(LEAST_ROWS, rows.filter(this.matters).length));
    const column = this.columns.find((each) => each.id === this.sort.id) || this.columns.find((each) => each.value);
    this.heads.forEach((head, place) => {
      const mine = this.columns[place] === column;
      head.classList.toggle("sorted", mine);
      head.classList.toggle("folded", this.folded.has(this.columns[place]));
      if (typeof this.columns[place].title === "function") head.querySelector("button").textContent = this.columns[place].title();
      if (mine) head.setAttribute("aria-sort", this.sort.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const sign = this.sort.down ? -1 : 1;
    const rank = (value) => (unknown(value) ? -Infinity : value);
    this.ordered = [...rows].sort((one, two) => {
      const [a, b] = [column.value(one), column.value(two)];
      if (typeof a === "string" || typeof b === "string") return sign * String(a ?? "").localeCompare(String(b ?? "")) || one.order - two.order;
      return sign * (rank(a) - rank(b) || 0) || one.order - two.order;
    });
    this.sortColumn = column;
    this.saving.hidden = !rows.length;
    this.draw();
  }

  draw() {
    const part = this.ordered.slice(0, this.shown);
    this.body.replaceChildren(...part.flatMap((row) => this.drawRow(row)));
    const left = this.ordered.length - part.length;
    this.after.replaceChildren();
    this.after.hidden = left <= 0 && this.ordered.length > 0;
    if (!this.ordered.length) this.after.append(this.nothing());
    if (left > 0) {
      this.after.append(el("button", { type: "button", class: "quiet", onclick: () => { this.shown += MORE_ROWS; this.more = true; this.draw(); } },
        left > MORE_ROWS ? `Show ${count(MORE_ROWS)} more of ${count(left)}` : left > 1 ? `Show the other ${count(left)}` : "Show one more"));
    }
  }

  // Columns of the second rank go where there is no room for them, curves first; then places are cut.
  fit() {
    const { classList } = this.table;
    const steps = ["tight", "tighter", "tightest", "least"];
    classList.remove(...steps);
    for (const next of steps) if (this.element.scrollWidth > this.element.clientWidth) classList.add(next);
  }

  drawRow(row) {
    const cells = this.columns.map((column, place) => {
      const attributes = { class: `${column.kind === "text" ? "text" : ""} ${column.class || ""} ${this.folded.has(column) ? "folded" : ""} ${this.sortColumn === column ? "sorted" : ""}` };
      return el(place === this.columns.length - 1 && column.rowHead ? "th" : "td", attributes, column.cell(row));
    });
    const isOpen = this.opened.has(row.id);
    // A row goes with the columns of a rank if all its numbers are in them; the one that sorts is always there.
    const numbers = this.columns.filter((column, place) => column.kind !== "text" && cells[place].textContent.trim());
    const ranks = ["wide", "second"].filter((rank) => numbers.length && numbers.every((column) => column !== this.sortColumn && (column.class || "").split(" ").includes(rank)));
    const line = el("tr", { class: `${this.open ? "row" : ""} ${isOpen ? "open" : ""} ${ranks.join(" ")}`, "data-row": row.id }, cells);
    if (!this.open) return [line];
    line.tabIndex = 0;
    line.setAttribute("aria-expanded", String(isOpen));
    line.addEventListener("click", (event) => event.target.closest("a, button") || this.toggle(row));
    line.addEventListener("keydown", (event) => this.keyed(event, row));
    if (!isOpen) return [line];
    const detail = el("tr", { class: "detail" }, el("td", { colspan: this.columns.length }, this.open(row)));
    return [line, detail];
  }

  keyed(event, row) {
    if (event.target !== event.currentTarget) return;
    const line = event.currentTarget;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.toggle(row);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      let next = line;
      do next = event.key === "ArrowDown" ? next.nextElementSibling : next.previousElementSibling;
      while (next && !next.classList.contains("row"));
      if (next) next.focus();
    }
  }

  toggle(row, wanted = !this.opened.has(row.id)) {
    if (wanted) this.opened.set(row.id, true);
    else this.opened.delete(row.id);
    this.draw();
    const line = this.find(row.id);
    if (line) line.focus({ preventScroll: true });
  }

  find(id) {
    return [...this.body.children].find((line) => line.dataset.row === String(id)) || null;
  }

  // Opens a row and brings it into view.
  reveal(row) {
    const place = this.ordered.findIndex((each) => each.id === row.id);
    if (place < 0) return false;
    this.shown = Math.max(this.shown, place + 5);
    this.more = true;
    this.toggle(row, true);
    const line = this.find(row.id);
    line.scrollIntoView({ block: "center" });
    return true;
  }
}
