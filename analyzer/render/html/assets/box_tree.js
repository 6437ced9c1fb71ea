// A call tree drawn as boxes, callers above what they call: looking closer, walking with the arrow keys.

const BOX_ROW = 20;
const BOX_LEAST = 0.0012;

// What a graph adds: width(node), name(node), look(node) for its colour, label and tip, amount(whole), and `nothing`.
class BoxTree {
  constructor(parent, label, found) {
    this.parent = parent;
    this.found = found;
    this.zoomed = -1;
    this.folded = true;
    this.stems = new Stems();
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
    this.toggle = stemToggle(this.folded, (folded) => this.foldStems(folded));
    return [el("div", { class: "flamebar" }, ...bar, this.toggle), this.crumb, el("div", { class: "flamebox" }, this.box)];
  }

  zoom(node) {
    this.zoomed = node;
    this.draw();
  }

  foldStems(folded) {
    this.folded = folded;
    this.toggle.firstChild.checked = folded;
    this.draw();
  }

  // The callers that all of what they call have in common, as they are drawn.
  findStems() {
    const whole = this.sum(this.callees(-1));
    const wide = (node) => this.callees(node).filter((each) => this.width(each) >= BOX_LEAST * whole);
    const found = new Stems(wide(-1).filter((each) => this.width(each) >= STEM_WIDTH * whole), wide, (node) => this.width(node));
    this.toggle.hidden = !found.any;
    this.stems = this.folded ? found : new Stems();
    if (this.stems.shown(this.zoomed) !== this.zoomed || this.stems.frames.has(this.zoomed)) this.zoomed = -1;
  }

  draw() {
    this.findStems();
    const tops = this.zoomed < 0 ? this.callees(-1) : [this.zoomed];
    const whole = this.sum(tops);
    const elements = [];
    this.boxes = [];
    let depth = 0;
    const above = [];
    for (let node = this.zoomed < 0 ? -1 : this.parent[this.zoomed]; node >= 0; node = this.parent[node]) if (this.stems.shown(node) === node) above.unshift(node);
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
          left.push([this.callees(this.stems.end(node)), x, level + 1]);
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
    const stem = this.stems.frames.get(node);
    const named = (frame) => this.name(frame);
    const name = stem ? stemName(stem, named) : this.name(node);
    const { kind, label, style, about } = this.look(node);
    const wide = width > 0.02;
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-level": level + 1, "aria-label": stem ? `${name}: ${label}` : label,
      class: `box ${kind} ${(stem || [node]).some((frame) => this.found(frame)) ? "found" : ""} ${around ? "around" : ""} ${wide ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * BOX_ROW}px`, ...style },
      onclick: () => {
        byId("tip").hidden = true;
        if (stem) this.foldStems(false);
        else this.zoom(node === this.zoomed ? this.parent[node] : node);
        const shown = this.boxes.find((each) => each.node === node);
        if (shown) shown.element.focus({ preventScroll: true });
      },
    }, wide ? el("span", {}, name) : "");
    tip(element, () => {
      const told = about();
      if (stem) told.append(stemList(stem, named));
      return told;
    });
    this.boxes.push({ element, node });
    return element;
  }

  keyed(event) {
    const { parent, stems } = this;
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
      ArrowUp: this.boxes.find((each) => each.node === stems.shown(parent[here.node])),
      ArrowDown: this.boxes.find((each) => parent[each.node] === stems.end(here.node)),
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
