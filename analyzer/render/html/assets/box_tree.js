// A call tree drawn as boxes, callers above what they call: looking closer, walking with the arrow keys.

const BOX_ROW = 20;
const BOX_LEAST = 0.0012;

// What a graph adds: width(node), name(node), look(node) for its colour, label and tip, amount(whole), and `nothing`.
class BoxTree {
  constructor(parent, label, found) {
    this.parent = parent;
    this.found = found;
    this.zoomed = -1;
    this.boxes = [];
    this.children = new Map();
    parent.forEach((above, node) => {
      if (!this.children.has(above)) this.children.set(above, []);
      this.children.get(above).push(node);
    });
    this.box = el("div", { class: "flame", role: "tree", "aria-label": label });
    this.crumb = el("div", { class: "crumb", "aria-live": "polite" });
    this.box.addEventListener("keydown", (event) => this.keyed(event));
  }

  callees(node) {
    return this.children.get(node) || [];
  }

  sum(nodes) {
    return nodes.reduce((sum, node) => sum + this.width(node), 0);
  }

  below(...bar) {
    return [el("div", { class: "flamebar" }, ...bar), this.crumb, el("div", { class: "flamebox" }, this.box)];
  }

  zoom(node) {
    this.zoomed = node;
    this.draw();
  }

  draw() {
    const tops = this.zoomed < 0 ? this.callees(-1) : [this.zoomed];
    const whole = this.sum(tops);
    const elements = [];
    this.boxes = [];
    let depth = 0;
    const above = [];
    for (let node = this.zoomed < 0 ? -1 : this.parent[this.zoomed]; node >= 0; node = this.parent[node]) above.unshift(node);
    above.forEach((node) => elements.push(this.drawBox(node, 0, 1, depth++, true)));
    const left = [[tops, 0, depth]];
    while (left.length && whole > 0) {
      const [nodes, start, level] = left.shift();
      let x = start;
      for (const node of [...nodes].sort((one, two) => this.width(two) - this.width(one))) {
        const width = this.width(node) / whole;
        if (width >= BOX_LEAST) {
          elements.push(this.drawBox(node, x, width, level, false));
          depth = Math.max(depth, level + 1);
          if (this.children.has(node)) left.push([this.children.get(node), x, level + 1]);
        }
        x += width;
      }
    }
    this.box.replaceChildren(...elements);
    this.box.style.height = `${depth * BOX_ROW}px`;
    if (this.boxes.length) this.boxes[Math.min(above.length, this.boxes.length - 1)].element.tabIndex = 0;
    this.tell(whole);
  }

  drawBox(node, x, width, level, around) {
    const name = this.name(node);
    const { kind, label, style, about } = this.look(node);
    const wide = width > 0.02;
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-level": level + 1, "aria-label": label,
      class: `box ${kind} ${this.found(node) ? "found" : ""} ${around ? "around" : ""} ${wide ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * BOX_ROW}px`, ...style },
      onclick: () => {
        byId("tip").hidden = true;
        this.zoom(node === this.zoomed ? this.parent[node] : node);
        const shown = this.boxes.find((each) => each.node === node);
        if (shown) shown.element.focus({ preventScroll: true });
      },
    }, wide ? el("span", {}, name) : "");
    tip(element, about);
    this.boxes.push({ element, node });
    return element;
  }

  keyed(event) {
    const { parent } = this;
    if (event.key === "Escape" && this.zoomed >= 0) {
      this.zoom(parent[this.zoomed]);
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
      this.crumb.replaceChildren(this.nothing);
      return;
    }
    const pieces = [this.amount(whole)];
    if (this.zoomed >= 0) {
      pieces.push(" in ", el("span", { class: "code" }, this.name(this.zoomed)), " ",
        el("button", { type: "button", class: "quiet", onclick: () => this.zoom(-1) }, "show everything"));
    }
    this.crumb.replaceChildren(...pieces);
  }
}
