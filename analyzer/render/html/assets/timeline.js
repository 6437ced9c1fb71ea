// The timeline: CPU, waiting and memory over time, and the window that is dragged over it.

class Timeline {
  constructor(state) {
    this.state = state;
    this.data = state.data;
    this.box = byId("timeline");
    this.tracks = el("div", { class: "tracks" }, this.cpuTrack(), this.memoryTrack(), ...this.gpuTracks());
    this.tracks.append(this.brush());
    this.chosen = el("div", { class: "chosen" });
    this.box.replaceChildren(this.tracks, this.axis(), this.chosen);
    state.listen((changed) => changed.some((name) => name !== "search") && this.show());
    this.show();
  }

  get count() {
    return this.data.bins.count;
  }

  value(name, span) {
    const grid = this.data.overall[name];
    return grid ? grid.sum(0, span, span + 1) : 0;
  }

  cpuTrack() {
    const width = this.data.bins.width * 1e9;
    const height = 46;
    const busy = Array.from({ length: this.count }, (_, span) => CPU.reduce((sum, name) => sum + this.value(name, span), 0));
    const waits = Array.from({ length: this.count }, (_, span) => this.value(this.data.waiting.measure, span));
    const top = Math.max(width, ...busy, ...busy.map((value, span) => Math.min(width, value + waits[span])));
    const chart = svg("svg", { viewBox: `0 0 ${this.count} ${height}`, preserveAspectRatio: "none", height, "aria-hidden": "true" });
    for (let span = 0; span < this.count; span++) {
      let reached = height;
      // Waiting stands on top of the work, as far as the main thread (or a chosen one) could have worked: one core.
      for (const name of [...CPU, "wait"]) {
        const amount = name === "wait" ? Math.min(waits[span], Math.max(0, width - busy[span])) : this.value(name, span);
        const tall = (amount / top) * height;
        if (tall < 0.05) continue;
        reached -= tall;
        chart.append(svg("rect", { class: `fill-${name}`, x: span, y: reached.toFixed(2), width: 1.03, height: tall.toFixed(2) }));
      }
    }
    const cores = short(top / width, 2);
    return el("div", { class: "track" }, el("div", { class: "name" }, "CPU", el("small", {}, `top: ${cores} core${cores === "1" ? "" : "s"}`)), chart);
  }

  memoryTrack() {
    const memory = this.data.memory;
    if (!memory || !memory.footprint.length) return null;
    const height = 34;
    const all = [...memory.footprint, ...memory.resident].flatMap(([, points]) => points.map(([, held]) => held));
    const top = Math.max(1, ...all);
    const start = this.data.bins.start;
    const span = this.data.bins.width * this.count;
    const chart = svg("svg", { viewBox: `0 0 1000 ${height}`, preserveAspectRatio: "none", height, "aria-hidden": "true" });
    const path = (points) => points.map(([at, held], place) =>
      `${place ? "L" : "M"}${(((at - start) / span) * 1000).toFixed(1)} ${(height - (held / top) * (height - 2)).toFixed(2)}`).join("");
    for (const [, points] of memory.resident) if (points.length > 1) chart.append(svg("path", { class: "thin", d: path(points) }));
    for (const [, points] of memory.footprint) {
      if (points.length < 2) continue;
      const x = (at) => (((at - start) / span) * 1000).toFixed(1);
      chart.append(svg("path", { class: "area", d: `${path(points)}L${x(points[points.length - 1][0])} ${height}L${x(points[0][0])} ${height}Z` }));
      chart.append(svg("path", { class: "line", d: path(points) }));
    }
    return el("div", { class: "track" }, el("div", { class: "name" }, "memory", el("small", {}, `top: ${bytes(top)}`)), chart);
  }

