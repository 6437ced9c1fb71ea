// The tree behind a flame graph: values in the window, as it is or turned over (callers under the functions that spend).

const METRICS = {
  cpu: { title: "CPU", parts: CPU, show: (value) => seconds(value / NS) },
  main_wait: { title: "waiting, main thread", parts: ["main_wait"], show: (value) => seconds(value / NS), hue: "--wait" },
  wait: { title: "waiting, all threads", parts: ["wait"], show: (value) => seconds(value / NS), hue: "--wait" },
  allocated: { title: "allocated", parts: ["allocated"], show: bytes, hue: "--memory" },
  live: { title: "held", button: "live", parts: ["net"], show: bytes, hue: "--memory" },
  copied: { title: "copied", parts: ["copied"], show: bytes, hue: "--copies" },
};

// The moments at which the graph of what is held may look, by column of the profile; "moment" is one that was picked.
const MOMENTS = {
  live_at_peak_bytes: { title: "at peak", at: "peak_at" },
  live_at_resident_peak_bytes: { title: "at resident peak", at: "resident_peak_at" },
  live_at_end_bytes: { title: "at end", at: "end_at" },
  moment: { title: "at a moment" },
};

// Own values of all nodes by part of the metric. What is held at a moment is counted from the start up to it.
function ownValues(data, metric, from, to, held) {
  const { parent, own } = data.flame;
  if (metric === "live" && data.flame.held[held.when]) return [data.flame.held[held.when]];
  if (metric === "live") [from, to] = [0, held.moment];
  return METRICS[metric].parts.map((part) => {
    const values = new Float64Array(parent.length);
    for (let node = 0; node < values.length; node++) values[node] = Math.max(0, own.sum(part, node, from, to) || 0);
    return values;
  });
}

const KERNEL = -3; // the code of boxes for the time in the kernel
const IN_KERNEL = CPU.indexOf("kernel");

// Own values of a node in pieces, each with the code of a further box below its own, or null. The kernel's part has one.
function withKernelApart(values, apart) {
  if (!apart || !(values[IN_KERNEL] > 0)) return [[null, values]];
  const only = values.map((value, part) => (part === IN_KERNEL ? value : 0));
  const rest = values.map((value, part) => (part === IN_KERNEL ? 0 : value));
  return rest.some((value) => value > 0) ? [[null, rest], [KERNEL, only]] : [[KERNEL, only]];
}

// Nodes as { name key, parent, children, value, parts }, largest children first. `fold` leaves out frames of libraries,
// `python` those of native code and of the kernel: what they did is their callers'.
function flameTree(data, metric, from, to, { inverted = false, fold = false, python = false, held = null } = {}) {
  const { parent, function: code, functions } = data.flame;
  const own = ownValues(data, metric, from, to, held);
  const root = node(null, null);
  const apart = metric === "cpu" && !python;
  const hidden = (number) => code[number] >= 0 && (functions.module[code[number]] ? python : fold && !functions.inside[code[number]]);
  if (inverted) {
    for (let leaf = 0; leaf < parent.length; leaf++) {
      const values = own.map((part) => part[leaf]);
      if (!values.some((value) => value > 0)) continue;
      for (const [more, part] of withKernelApart(values, apart)) {
        let place = root;
        add(root, part);
        if (more !== null) add((place = child(place, more)), part);
        for (let number = leaf; number >= 0; number = parent[number]) {
          if (hidden(number)) continue;
          place = child(place, code[number]);
          add(place, part);
        }
      }
    }
  } else {
    const made = new Array(parent.length);
    for (let number = 0; number < parent.length; number++) {
      const above = parent[number] < 0 ? root : made[parent[number]];
      made[number] = hidden(number) ? above : child(above, code[number]);
      const values = own.map((part) => part[number]);
      if (!values.some((value) => value > 0)) continue;
      for (const [more, part] of withKernelApart(values, apart)) {
        for (let place = more === null ? made[number] : child(made[number], more); place; place = place.parent) add(place, part);
      }
    }
  }
  order(root);
  return root;
}

