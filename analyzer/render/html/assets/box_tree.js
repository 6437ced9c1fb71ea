// The flame graph of all pages: a call tree drawn as boxes, callers above what they call (an icicle), for looking closer,
// walking with the arrow keys, and folding common callers.

const BOX_ROW = 20;
const BOX_LEAST = 0.0012; // of the graph; about one pixel and a half
const STRIP_LEAST = 0.004; // in narrower boxes the strip of whose time it is would be dots
const WIDE_LEAST = 0.01;
const NARROW_ROWS = 5; // below the last row with a wider box: imports are fifty rows of hair's breadth

// The stem of a flame graph: frames that do hardly anything but call the next one, drawn as one box.

const MIN_STEM = 4; // shorter ones stay as they are
const STEM_WIDTH = 0.05; // of the graph; narrower ones hide nothing
const STEM_SHARE = 0.995; // what a frame of the stem passes on of its own, at least

// The frames from `first` on, outermost first; the last one is the last that calls a single other. None if they are too few.
function stemFrom(first, callees, width) {
  const stem = [];
  for (let frame = first; ;) {
    const below = callees(frame);
    if (below.length !== 1 || width(below[0]) < STEM_SHARE * width(frame)) break;
    stem.push(frame);
    frame = below[0];
  }
  return stem.length < MIN_STEM ? [] : stem;
}

// Stems by their first frames, and by every further frame of a stem the first one.
class Stems {
  constructor(firsts = [], callees = null, width = null) {
    this.frames = new Map();
    this.first = new Map();
    for (const first of firsts) {
      const stem = stemFrom(first, callees, width);
      if (!stem.length) continue;
      this.frames.set(first, stem);
      stem.slice(1).forEach((frame) => this.first.set(frame, first));
    }
  }

  get any() {
    return this.frames.size > 0;
  }

  // The frame whose callees are drawn below a box.
  end(frame) {
    const stem = this.frames.get(frame);
    return stem ? stem.at(-1) : frame;
  }

  // The frame whose box stands for another.
  shown(frame) {
    return this.first.get(frame) ?? frame;
  }
}

const stemName = (stem, name) => `${stem.length} frames, from ${name(stem[0])} to ${name(stem.at(-1))}`;

// What the tip of a stem's box adds: all its frames.
function stemList(stem, name) {
  const shown = stem.length <= 24 ? stem.map(name) : [...stem.slice(0, 12).map(name), `… ${stem.length - 24} more …`, ...stem.slice(-12).map(name)];
  return el("div", { class: "soft code" }, shown.map((each) => el("div", {}, each)), el("div", {}, "Click to see them one below the other."));
}

// The box to tick with which stems are folded.
function stemToggle(folded, change) {
  const input = el("input", { type: "checkbox", name: "stem", onchange: (event) => change(event.target.checked) });
  input.checked = folded;
  return el("label", {}, input, "common callers in one box");
}