  // One for each GPU: how busy it was, with the memory in use as a line; a gap is time of which nothing is known.
  gpuTracks() {
    const { start, width } = this.data.bins;
    const height = 30;
    return (this.data.gpu || []).map((gpu) => {
      const chart = svg("svg", { viewBox: `0 0 ${this.count} ${height}`, preserveAspectRatio: "none", height, "aria-hidden": "true" });
      gpu.busy.forEach((share, span) => {
        if (unknown(share) || share < 0.002) return;
        const tall = Math.min(1, share) * height;
        chart.append(svg("rect", { class: "fill-gpu", x: span, y: (height - tall).toFixed(2), width: 1.03, height: tall.toFixed(2) }));
      });
      const top = Math.max(1, ...gpu.memory.map(([, held]) => held));
      const path = gpu.memory.map(([at, held], place) =>
        `${place ? "L" : "M"}${((at - start) / width).toFixed(2)} ${(height - 1 - (held / top) * (height - 2)).toFixed(2)}`).join("");
      if (gpu.memory.length > 1) chart.append(svg("path", { class: "line", d: path }));
      const told = unknown(gpu.share) ? "busy: ?" : `${percent(gpu.share) || "0"} % busy`;
      const box = el("div", { class: "track" }, el("div", { class: "name" }, gpu.label, el("small", {}, told)), chart);
      box.title = [gpu.name, told, gpu.memory.length ? `memory in use at most ${bytes(top)}` : null].filter(Boolean).join(" · ");
      return box;
    });
  }

