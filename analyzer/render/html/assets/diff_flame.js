// The differential flame graph: the shape of one side, coloured by the difference.

const DIFF_ROW = 20;
const DIFF_LEAST = 0.0012;

class DiffFlame {
  constructor(data, page) {
    this.data = data;
    this.page = page;
    this.side = "new";
    this.zoomed = -1;
    const calls = data.calls;
    this.children = new Map();
    calls.parent.forEach((above, node) => {
      if (!this.children.has(above)) this.children.set(above, []);
      this.children.get(above).push(node);
    });
    this.box = el("div", { class: "flame", role: "tree", "aria-label": "Flame graph of the difference" });
    this.crumb = el("div", { class: "crumb", "aria-live": "polite" });
    const side = choice("Whose shape", [["new", "shape of the new"], ["base", "shape of the base"], ["both", "the larger of both"]], this.side, (value) => {
      this.side = value;
      this.draw();
    });
    section("flame", "Flame graph of the difference", "Width is one side's amount, colour the difference. The base's shape also shows what vanished.").append(
      el("div", { class: "flamebar" }, side), this.crumb, el("div", { class: "flamebox" }, this.box));
    this.box.addEventListener("keydown", (event) => this.keyed(event));
    this.draw();
  }

  values(node) {
    const values = this.data.calls.values[this.page.metric];
    return values ? { base: values.base[node] || 0, new: values.new[node] || 0, verdict: values.verdict[node] } : { base: 0, new: 0, verdict: 4 };
  }

  // The width of a node; of both sides' larger one, a caller is at least as wide as what it calls.
  width(node) {
    const values = this.values(node);
    if (this.side !== "both") return values[this.side];
    const below = (this.children.get(node) || []).reduce((sum, each) => sum + this.width(each), 0);
    return Math.max(values.base, values.new, below);
  }

  draw() {
    const tops = this.zoomed < 0 ? this.children.get(-1) || [] : [this.zoomed];
    const whole = tops.reduce((sum, node) => sum + this.width(node), 0);
    const elements = [];
    this.boxes = [];
    let depth = 0;
    const above = [];
    for (let node = this.zoomed < 0 ? -1 : this.data.calls.parent[this.zoomed]; node >= 0; node = this.data.calls.parent[node]) above.unshift(node);
    above.forEach((node) => elements.push(this.drawBox(node, 0, 1, depth++, true)));
    const left = [[tops, 0, depth]];
    while (left.length && whole > 0) {
      const [nodes, start, level] = left.shift();
      let x = start;
      for (const node of [...nodes].sort((one, two) => this.width(two) - this.width(one))) {
        const width = this.width(node) / whole;
        if (width >= DIFF_LEAST) {
          elements.push(this.drawBox(node, x, width, level, false));
          depth = Math.max(depth, level + 1);
          if (this.children.has(node)) left.push([this.children.get(node), x, level + 1]);
        }
        x += width;
      }
    }
    this.box.replaceChildren(...elements);
    this.box.style.height = `${depth * DIFF_ROW}px`;
    if (this.boxes.length) this.boxes[Math.min(above.length, this.boxes.length - 1)].element.tabIndex = 0;
    this.tell(whole);
  }

  drawBox(node, x, width, level, around) {
    const { calls, names, verdicts } = this.data;
    const values = this.values(node);
    const sure = !["no evidence", "unknown"].includes(verdicts[values.verdict]);
    const difference = values.new - values.base;
    const larger = Math.max(values.new, values.base) || 1;
    const strength = sure ? 35 + 45 * Math.min(1, Math.abs(difference) / larger) : 14 * Math.min(1, (4 * Math.abs(difference)) / larger);
    const kind = Math.abs(difference) < larger * 0.002 ? "same" : difference > 0 ? "more" : "less";
    const name = calls.function[node] < 0 ? "?" : names[calls.function[node]];
    const found = this.page.search && name.toLowerCase().includes(this.page.search.toLowerCase());
    const status = values.base === 0 && sure ? "appeared" : values.new === 0 && sure ? "gone" : "";
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-level": level + 1,
      "aria-label": `${name}: ${this.page.show(values.base)} before, ${this.page.show(values.new)} now, ${verdicts[values.verdict]}`,
      class: `box ${kind} ${status} ${found ? "found" : ""} ${around ? "around" : ""} ${width > 0.02 ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * DIFF_ROW}px`, "--strength": `${strength.toFixed(0)}%` },
      onclick: () => {
        this.zoomed = node === this.zoomed ? calls.parent[node] : node;
        byId("tip").hidden = true;
        this.draw();
        const shown = this.boxes.find((each) => each.node === node);
        if (shown) shown.element.focus({ preventScroll: true });
      },
    }, width > 0.02 ? el("span", {}, name) : "");
    tip(element, () => {
      const place = calls.file[node] < 0 ? "" : `${shortPath(names[calls.file[node]])}:${calls.line[node] ?? "?"}`;
      const box = facts(name, [["base", this.page.show(values.base)], ["new", this.page.show(values.new)], ["difference", this.page.showDifference(difference), verdicts[values.verdict]]]);
      if (place) box.append(el("div", { class: "soft code" }, place));
      return box;
    });
    this.boxes.push({ element, node });
    return element;
  }

  keyed(event) {
    if (event.key === "Escape" && this.zoomed >= 0) {
      this.zoomed = this.data.calls.parent[this.zoomed];
      this.draw();
      return;
    }
    const here = this.boxes.find((each) => each.element === event.target);
    if (!here || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const above = this.data.calls.parent[here.node];
    const siblings = this.boxes.filter((each) => this.data.calls.parent[each.node] === above);
    const at = siblings.indexOf(here);
    const next = {
      ArrowUp: this.boxes.find((each) => each.node === above),
      ArrowDown: this.boxes.find((each) => this.data.calls.parent[each.node] === here.node),
      ArrowRight: siblings[at + 1],
      ArrowLeft: siblings[at - 1],
    }[event.key];
    if (!next) return;
    this.boxes.forEach((each) => { each.element.tabIndex = -1; });
    next.element.tabIndex = 0;
    next.element.focus({ preventScroll: true });
    next.element.scrollIntoView({ block: "nearest" });
  }

  tell(whole) {
    if (!(whole > 0)) {
      this.crumb.replaceChildren("Nothing of it on this side.");
      return;
    }
    const pieces = [`${this.page.show(whole)} ${this.page.current.label}`];
    if (this.zoomed >= 0) {
      pieces.push(" in ", el("span", { class: "code" }, this.data.names[this.data.calls.function[this.zoomed]] ?? "?"), " ",
        el("button", { type: "button", class: "quiet", onclick: () => { this.zoomed = -1; this.draw(); } }, "show everything"));
    }
    this.crumb.replaceChildren(...pieces);
  }
}
