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
