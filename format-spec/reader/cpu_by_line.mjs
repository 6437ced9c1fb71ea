// CPU time by line of complete recordings, after Part 1 of SPEC.md, in plain JavaScript without a library:
//     node cpu_by_line.mjs RECORDING...
// prints for each a JSON object as `derived` in the vectors. It shares nothing with tachograph; a test runs it on the
// vectors. Its Parquet is the least there is: plain pages, not compressed. (Use a library in programs of yours.)
import fs from "node:fs";
import path from "node:path";

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const OPCODES = JSON.parse(fs.readFileSync(path.join(here, "..", "opcodes.json"), "utf8"));
const SPECIFICATION = fs.readFileSync(path.join(here, "..", "SPEC.md"), "utf8");
const ATTRIBUTION = SPECIFICATION.slice(SPECIFICATION.indexOf("\n## Attribution"));
const PATTERNS = ATTRIBUTION.split("```\n")[1].matchAll(/^([A-Z]+) +(\S*(?:\n +\S*)*)$/gm);
const { LOOP, GC, CALL, LIBC, HOOKED, RECORDER } = Object.fromEntries(
  [...PATTERNS].map(([, name, pattern]) => [name, new RegExp(`^(?:${pattern.replaceAll(/\s/g, "")})`)]),
);
const TABLES = ["cpu", "stacks", "codes", "files", "native_frames", "modules", "native_stacks", "threads", "processes"];
const TIMER = 0, SIGNAL = 2, SIGNAL_THREAD = 3; // origin
const WHOLE = 0, STACKLESS = 1, TRUNCATED = 3; // stack_state
const TRUSTED_PATHS = [1, 3, 4]; // native_path
const NO_SYMBOL = "\0";

// A structure of Thrift's compact protocol, as an object by field number; and where it ends.
function structure(data, at) {
  function varint() {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = data[at++];
      value |= BigInt(byte & 127) << shift;
      if (!(byte & 128)) return value;
    }
  }
  function signed() {
    const value = varint();
    return Number((value >> 1n) ^ -(value & 1n));
  }
  function value(type) {
    if (type === 1 || type === 2) return type === 1;
    if (type === 3) return data[at++];
    if (type >= 4 && type <= 6) return signed();
    if (type === 8) {
      const length = Number(varint());
      at += length;
      return data.subarray(at - length, at);
    }
    if (type === 9) {
      const head = data[at++];
      const length = head >> 4 === 15 ? Number(varint()) : head >> 4;
      return Array.from({ length }, () => ((head & 15) <= 2 ? data[at++] === 1 : value(head & 15)));
    }
    if (type !== 12) throw new Error(`a footer has the type ${type}`);
    const fields = {};
    for (let id = 0; ; ) {
      const head = data[at++];
      if (head === 0) return fields;
      id = head >> 4 ? id + (head >> 4) : signed();
      fields[id] = value(head & 15);
    }
  }
  return [value(12), at];
}

// Whether each value of a page is there: runs and packed bits, one bit each.
function present(data, at, end) {
  const found = [];
  while (at < end) {
    let head = 0, shift = 0, byte;
    do {
      byte = data[at++];
      head |= (byte & 127) << shift;
      shift += 7;
    } while (byte & 128);
    if (head & 1) {
      for (let bit = 0; bit < 8 * (head >> 1); bit++) found.push((data[at + (bit >> 3)] >> (bit & 7)) & 1);
      at += head >> 1;
    } else {
      found.push(...Array(head >> 1).fill(data[at++]));
    }
  }
  return found;
}

// The columns of a schema; undefined in place of what lies within a nested one, which no table of ours has.
function leaves(elements) {
  const found = [];
  let at = 0;
  (function walk(nested) {
    const element = elements[at++], children = element[5] ?? 0;
    if (!children) found.push(nested > 1 ? undefined : element);
    for (let child = 0; child < children; child++) walk(nested + 1);
  })(0);
  return found;
}

// The rows of a table; 64-bit integers are BigInt.
function rowsOf(file) {
  if (!fs.existsSync(file)) return [];
  const data = fs.readFileSync(file);
  const [footer] = structure(data, data.length - 8 - data.readUInt32LE(data.length - 8));
  const columns = leaves(footer[2]);
  const rows = Array.from({ length: footer[3] }, () => ({}));
  let first = 0;
  for (const group of footer[4]) {
    group[1].forEach((chunk, number) => columns[number] && readColumn(data, chunk[3], columns[number], rows, first));
    first += group[3];
  }
  return rows;
}

