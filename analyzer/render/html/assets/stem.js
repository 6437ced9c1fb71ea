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