const node = (code, parent) => ({ code, parent, byCode: new Map(), children: [], value: 0, parts: null, depth: parent ? parent.depth + 1 : 0 });

function child(place, code) {
  let found = place.byCode.get(code);
  if (!found) {
    found = node(code, place);
    place.byCode.set(code, found);
  }
  return found;
}

function add(place, values) {
  if (!place.parts) place.parts = values.map(() => 0);
  values.forEach((value, part) => {
    place.parts[part] += value;
    place.value += value;
  });
}

function order(root) {
  const left = [root];
  while (left.length) {
    const place = left.pop();
    place.children = [...place.byCode.values()].filter((each) => each.value > 0).sort((one, two) => two.value - one.value);
    left.push(...place.children);
  }
}

// A demangled name without its arguments, its type and what stands between < and >; operators are as they are.
function shortNative(name) {
  if (/^[A-Za-z_]\w*(\.\w+){2,}$/.test(name)) return name.split(".").slice(-2).join(".");
  const method = /^<+[&*]*(.*?)(?: as .*)?>::([^>]*)$/.exec(name); // of Rust: that of the type, without the trait
  if (method) return `${shortNative(method[1])}::${method[2]}`;
  if (name.includes("operator") || !/[(<]/.test(name)) return name;
  let depth = 0;
  let kept = "";
  for (const letter of name) {
    if ("<(".includes(letter) && depth++ > 0) continue;
    if (">)".includes(letter)) depth = Math.max(0, depth - 1);
    if (depth === 0 || "<(".includes(letter)) kept += letter;
  }
  if (depth > 0) kept += kept.endsWith("<") ? ">" : ")"; // a long name was cut
  return kept.replaceAll("()", "").replace(/ const$/, "").split(" ").pop() || name;
}

// The flame graph (an icicle: callers above what they call).

const ROW = 20;
const MIN_WIDTH = 0.0012; // of the graph; about one pixel and a half
const MIN_STRIP = 0.004; // in narrower boxes the strip of whose time it is would be dots

class FlameGraph {
  constructor(state) {
    this.state = state;
    this.data = state.data;
    const recorded = this.data.recorded;
    this.metrics = Object.keys(METRICS).filter((name) => METRICS[name].parts.some((part) => recorded.has(part)));
    this.metric = this.metrics.find((name) => this.total(name) > 0) || "cpu";
    const peak = Object.keys(MOMENTS).find((name) => this.data.flame.held[name]);
    this.folded = true;
    this.options = { inverted: false, fold: false, python: false, held: { when: peak || "moment", moment: this.state.to } };
    this.zoomed = null;
    this.box = el("div", { class: "flame", role: "tree", "aria-label": "Flame graph" });
    this.crumb = el("div", { class: "crumb", "aria-live": "polite" });
    const toggles = [["inverted", "turn over (callers below)"]];
    if (this.data.flame.functions.module.some(Boolean)) toggles.push(["python", "without native frames"]);
    if (this.data.scope !== "all") toggles.push(["fold", "without libraries"]);
    const checks = toggles.map(([name, text]) => el("label", {}, el("input", { type: "checkbox", name, onchange: (event) => {
      this.options[name] = event.target.checked;
      this.zoomed = null;
      this.rebuild();
    } }), text));
    const picks = choice("What the graph shows", this.metrics.map((name) => [name, METRICS[name].button || METRICS[name].title]), this.metric, (name) => {
      this.metric = name;
      this.zoomed = null;
      this.rebuild();
    });
    section("flame", "Flame graph", "Width is the amount; callers stand above what they call. Click to look closer, Escape to go back.").append(
      el("div", { class: "flamebar" }, picks, this.moments(), checks, (this.toggle = stemToggle(this.folded, (folded) => this.foldStems(folded)))), this.crumb, el("div", { class: "flamebox" }, this.box));
    this.box.addEventListener("keydown", (event) => this.keyed(event));
    state.listen((changed) => {
      if (changed.includes("moment")) this.pick(state.moment === null ? Object.keys(this.data.flame.held)[0] || "moment" : "moment");
      else if (changed.every((name) => name === "search")) this.draw();
      else this.rebuild();
    });
    this.rebuild();
  }

  // When to look at what is held: at a moment that has a name, or at one that is picked here or on the timeline.
  moments() {
    const known = Object.keys(MOMENTS).filter((name) => name === "moment" || this.data.flame.held[name]);
    this.slider = el("input", { type: "range", min: 0, max: this.data.bins.count, value: this.state.to, "aria-label": "Moment",
      oninput: (event) => this.state.change({ moment: Number(event.target.value) }) });
    this.when = choice("When", known.map((name) => [name, MOMENTS[name].title]), this.options.held.when, (name) => {
      if (name !== "moment") this.state.change({ moment: null });
      else if (this.state.moment === null) this.state.change({ moment: Math.round((this.state.from + this.state.to) / 2) });
      this.pick(name);
    });
    return el("span", { class: "when" }, this.when, this.slider);
  }

  pick(when) {
    this.options.held.when = when;
    this.when.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === when)));
    this.rebuild();
  }

  total(metric) {
    if (metric === "live") return this.data.memory ? this.data.memory.peak : 0;
    return METRICS[metric].parts.reduce((sum, part) => sum + (this.state.overall(part) || 0), 0);
  }

  rebuild() {
    const path = this.zoomed ? this.path(this.zoomed) : [];
    const picked = this.options.held.when === "moment";
    if (this.state.moment !== null) this.options.held.moment = this.state.moment;
    this.when.parentNode.hidden = this.metric !== "live";
    this.slider.hidden = !picked;
    this.slider.value = String(this.options.held.moment);
    this.slider.setAttribute("aria-valuetext", seconds(this.state.at(this.options.held.moment)));
    this.root = flameTree(this.data, this.metric, this.state.from, this.state.to, this.options);
    let place = this.root;
    for (const code of path) place = place && place.byCode.get(code);
    this.zoomed = place && place !== this.root && place.value > 0 ? place : null;
    const wide = (frame) => frame.children.filter((each) => each.value >= MIN_WIDTH * this.root.value);
    const found = this.options.inverted ? new Stems() : new Stems(wide(this.root).filter((each) => each.value >= STEM_WIDTH * this.root.value), wide, (frame) => frame.value);
    this.toggle.hidden = !found.any;
    this.stems = this.folded ? found : new Stems();
    if (this.stems.shown(this.zoomed) !== this.zoomed) this.zoomed = null;
    this.draw();
  }

  foldStems(folded) {
    this.folded = folded;
    this.toggle.firstChild.checked = folded;
    this.rebuild();
  }

  path(place) {
    const codes = [];
    for (; place.parent; place = place.parent) codes.unshift(place.code);
    return codes;
  }

  describe(code) {
    if (code < 0) return { name: this.data.flame.special[code] || "?", file: null, line: null, inside: false, special: true };
    const { name, file, line, inside, module, place } = this.data.flame.functions;
    if (module[code]) return { name: name[code].startsWith("[") ? `[${module[code]}]` : shortNative(name[code]), full: name[code], file: null, line: null, module: module[code], place: place[code], inside: false, special: false };
    // Modules have all one name: their file tells them apart.
    const called = name[code] === "<module>" && file[code] ? `<module> ${shortPath(file[code])}` : name[code];
    return { name: called, file: file[code], line: line[code], inside: Boolean(inside[code]), special: false };
  }

  draw() {
    const top = this.zoomed || this.root;
    this.boxes = [];
    const drawn = [];
    let depth = 0;
    for (let above = this.zoomed && this.zoomed.parent; above && above.parent; above = above.parent) if (this.stems.shown(above) === above) drawn.unshift(above);
    const ancestors = drawn.map((place) => this.drawBox(place, 0, 1, depth++, true));
    const left = this.zoomed ? [[top, 0, depth]] : this.spread(top, 0, depth - 1, top.value);
    const elements = [...ancestors];
    let found = 0;
    while (left.length) {
      const [place, x, level] = left.shift();
      depth = Math.max(depth, level + 1);
      elements.push(this.drawBox(place, x, place.value / top.value, level, false));
      left.push(...this.spread(place, x, level, top.value));
    }
    if (this.state.search) found = this.foundValue(top);
    this.box.replaceChildren(...elements);
    this.box.style.height = `${depth * ROW}px`;
    if (this.boxes.length) this.boxes[Math.min(this.boxes.length - 1, drawn.length)].element.tabIndex = 0;
    this.tell(top, found);
  }

  spread(place, x, level, whole) {
    const result = [];
    for (const each of this.stems.end(place).children) {
      const width = each.value / whole;
      if (width >= MIN_WIDTH) result.push([each, x, level + 1]);
      x += width;
    }
    return result;
  }

  drawBox(place, x, width, level, around) {
    const stem = this.stems.frames.get(place);
    const told = stem ? { name: stemName(stem, (frame) => this.describe(frame.code).name), special: true } : this.describe(place.code);
    const found = this.state.search && (stem || [place]).some((frame) => this.matches(frame));
    const hue = METRICS[this.metric].hue;
    const share = this.root.value > 0 ? place.value / this.root.value : 0;
    const text = `${told.name}, ${percent(share) || "0"} %, ${METRICS[this.metric].show(place.value)}`;
    const element = el("button", {
      type: "button", role: "treeitem", tabindex: "-1", "aria-label": text, "aria-level": level + 1,
      class: `box ${place.code === KERNEL ? "kernel" : told.special ? "special" : told.module ? "native" : told.inside ? "own" : "other"} ${found ? "found" : ""} ${around ? "around" : ""} ${width > 0.02 ? "named" : ""}`,
      style: { left: `${x * 100}%`, width: `${width * 100}%`, top: `${level * ROW}px`, ...(hue ? { "--hue": `var(${hue})` } : {}) },
      onclick: () => (stem ? this.unfold(place) : this.zoom(place === this.zoomed ? place.parent : place)),
    }, width > 0.02 ? el("span", {}, told.name) : "");
    if (this.metric === "cpu" && place.parts && width >= MIN_STRIP) {
      let at = 0;
      place.parts.forEach((part, number) => {
        if (part <= 0) return;
        const size = (100 * part) / place.value;
        element.append(el("i", { class: `back-${CPU[number]}`, style: { left: `${at}%`, width: `${size}%` } }));
        at += size;
      });
    }
    tip(element, () => {
      const about = this.about(place, told);
      if (stem) about.append(stemList(stem, (frame) => this.describe(frame.code).name));
      return about;
    });
    this.boxes.push({ element, place });
    return element;
  }

  about(place, told) {
    const { show, parts, title } = METRICS[this.metric];
    const share = place.value / this.root.value;
    const own = place.value - place.children.reduce((sum, each) => sum + each.value, 0);
    const margins = this.metric === "cpu" ? interval(...wilson(share, this.state.effective)) : "";
    const rows = [[this.options.inverted ? title : `${title}, with calls`, show(place.value), `${percent(share) || "<0.1"} %${margins ? ` (${margins})` : ""}`]];
    if (!this.options.inverted) rows.push(["of that its own", show(Math.max(0, own)), `${percent(own / this.root.value) || "0"} %`]);
    if (parts.length > 1) parts.forEach((part, number) => place.parts[number] > 0 && rows.push([`   ${CALLED[part]}`, show(place.parts[number]), `${percent(place.parts[number] / this.root.value) || "<0.1"} %`]));
    const box = facts(told.full || told.name, rows);
    if (told.module) box.append(el("div", { class: "soft code" }, told.module));
    if (told.place) box.append(el("div", { class: "soft code" }, told.place));
    if (told.file) box.append(el("div", { class: "soft code" }, `${shortPath(told.file)}:${told.line}`));
    return box;
  }

  matches(place) {
    const told = this.describe(place.code);
    return this.state.matches(told.full || told.name, told.file || told.module);
  }

  // Draws the frames of all stems one below the other, and looks at the first of this one.
  unfold(place) {
    byId("tip").hidden = true;
    this.foldStems(false);
    const shown = this.boxes.find((each) => each.place === place);
    if (shown) this.focus(shown.element);
  }

  zoom(place) {
    place = place && this.stems.shown(place);
    if (place && this.stems.frames.has(place)) place = null;
    this.zoomed = place && place.parent ? place : null;
    byId("tip").hidden = true;
    this.draw();
    const shown = this.boxes.find((each) => each.place === (this.zoomed || this.root.children[0]));
    if (shown) this.focus(shown.element);
  }

  focus(element) {
    this.boxes.forEach((each) => { each.element.tabIndex = -1; });
    element.tabIndex = 0;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  keyed(event) {
    const here = this.boxes.find((each) => each.element === event.target);
    if (event.key === "Escape" && this.zoomed) {
      event.preventDefault();
      this.zoom(this.zoomed.parent);
      return;
    }
    if (!here) return;
    const { place } = here;
    const siblings = place.parent ? place.parent.children : [];
    const at = siblings.indexOf(place);
    const next = { ArrowUp: this.stems.shown(place.parent), ArrowDown: this.stems.end(place).children[0], ArrowRight: siblings[at + 1], ArrowLeft: siblings[at - 1] }[event.key];
    if (event.key.startsWith("Arrow")) event.preventDefault();
    const shown = next && this.boxes.find((each) => each.place === next);
    if (shown) this.focus(shown.element);
  }

  // What is in boxes that the search finds, each counted once.
  foundValue(top) {
    let sum = 0;
    const left = [top];
    while (left.length) {
      const place = left.pop();
      if (place.code !== null && this.matches(place)) sum += place.value;
      else left.push(...place.children);
    }
    return sum;
  }

  // When the shown memory was held: " at peak, after 3.20 s".
  told() {
    const { when, moment: picked } = this.options.held;
    if (when === "moment") return ` after ${seconds(this.state.at(picked))}`;
    const after = (this.data.memory || {})[MOMENTS[when].at];
    return ` ${MOMENTS[when].title}${unknown(after) ? "" : `, after ${seconds(after)}`}${this.state.whole ? "" : " (of the whole time)"}`;
  }

  tell(top, found) {
    const { show, title } = METRICS[this.metric];
    if (!(this.root.value > 0)) {
      this.crumb.replaceChildren(this.metric === "live" && this.options.held.when === "moment" ? "Nothing here at this moment." : "Nothing here in this window.");
      return;
    }
    const pieces = [`${show(top.value)} ${title}${this.metric === "live" ? this.told() : ""}`];
    if (this.zoomed) {
      const told = this.describe(this.zoomed.code);
      pieces.push(el("span", {}, " in ", el("span", { class: "code" }, told.name), ` (${percent(top.value / this.root.value) || "<0.1"} %) `));
      if (told.file) pieces.push(placeLink(told.file, told.line, this.state), " ");
      pieces.push(el("button", { type: "button", class: "quiet", onclick: () => this.zoom(null) }, "show everything"));
    }
    if (this.state.search) pieces.push(el("span", { id: "flame-found" }, found > 0 ? ` · “${this.state.search}” is in ${percent(found / top.value) || "<0.1"} % of it` : ` · nothing here matches “${this.state.search}”`));
    this.crumb.replaceChildren(...pieces);
  }
}
