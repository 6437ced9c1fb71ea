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

// The flame graph of a report: any measure, in the window, at a moment, turned over.

class FlameGraph extends BoxTree {
  constructor(state) {
    super("Flame graph");
    this.state = state;
    this.data = state.data;
    const recorded = this.data.recorded;
    this.metrics = Object.keys(METRICS).filter((name) => METRICS[name].parts.some((part) => recorded.has(part)));
    this.metric = this.metrics.find((name) => this.total(name) > 0) || "cpu";
    const peak = Object.keys(MOMENTS).find((name) => this.data.flame.held[name]);
    this.options = { inverted: false, fold: false, python: false, held: { when: peak || "moment", moment: this.state.to } };
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
    section("flame", "Flame graph", "Width is the amount; callers stand above what they call. Click to look closer, Escape to go back.").append(...this.below(picks, this.moments(), ...checks));
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
    this.draw();
  }

  path(place) {
    const codes = [];
    for (; place.parent; place = place.parent) codes.unshift(place.code);
    return codes;
  }

  above(place) {
    return place.parent === this.root ? null : place.parent;
  }

  callees(place) {
    return (place || this.root).children;
  }

  width(place) {
    return place.value;
  }

  get whole() {
    return this.root.value;
  }

  get foldable() {
    return !this.options.inverted;
  }

  name(place) {
    return this.describe(place.code).name;
  }

  describe(code) {
    if (code < 0) return { name: this.data.flame.special[code] || "?", file: null, line: null, inside: false, special: true };
    const { name, file, line, inside, module, place } = this.data.flame.functions;
    if (module[code]) return { name: name[code].startsWith("[") ? `[${module[code].replace(/^\[|\]$/g, "")}]` : shortNative(name[code]), full: name[code], file: null, line: null, module: module[code], place: place[code], inside: false, special: false };
    // Modules have all one name: their file tells them apart.
    const called = name[code] === "<module>" && file[code] ? `<module> ${shortPath(file[code])}` : name[code];
    return { name: called, file: file[code], line: line[code], inside: Boolean(inside[code]), special: false };
  }

  look(place, stem) {
    const { special, module, inside } = this.describe(place.code);
    const { show, hue } = METRICS[this.metric];
    const share = this.root.value > 0 ? place.value / this.root.value : 0;
    const parts = this.metric === "cpu" && place.parts ? place.parts : [];
    return {
      kind: stem ? "special" : place.code === KERNEL ? "kernel" : special ? "special" : module ? "native" : inside ? "own" : "other",
      label: `${percent(share) || "0"} %, ${show(place.value)}`,
      style: hue ? { "--hue": `var(${hue})` } : {},
      strip: parts.map((part, number) => [`back-${CPU[number]}`, part / place.value]).filter(([, part]) => part > 0),
      about: () => this.about(place, stem ? { name: stemName(stem, (frame) => this.name(frame)) } : this.describe(place.code)),
    };
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
    return Boolean(this.state.search) && this.state.matches(told.full || told.name, told.file || told.module);
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

  get nothing() {
    return this.metric === "live" && this.options.held.when === "moment" ? "Nothing here at this moment." : "Nothing here in this window.";
  }

  amount(whole) {
    return `${METRICS[this.metric].show(whole)} ${METRICS[this.metric].title}${this.metric === "live" ? this.told() : ""}`;
  }

  inside(place) {
    const { file, line } = this.describe(place.code);
    return [` (${percent(place.value / this.root.value) || "<0.1"} %) `, ...(file ? [placeLink(file, line, this.state), " "] : [])];
  }

  remarks(whole) {
    if (!this.state.search) return [];
    const found = this.foundValue(this.zoomed || this.root);
    const text = found > 0 ? `“${this.state.search}” is in ${percent(found / whole) || "<0.1"} % of it` : `nothing here matches “${this.state.search}”`;
    return [el("span", { id: "flame-found" }, ` · ${text}`)];
  }
}