function readColumn(data, chunk, column, rows, first) {
  const name = column[4].toString(), [type, converted] = [column[1], column[6]];
  if (chunk[4] !== 0) throw new Error(`${name} is compressed`);
  for (let at = chunk[9], done = 0; done < chunk[5]; ) {
    const [page, body] = structure(data, at);
    if (page[5]?.[2] !== 0) throw new Error(`${name} is not plain`);
    let from = body, bit = 0, there = null;
    if (column[3] === 1) {
      const end = from + 4 + data.readUInt32LE(from);
      there = present(data, from + 4, end);
      from = end;
    }
    for (let row = 0; row < page[5][1]; row++) {
      let value = null;
      if (there === null || there[row]) {
        if (type === 0) value = !!((data[from + (bit >> 3)] >> (bit++ & 7)) & 1);
        else if (type === 1) [value, from] = [data.readInt32LE(from), from + 4];
        else if (type === 2) [value, from] = [data.readBigInt64LE(from), from + 8];
        else if (type === 5) [value, from] = [data.readDoubleLE(from), from + 8];
        else {
          const end = from + 4 + data.readUInt32LE(from);
          [value, from] = [data.subarray(from + 4, end), end];
          if (converted === 0) value = value.toString();
        }
        if (type === 1 && converted === 13) value >>>= 0; // uint32
      }
      rows[first + done + row][name] = value;
    }
    done += page[5][1];
    at = body + page[3];
  }
}

class RecordingReader {
  constructor(folder) {
    this.manifest = JSON.parse(fs.readFileSync(path.join(folder, "manifest.json"), "utf8"));
    const { format_version: version, state } = this.manifest;
    if (!/^1\.\d+$/.test(version)) throw new Error(`version ${version} is not 1.x`);
    if (!["complete", "recovered"].includes(state)) throw new Error(`state ${state}: recover it first`);
    for (const name of TABLES) this[name] = rowsOf(path.join(folder, `${name}.parquet`));
    const marked = this.modules.filter((module) => module.interpreter);
    this.interpreters = new Set(marked.map((module) => `${module.process} ${module.path}`));
  }

  // Rows of cpu with their weights, and the kernel's part of these.
  *weights() {
    const { parameters, window = {} } = this.manifest;
    const interval = parameters.interval_ns;
    const stationary = parameters.schedule === "stationary" && interval !== undefined;
    const later = (window.number ?? 0) > (window.first ?? 0);
    const seen = new Set(), ticks = new Map();
    const tick = (row) => `${this.threads[row.thread].process} ${row.time_ns}`;
    for (const row of this.cpu) ticks.set(tick(row), (ticks.get(tick(row)) ?? 0) + 1);
    for (const row of this.cpu) {
      const start = this.threads[row.thread].start_ns;
      const began = !later || (start !== null && start > BigInt(window.start_ns));
      let weight = Number(row.cpu_ns), system = row.system_ns === null ? null : Number(row.system_ns);
      if (row.origin === SIGNAL || row.origin === SIGNAL_THREAD) weight /= ticks.get(tick(row));
      else if (row.origin === TIMER && stationary && began && !seen.has(row.thread)) {
        weight = interval * (row.overruns + 1);
        if (system !== null) system = Math.min((system * weight) / Math.max(Number(row.cpu_ns), 1), weight);
      }
      seen.add(row.thread);
      yield [row, weight, system];
    }
  }

  // INTERP, LIBC, JIT or OUTSIDE; `own` is true in the interpreter's own file, not in the recorder's.
  where(frame) {
    const module = frame.module === null ? null : this.modules[frame.module];
    if (module === null) return ["OUTSIDE", false];
    if (this.interpreters.has(`${module.process} ${module.path}`)) return ["INTERP", true];
    if (RECORDER.test(module.path)) return [HOOKED.test(frame.symbol ?? NO_SYMBOL) ? "LIBC" : "INTERP", false];
    if (LIBC.test(module.path.split("/").pop())) return ["LIBC", false];
    return [module.path === "[anonymous]" && this.processes[module.process].jit ? "JIT" : "OUTSIDE", false];
  }

  served(row) {
    if (!TRUSTED_PATHS.includes(row.native_path)) return false;
    let outside = false;
    for (let id = row.native_stack; id !== null; id = this.native_stacks[id].parent) {
      const node = this.native_stacks[id];
      if (node.stack !== null) return outside && node.stack === row.stack;
      outside ||= node.native_frame !== null && this.where(this.native_frames[node.native_frame])[0] === "OUTSIDE";
    }
    return false;
  }