  axis() {
    const { start, width, count: spans } = this.data.bins;
    const length = width * spans;
    const step = niceStep(length / Math.max(3, Math.min(9, innerWidth / 140)));
    const ticks = el("div", { class: "ticks" });
    for (let at = Math.ceil(start / step - 1e-9) * step; at <= start + length + step * 1e-6; at += step) {
      const edge = at - start < length * 0.02 ? "first" : start + length - at < length * 0.02 ? "last" : "";
      ticks.append(el("span", { class: edge, style: { left: `${((at - start) / length) * 100}%` } }, moment(at, step)));
    }
    return el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}), ticks);
  }

  brush() {
    this.left = el("div", { class: "shade" });
    this.right = el("div", { class: "shade" });
    this.frame = el("div", { class: "window" });
    this.moment = el("div", { class: "moment", hidden: true });
    this.handles = ["from", "to"].map((end) => el("div", {
      class: "handle", role: "slider", tabindex: "0", "data-end": end,
      "aria-label": end === "from" ? "Beginning of the window" : "End of the window",
      onkeydown: (event) => this.keyed(event, end),
    }));
    const brush = el("div", { class: "brush", onpointerdown: (event) => this.grab(event), ondblclick: () => this.reset() },
      this.left, this.right, this.frame, this.moment, this.handles);
    this.surface = brush;
    return brush;
  }

  reset() {
    this.state.change({ from: 0, to: this.count, moment: null });
    say("The whole recording is shown");
  }

  keyed(event, end) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 };
    if (event.key === "Escape") return this.reset();
    if (!(event.key in steps)) return undefined;
    event.preventDefault();
    const { from, to } = this.state;
    if (end === "from") return this.state.change({ from: Math.max(0, Math.min(to - 1, from + steps[event.key])) });
    return this.state.change({ to: Math.min(this.count, Math.max(from + 1, to + steps[event.key])) });
  }

  // Drags an end, the window, or a new window out of the chart.
  grab(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    const box = this.surface.getBoundingClientRect();
    const at = (x) => Math.max(0, Math.min(this.count, ((x - box.left) / box.width) * this.count));
    const origin = at(event.clientX);
    const { from, to } = this.state;
    const end = event.target.dataset.end;
    const moving = event.target === this.frame && !this.state.whole;
    this.surface.setPointerCapture(event.pointerId);
    let dragged = false;
    const move = (moved) => {
      const here = at(moved.clientX);
      dragged ||= Math.abs(here - origin) * (box.width / this.count) > 4;
      if (end === "from") this.state.change({ from: Math.min(to - 1, Math.round(here)) });
      else if (end === "to") this.state.change({ to: Math.max(from + 1, Math.round(here)) });
      else if (moving) {
        const shift = Math.max(-from, Math.min(this.count - to, Math.round(here - origin)));
        this.state.change({ from: from + shift, to: to + shift });
      } else if (dragged) {
        const low = Math.floor(Math.min(origin, here));
        this.state.change({ from: Math.min(low, this.count - 1), to: Math.max(low + 1, Math.ceil(Math.max(origin, here))) });
      }
    };
    const done = (ended) => {
      this.surface.removeEventListener("pointermove", move);
      if (ended.type === "pointerup" && !dragged && !end && this.state.data.recorded.has("net")) return this.pick(Math.round(origin));
      return say(`Window from ${seconds(this.state.start)} to ${seconds(this.state.end)}`);
    };
    this.surface.addEventListener("pointermove", move);
    this.surface.addEventListener("pointerup", done, { once: true });
    this.surface.addEventListener("pointercancel", done, { once: true });
  }

  // A click without a drag: what was held then.
  pick(moment) {
    this.state.change({ moment });
    say(`Memory as it was after ${seconds(this.state.at())}`);
  }

  show() {
    const { from, to, whole, moment: picked } = this.state;
    this.moment.hidden = picked === null;
    this.moment.style.left = `${((picked || 0) / this.count) * 100}%`;
    const [low, high] = [(from / this.count) * 100, (to / this.count) * 100];
    Object.assign(this.left.style, { left: "0", width: `${low}%` });
    Object.assign(this.right.style, { left: `${high}%`, right: "0" });
    Object.assign(this.frame.style, { left: `${low}%`, width: `${high - low}%` });
    this.frame.hidden = whole;
    this.handles.forEach((handle) => {
      const end = handle.dataset.end;
      const value = end === "from" ? this.state.start : this.state.end;
      handle.style.left = `${end === "from" ? low : high}%`;
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", String(this.count));
      handle.setAttribute("aria-valuenow", String(this.state[end]));
      handle.setAttribute("aria-valuetext", seconds(value));
    });
    const length = this.data.bins.width * this.count;
    const fine = (at) => (length > 120 ? seconds(at) : moment(at, niceStep(length / 100)));
    const keys = el("span", { class: "keys" }, [...CPU, "wait"].filter((name) => this.known(name)).map((name) =>
      el("span", {}, key(name), name === "wait" ? (this.data.waiting.main ? "main thread waiting" : "waiting") : CALLED[name])),
    this.data.memory && el("span", {}, key("memory"), "memory held"),
    this.data.gpu && el("span", {}, key("gpu"), "GPU busy (line: its memory)"),
    this.data.memory && this.data.memory.resident.length > 0 && el("span", {}, el("i", { class: "key dashes" }), "resident"));
    const told = whole
      ? [el("span", {}, `Drag over the chart to look at a part of the time; everything below follows.${this.state.data.recorded.has("net") ? " Click for what was held at a moment." : ""}`)]
      : [el("span", {}, el("b", {}, `${fine(this.state.start)} to ${fine(this.state.end)}`),
        ` · ${seconds(this.state.length)} · ${seconds(this.state.cpu / 1e9)} CPU · ${count(Math.round(this.state.overall("samples") || 0))} samples`),
      el("button", { type: "button", class: "quiet", id: "reset", onclick: () => this.reset() }, "show the whole time")];
    if (picked !== null) told.push(el("span", {}, el("b", {}, `memory at ${fine(this.state.at())}`), " ",
      el("button", { type: "button", class: "quiet", id: "unpick", onclick: () => this.state.change({ moment: null }) }, "clear")));
    this.chosen.replaceChildren(...told, keys);
  }

  known(name) {
    return name === "wait" ? this.data.recorded.has(this.data.waiting.measure) : this.data.overall[name] && this.data.overall[name].sum(0, 0, this.count) > 0;
  }
}

// 1, 2 or 5 times a power of ten (for minutes and hours: parts of them), at least `least`.
function niceStep(least) {
  for (const step of [60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400]) if (least > 30 && least <= step) return step;
  if (least > 86400) return Math.ceil(least / 86400) * 86400;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least * 0.999);
}