// A graph adds: width(node), name(node), matches(node) for the search, amount(whole), `nothing` in place of boxes, and
// look(node, stem) with a box's kind, label (behind its name), style, strip ([[class, share], ...]) and about(), its tip.
// Nodes are numbers of `parent`; a graph with others has its own above(node) and callees(node), where null is the whole.
class BoxTree {
  constructor(label, parent = []) {
    this.parent = parent;
    this.zoomed = null;
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

  above(node) {
    return this.parent[node] < 0 ? null : this.parent[node];
  }

  callees(node) {
    return this.children.get(node ?? -1) || [];
  }

  sum(nodes) {
    return nodes.reduce((sum, node) => sum + this.width(node), 0);
  }

  // What is in all of the graph.
  get whole() {
    return this.sum(this.callees(null));
  }

  get foldable() {
    return true;
  }

  // The elements of a section, behind what the bar above the graph begins with.
  below(...bar) {
    this.toggle = stemToggle(this.folded, (folded) => this.foldStems(folded));
    const save = el("button", { type: "button", class: "quiet", title: "Save the graph as it is drawn now", onclick: () => download("flame.svg", "image/svg+xml", this.svgText()) }, "Save as SVG");
    return [el("div", { class: "flamebar" }, ...bar, this.toggle, save), this.crumb, el("div", { class: "flamebox" }, this.box)];
  }

  // The graph as a picture of its own, in the colours of the page.
  svgText() {
    const [wide, margin, letter] = [1200, 4, 6.7];
    const height = Math.max(BOX_ROW, parseFloat(this.box.style.height) || 0);
    const title = [document.title, this.crumb.firstChild?.textContent].filter(Boolean).join(": ");
    const page = getComputedStyle(document.body);
    const picture = svg("svg", { viewBox: `0 0 ${wide} ${height + 24}`, width: wide, height: height + 24, "font-family": "ui-monospace, monospace", "font-size": 11 },
      svg("title", {}, title), svg("rect", { width: wide, height: height + 24, fill: page.backgroundColor }),
      svg("text", { x: margin, y: 16, fill: page.color }, title));
    for (const { element } of this.boxes) {
      const [left, width, top] = [element.style.left, element.style.width, element.style.top].map(parseFloat);
      const { backgroundColor, color } = getComputedStyle(element);
      const [x, across] = [(left / 100) * wide, (width / 100) * wide];
      const name = element.querySelector("span")?.textContent || "";
      const room = Math.floor((across - 2 * margin) / letter);
      const text = name.length <= room ? name : room > 3 ? `${name.slice(0, room - 1)}…` : "";
      picture.append(svg("g", {}, svg("title", {}, element.getAttribute("aria-label")),
        svg("rect", { x: x.toFixed(2), y: top + 24, width: Math.max(0.5, across - 0.5).toFixed(2), height: BOX_ROW - 1, fill: backgroundColor }),
        text && svg("text", { x: (x + margin).toFixed(2), y: top + 24 + 14, fill: color }, text)));
    }
    return new XMLSerializer().serializeToString(picture);
  }

  zoom(node) {
    const shown = node === null ? null : this.stems.shown(node);
    this.zoomed = shown === null || this.stems.frames.has(shown) ? null : shown;
    byId("tip").hidden = true;
    this.draw();
    this.focus(this.zoomed === null ? this.boxes[0] : this.boxOf(this.zoomed));
  }

  foldStems(folded) {
    this.folded = folded;
    this.toggle.firstChild.checked = folded;
    this.draw();
  }

  // Draws the frames of all stems one below the other, and looks at the first of this one.
  unfold(node) {
    byId("tip").hidden = true;
    this.foldStems(false);
    this.focus(this.boxOf(node));
  }

  // The callers that all of what they call have in common, as they are drawn.
  findStems() {
    const whole = this.whole;
    const wide = (node) => this.callees(node).filter((each) => this.width(each) >= BOX_LEAST * whole);
    const firsts = () => wide(null).filter((each) => this.width(each) >= STEM_WIDTH * whole);
    const found = this.foldable ? new Stems(firsts(), wide, (node) => this.width(node)) : new Stems();
    this.toggle.hidden = !found.any;
    this.stems = this.folded ? found : new Stems();
    if (this.zoomed !== null && (this.stems.shown(this.zoomed) !== this.zoomed || this.stems.frames.has(this.zoomed))) this.zoomed = null;
  }

  draw() {
    this.findStems();
    const whole = this.zoomed === null ? this.whole : this.width(this.zoomed);
    const elements = [];
    this.boxes = [];
    let depth = 0;
    const around = [];
    for (let node = this.zoomed === null ? null : this.above(this.zoomed); node !== null; node = this.above(node)) if (this.stems.shown(node) === node) around.unshift(node);
    around.forEach((node) => elements.push(this.drawBox(node, 0, 1, depth++, true)));
    const left = [[this.zoomed === null ? this.callees(null) : [this.zoomed], 0, depth]];
    let wide = depth; // the last row with a wide box: rows come one after the other, and no box is wider than its caller
    this.goesOn = false;
    while (left.length && whole > 0) {
      const [nodes, start, level] = left.shift();
      let x = start;
      for (const node of [...nodes].sort((one, two) => this.width(two) - this.width(one))) {
        const width = this.width(node) / whole;
        if (width >= BOX_LEAST) {
          if (width >= WIDE_LEAST) wide = level;
          const shown = level <= wide + NARROW_ROWS || this.matches(node);
          if (shown) {
            elements.push(this.drawBox(node, x, width, level, false));
            depth = Math.max(depth, level + 1);
          }
          this.goesOn ||= !shown;
          left.push([this.callees(this.stems.end(node)), x, level + 1]);
        }
        x += width;
      }
    }
    this.box.replaceChildren(...elements);
    this.box.style.height = `${depth * BOX_ROW}px`;
    if (this.boxes.length) this.boxes[Math.min(around.length, this.boxes.length - 1)].element.tabIndex = 0;
    this.tell(whole);
  }

  drawBox(node, x, width, level, around) {
    const stem = this.stems.frames.get(node);
    const named = (frame) => this.name(frame);
    const name = stem ? stemName(stem, named) : this.name(node);
    const { kind, label, style = {}, strip = [], about } = this.look(node, stem);
    const wide = width > 0.02;
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-level": level + 1, "aria-label": `${name}, ${label}`,
      class: `box ${kind} ${(stem || [node]).some((frame) => this.matches(frame)) ? "found" : ""} ${around ? "around" : ""} ${wide ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * BOX_ROW}px`, ...style },
      onclick: () => (stem ? this.unfold(node) : this.zoom(node === this.zoomed ? this.above(node) : node)),
    }, wide ? el("span", {}, name) : "");
    let at = 0;
    for (const [part, share] of width >= STRIP_LEAST ? strip : []) {
      element.append(el("i", { class: part, style: { left: `${100 * at}%`, width: `${100 * share}%` } }));
      at += share;
    }
    tip(element, () => {
      const facts = about();
      if (stem) facts.append(stemList(stem, named));
      return facts;
    });
    this.boxes.push({ element, node });
    return element;
  }

  boxOf(node) {
    return this.boxes.find((each) => each.node === node);
  }

  focus(box) {
    if (!box) return;
    this.boxes.forEach((each) => { each.element.tabIndex = -1; });
    box.element.tabIndex = 0;
    box.element.focus({ preventScroll: true });
    box.element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  keyed(event) {
    if (event.key === "Escape" && this.zoomed !== null) {
      event.preventDefault();
      this.zoom(this.above(this.zoomed));
      return;
    }
    const here = this.boxes.find((each) => each.element === event.target);
    if (!here || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const caller = this.above(here.node);
    const siblings = this.boxes.filter((each) => this.above(each.node) === caller);
    const at = siblings.indexOf(here);
    this.focus({
      ArrowUp: caller === null ? null : this.boxOf(this.stems.shown(caller)),
      ArrowDown: this.boxes.find((each) => this.above(each.node) === this.stems.end(here.node)),
      ArrowRight: siblings[at + 1],
      ArrowLeft: siblings[at - 1],
    }[event.key]);
  }

  // What the line above the graph says behind the name of the box that is looked at, and at its end.
  inside() {
    return [" "];
  }

  remarks() {
    return [];
  }

  tell(whole) {
    if (!(whole > 0)) {
      this.crumb.replaceChildren(this.nothing);
      return;
    }
    const pieces = [this.amount(whole)];
    if (this.zoomed !== null) {
      pieces.push(" in ", el("span", { class: "code" }, this.name(this.zoomed)), ...this.inside(this.zoomed),
        el("button", { type: "button", class: "quiet", onclick: () => this.zoom(null) }, "show everything"));
    }
    const more = this.goesOn ? [el("span", { class: "soft" }, " · narrow boxes go on below: click one to look closer")] : [];
    this.crumb.replaceChildren(...pieces, ...this.remarks(whole), ...more);
  }
}