  opcodeClass(row) {
    const version = this.processes[this.threads[row.thread].process].python_version ?? "";
    const classes = OPCODES[version.split(".").slice(0, 2).join(".")];
    if (!classes || (row.stack_state !== WHOLE && row.stack_state !== TRUNCATED)) return "unknown";
    const number = row.opcode ?? 0;
    const listed = Object.keys(classes).find((name) => Object.values(classes[name]).includes(number));
    return number === 0 ? "internal" : listed ?? "other";
  }

  // Whose the weight is, the kernel's part aside.
  whose(row) {
    if (row.native_frame === null) return "unknown_ns";
    const frame = this.native_frames[row.native_frame], symbol = frame.symbol ?? NO_SYMBOL;
    const [where, own] = this.where(frame), opcode = this.opcodeClass(row);
    const loop = own && LOOP.test(symbol), named = own && !loop && GC.test(symbol);
    const collector = named && row.collecting !== false;
    if (where === "JIT") return ["native_call", "any_call", "unknown"].includes(opcode) ? "unknown_ns" : "python_ns";
    if (where === "OUTSIDE") return "native_ns";
    if (this.served(row) && !loop && !collector) return "native_ns";
    if (row.collecting === true && !loop) return "python_ns";
    if (where === "LIBC") return opcode === "internal" ? "python_ns" : "native_ns";
    if (loop || collector) return "python_ns";
    if (opcode === "native_call") return "native_ns";
    if (own && !named && CALL.test(symbol)) return "python_ns";
    if (opcode === "any_call") return "native_ns";
    return opcode === "unknown" && row.stack_state !== STACKLESS ? "unknown_ns" : "python_ns";
  }

  // File and line of a stack's leaf.
  place(id) {
    if (id === null || this.stacks[id].code === null) return [null, null];
    const stack = this.stacks[id], code = this.codes[stack.code];
    return [this.files[code.file].path, lineOf(code, stack)];
  }

  derived() {
    const totals = {}, lines = new Map();
    for (const [row, weight, system] of this.weights()) {
      const parts = { cpu_ns: weight };
      if (row.origin !== SIGNAL && row.origin !== SIGNAL_THREAD) {
        parts.kernel_ns = system ?? 0;
        parts[this.whose(row)] = weight - (system ?? 0);
      }
      const key = JSON.stringify(this.place(row.stack));
      if (!lines.has(key)) lines.set(key, {});
      for (const sums of [totals, lines.get(key)]) {
        for (const name in parts) sums[name] = (sums[name] ?? 0) + parts[name];
      }
    }
    for (const sums of [totals, ...lines.values()]) for (const name in sums) sums[name] = Math.round(sums[name]);
    const rows = [...lines].map(([key, sums]) => ({ file: JSON.parse(key)[0], line: JSON.parse(key)[1], ...sums }));
    return { totals, lines: rows, line_of_stack: this.stacks.map((_, id) => this.place(id)[1]) };
  }
}

const valid = (line) => (line >= 1 && line < 2 ** 31 ? line : null);

function lineOf(code, stack) {
  if (stack.instruction === null) return stack.parent === null ? null : valid(code.first_line);
  if (code.line_table === null) return null;
  let line = code.first_line, located = valid(line), covered = 0;
  for (const entry of entries(code.line_table)) {
    line += entry.step;
    if (entry.form !== 15) located = valid(line);
    covered += 2 * entry.units;
    if (stack.instruction < covered) return located;
  }
  return null;
}

function* entries(table) {
  for (let at = 0; at < table.length; ) {
    const head = table[at++], form = (head >> 3) & 15;
    if (!(head & 128)) return;
    let end = at;
    while (end < table.length && !(table[end] & 128)) end++;
    const varint = () => {
      for (let value = 0n, count = 0n; count < 6n && at < end; count++) {
        const byte = table[at++];
        value |= BigInt(byte & 63) << (6n * count);
        if (!(byte & 64)) return value;
      }
      return null;
    };
    let step = 0;
    if (form < 13) {
      at += form < 10 ? 1 : 2;
      step = Math.max(0, form - 10);
    } else if (form < 15) {
      const numbers = Array.from({ length: form === 13 ? 1 : 4 }, varint);
      if (numbers.includes(null)) return;
      step = Number(numbers[0] & 1n ? -(numbers[0] >> 1n) : numbers[0] >> 1n);
    }
    if (at !== end) return;
    yield { form, units: (head & 7) + 1, step };
  }
}

console.log(JSON.stringify(process.argv.slice(2).map((folder) => new RecordingReader(folder).derived())));
