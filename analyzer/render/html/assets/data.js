// The data block: how it is unpacked, and sums over a window of time. Written by tachograph/analyzer/render/html/pack.py.

async function unpack() {
  const text = atob(byId("data").textContent.trim());
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const whole = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(whole.buffer).getUint32(0, true);
  const document_ = JSON.parse(new TextDecoder().decode(whole.subarray(4, 4 + length)));
  return [document_, whole.subarray(4 + length)];
}

// Varints of a part of the block, one call each.
function reader(block, { at }) {
  let place = at;
  return () => {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = block[place++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  };
}

const unzigzag = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

// Rows by spans of time, kept as running sums: any window is one subtraction.
class Grid {
  constructor(block, packed) {
    this.rows = packed.rows;
    this.spans = packed.spans;
    this.running = new Float64Array(this.rows * (this.spans + 1));
    const next = reader(block, packed);
    for (let row = 0; row < this.rows; row++) {
      const base = row * (this.spans + 1);
      let span = -1;
      let sum = 0;
      for (let left = next(); left > 0; left--) {
        const distance = next();
        for (let gap = 1; gap <= distance; gap++) this.running[base + span + gap] = sum;
        span += distance;
        sum += unzigzag(next()) * packed.unit;
      }
      for (let rest = span + 1; rest <= this.spans; rest++) this.running[base + rest] = sum;
    }
  }

  sum(row, from, to) {
    const base = row * (this.spans + 1);
    return this.running[base + to] - this.running[base + from];
  }
}

// Grids by measure; a measure that was not recorded is null, one that is merely empty is 0.
class Series {
  constructor(block, grids, recorded) {
    this.grids = Object.fromEntries(Object.entries(grids || {}).map(([name, packed]) => [name, new Grid(block, packed)]));
    this.recorded = recorded;
  }

  sum(measure, row, from, to) {
    const grid = this.grids[measure];
    if (grid) return grid.sum(row, from, to);
    return this.recorded.has(measure) ? 0 : null;
  }

  cpu(row, from, to) {
    return CPU.reduce((sum, measure) => sum + (this.sum(measure, row, from, to) || 0), 0);
  }
}

const CPU = ["python", "native", "kernel", "unknown"];
const CALLED = { python: "Python", native: "native", kernel: "kernel", unknown: "unknown", wait: "waiting" };

function ids(block, packed) {
  const next = reader(block, packed);
  const result = new Int32Array(packed.count);
  let value = 0;
  for (let place = 0; place < result.length; place++) result[place] = value += unzigzag(next());
  return result;
}

// The paths of all files in the tables of some documents.
function filesOf(documents, names) {
  const numbers = documents.flatMap((each) => [...each.lines.columns.file, ...each.functions.columns.file]);
  return numbers.filter((number) => number >= 0).map((number) => names[number]);
}

// What the page works with: texts in place of numbers, grids in place of bytes.
function load(doc, block) {
  const recorded = new Set(Object.keys(doc.overall));
  const named = (numbers) => numbers.map((number) => (number < 0 ? null : doc.names[number]));
  const part = (packed) => {
    const columns = { ...packed.columns };
    for (const name of ["file", "function", "name"]) if (columns[name]) columns[name] = named(columns[name]);
    return { ...packed, columns, measures: doc.measures, own: new Series(block, packed.own, recorded), total: new Series(block, packed.total, new Set([...recorded, "cpu"])) };
  };
  const overall = {};
  for (const [name, values] of Object.entries(doc.overall)) {
    overall[name] = Array.isArray(values) ? running(values) : new Grid(block, values);
  }
  const flame = doc.flame;
  const functions = { ...flame.functions, name: named(flame.functions.name), file: named(flame.functions.file), module: named(flame.functions.module), place: named(flame.functions.place) };
  return {
    ...doc,
    recorded,
    overall,
    lines: part(doc.lines),
    functions: part(doc.functions),
    files: part(doc.files),
    threads: part(doc.threads),
    spans: doc.spans && part(doc.spans),
    flame: { ...flame, functions, parent: ids(block, flame.parent), function: ids(block, flame.function), own: new Series(block, flame.own, recorded), held: heldAt(block, flame.held) },
  };
}

const heldAt = (block, packed) => Object.fromEntries(Object.entries(packed).map(([name, values]) => [name, ids(block, values)]));

function running(values) {
  const sums = [0];
  for (const value of values) sums.push(sums[sums.length - 1] + (value || 0));
  return { sum: (row, from, to) => sums[to] - sums[from] };
}

// By file the known lines, as a Map from number to text.
function sources(doc) {
  const files = new Map();
  for (const [name, first, text] of doc.sources) {
    const path = doc.names[name];
    if (!files.has(path)) files.set(path, new Map());
    text.split("\n").forEach((line, place) => files.get(path).set(first + place, line));
  }
  return files;
}
