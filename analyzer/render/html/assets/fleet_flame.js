// The flame graph of a fleet: the call tree by functions over all recordings.

const FLEET_ROW = 20;
const FLEET_LEAST = 0.0012;

class FleetFlame {
  constructor(data, page) {
    this.data = data;
    this.page = page;
    this.measure = "cpu";
    this.zoomed = -1;
    const { flame } = data;
    this.children = new Map();
    flame.parent.forEach((above, node) => {
      if (!this.children.has(above)) this.children.set(above, []);
      this.children.get(above).push(node);
    });
    this.box = el("div", { class: "flame", role: "tree", "aria-label": "Flame graph" });
    this.crumb = el("div", { class: "crumb", "aria-live": "polite" });
    const measures = [["cpu", "CPU"], ["wait", "waiting, all threads"]].filter(([name]) => this.sum(name, this.children.get(-1) || []) > 0);
    if (measures.length) [[this.measure]] = measures;
    const picks = choice("What the graph shows", measures, this.measure, (name) => {
      this.measure = name;
      this.zoomed = -1;
      this.draw();
    });
    section("flame", "Flame graph", "Of all recordings. Width is the amount; callers stand above what they call. Click to look closer, Escape to go back.").append(
      el("div", { class: "flamebar" }, picks), this.crumb, el("div", { class: "flamebox" }, this.box));
    this.box.addEventListener("keydown", (event) => this.keyed(event));
    this.draw();
  }

  sum(measure, nodes) {
    return nodes.reduce((sum, node) => sum + (this.data.flame[measure][node] || 0), 0);
  }

  width(node) {
    return this.data.flame[this.measure][node] || 0;
  }

  name(node) {
    const { flame, names } = this.data;
    const name = flame.name[node] < 0 ? "?" : names[flame.name[node]];
    return name === "<module>" && flame.file[node] >= 0 ? `<module> ${shortPath(names[flame.file[node]])}` : name;
  }

  draw() {
    const { flame } = this.data;
    const tops = this.zoomed < 0 ? this.children.get(-1) || [] : [this.zoomed];
    const whole = this.sum(this.measure, tops);
    const elements = [];
    this.boxes = [];
    let depth = 0;
    const above = [];
    for (let node = this.zoomed < 0 ? -1 : flame.parent[this.zoomed]; node >= 0; node = flame.parent[node]) above.unshift(node);
    above.forEach((node) => elements.push(this.drawBox(node, 0, 1, depth++, true)));
    const left = [[tops, 0, depth]];
    while (left.length && whole > 0) {
      const [nodes, start, level] = left.shift();
      let x = start;
      for (const node of [...nodes].sort((one, two) => this.width(two) - this.width(one))) {
        const width = this.width(node) / whole;
        if (width >= FLEET_LEAST) {
          elements.push(this.drawBox(node, x, width, level, false));
          depth = Math.max(depth, level + 1);
          if (this.children.has(node)) left.push([this.children.get(node), x, level + 1]);
        }
        x += width;
      }
    }
    this.box.replaceChildren(...elements);
    this.box.style.height = `${depth * FLEET_ROW}px`;
    if (this.boxes.length) this.boxes[Math.min(above.length, this.boxes.length - 1)].element.tabIndex = 0;
    this.tell(whole);
  }

  drawBox(node, x, width, level, around) {
    const { flame, names, of } = this.data;
    const name = this.name(node);
    const folded = flame.folded[node];
    const file = flame.file[node] < 0 ? "" : names[flame.file[node]];
    const found = this.page.search && `${name} ${file}`.toLowerCase().includes(this.page.search.toLowerCase());
    const own = this.width(node) - this.sum(this.measure, this.children.get(node) || []);
    const whole = this.sum(this.measure, this.children.get(-1) || []);
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-level": level + 1,
      "aria-label": `${name}, ${percent(this.width(node) / whole) || "0"} %, ${seconds(this.width(node))}`,
      class: `box ${folded ? "special" : /^(site-packages|python)\//.test(file) ? "other" : "own"} ${found ? "found" : ""} ${around ? "around" : ""} ${width > 0.02 ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * FLEET_ROW}px`, ...(this.measure === "wait" ? { "--hue": "var(--wait)" } : {}) },
      onclick: () => {
        this.zoomed = node === this.zoomed ? flame.parent[node] : node;
        byId("tip").hidden = true;
        this.draw();
        const shown = this.boxes.find((each) => each.node === node);
        if (shown) shown.element.focus({ preventScroll: true });
      },
    }, width > 0.02 ? el("span", {}, name) : "");
    tip(element, () => {
      const rows = [["with calls", seconds(this.width(node)), `${percent(this.width(node) / whole) || "<0.1"} %`], ["of that its own", seconds(Math.max(0, own)), `${percent(own / whole) || "0"} %`]];
      if (flame.recordings[node] !== null) rows.push(["recordings", count(flame.recordings[node]), `of ${count(of)}`]);
      if (folded) rows.push(["boxes that are too small", count(folded), ""]);
      const box = facts(name, rows);
      if (file) box.append(el("div", { class: "soft code" }, file));
      return box;
    });
    this.boxes.push({ element, node });
    return element;
  }

  keyed(event) {
    const { parent } = this.data.flame;
    if (event.key === "Escape" && this.zoomed >= 0) {
      this.zoomed = parent[this.zoomed];
      this.draw();
      return;
    }
    const here = this.boxes.find((each) => each.element === event.target);
    if (!here || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const siblings = this.boxes.filter((each) => parent[each.node] === parent[here.node]);
    const at = siblings.indexOf(here);
    const next = {
      ArrowUp: this.boxes.find((each) => each.node === parent[here.node]),
      ArrowDown: this.boxes.find((each) => parent[each.node] === here.node),
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
      this.crumb.replaceChildren("Nothing of it was recorded.");
      return;
    }
    const pieces = [`${seconds(whole)} ${this.measure === "cpu" ? "CPU" : "waiting, all threads"}`];
    if (this.zoomed >= 0) {
      pieces.push(" in ", el("span", { class: "code" }, this.name(this.zoomed)), " ",
        el("button", { type: "button", class: "quiet", onclick: () => { this.zoomed = -1; this.draw(); } }, "show everything"));
    }
    this.crumb.replaceChildren(...pieces);
  }
}
