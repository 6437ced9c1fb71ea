// What stands in the cells of tables: bars, shares with their margin, amounts, sparklines.

const NS = 1e9;

// The measures of one row of a part (lines, functions, files) in the window of the state.
function measure(part, row, state) {
  const { from, to } = state;
  const values = {};
  for (const name of [...CPU, "main_wait", "wait", "allocated", "copied", "net"]) values[name] = part.own.sum(name, row, from, to);
  values.cpu = CPU.reduce((sum, name) => sum + (values[name] || 0), 0);
  values.total_cpu = part.total.sum("cpu", row, from, to);
  values.total_wait = part.total.sum("wait", row, from, to);
  const whole = state.cpu;
  values.share = whole > 0 ? values.cpu / whole : NaN;
  values.total_share = whole > 0 ? values.total_cpu / whole : NaN;
  [values.low, values.high] = wilson(values.share, state.effective);
  [values.total_low, values.total_high] = wilson(values.total_share, state.effective);
  return values;
}

const PARTS = [...CPU];

// What a row waited for, [[reason, seconds], ...], the most first; of the whole time.
function waitFor(part, row) {
  return (part.columns.wait_for && part.columns.wait_for[row]) || [];
}

// The main reason, with its share if it is not all of it.
function mainReason(reasons) {
  if (!reasons.length) return "";
  const share = reasons[0][1] / reasons.reduce((sum, [, amount]) => sum + amount, 0);
  return share >= 0.95 ? reasons[0][0] : `${reasons[0][0]} ${Math.round(share * 100)} %`;
}

// A bar of the parts of a row's CPU time; the longest row fills the cell.
function bar(values, longest, parts = PARTS) {
  const box = el("div", { class: "stack", "aria-hidden": "true" });
  for (const name of parts) {
    const amount = values[name] || 0;
    if (amount > 0) box.append(el("i", { class: `back-${name}`, style: { width: `${(100 * amount) / longest}%` } }));
  }
  return box;
}

const interval = (low, high, unit = " %") =>
  unknown(low) ? "" : `${(low * 100).toFixed(1)} to ${(high * 100).toFixed(1)}${unit}`;

const ofTime = (wait, state) => (state.length ? `${percent(wait / NS / state.length) || "0"} % of the time` : "");

// The exact figures of a row, for tooltips and details.
function exact(values, state, reasons = []) {
  const whole = state.cpu;
  const rows = [["CPU, its own", seconds(values.cpu / NS), `${percent(values.share) || "0"} % (${interval(values.low, values.high)})`]];
  for (const name of CPU) {
    if (!values[name]) continue;
    const share = values[name] / whole;
    const [low, high] = wilson(share, state.effective);
    rows.push([`   ${CALLED[name]}`, seconds(values[name] / NS), `${percent(share) || "<0.1"} % (${interval(low, high)})`]);
  }
  if (!unknown(values.total_cpu)) {
    rows.push(["CPU with calls", seconds(values.total_cpu / NS), `${percent(values.total_share) || "0"} % (${interval(values.total_low, values.total_high)})`]);
  }
  if (values.wait > 0) rows.push(["waiting", seconds(values.wait / NS), values.main_wait > values.wait * 0.999 ? ofTime(values.main_wait, state) : ""]);
  if (values.main_wait > 0 && values.main_wait <= values.wait * 0.999) rows.push(["   of the main thread", seconds(values.main_wait / NS), ofTime(values.main_wait, state)]);
  if (values.wait > 0) for (const [reason, amount] of reasons) rows.push([`   for: ${reason}`, seconds(amount), state.whole ? "" : "of the whole time"]);
  if (values.allocated > 0) rows.push(["allocated", bytes(values.allocated), state.length ? `${bytes(values.allocated / state.length)}/s` : ""]);
  if (values.copied > 0) rows.push(["copied", bytes(values.copied), state.length ? `${bytes(values.copied / state.length)}/s` : ""]);
  return rows;
}

// Figures of memory that hold for the whole question, with their intervals.
const ALL_TIME = [
  ["peak_bytes", "its own peak"],
  ["average_bytes", "on average, each time"],
  ["live_at_peak_bytes", "held at the program's peak"],
  ["touched_at_peak_bytes", "   touched by then"],
  ["live_at_resident_peak_bytes", "held when most was resident"],
  ["live_at_end_bytes", "held at the end"],
];

// What is less than `least` is too little for samples to tell.
function exactMemory(part, row, least) {
  const columns = part.columns;
  const rows = [];
  for (const [name, title] of ALL_TIME) {
    if (!columns[name] || unknown(columns[name][row])) continue;
    const [low, high] = [columns[`${name}_low`], columns[`${name}_high`]].map((ends) => ends && ends[row]);
    if (columns[name][row] >= least) rows.push([title, bytes(columns[name][row]), unknown(low) ? "" : `${bytes(low)} to ${bytes(high)}`]);
    else rows.push([title, columns[name][row] > 0 ? "hardly any" : "none seen", ""]);
  }
  if (columns.python_fraction && !unknown(columns.python_fraction[row])) {
    rows.push(["allocated by Python", `${percent(columns.python_fraction[row]) || "0"} %`, ""]);
  }
  if (columns.leak_likelihood && columns.leak_likelihood[row] >= 0.95) {
    const rate = columns.leak_rate_bytes_per_s && columns.leak_rate_bytes_per_s[row];
    rows.push(["likelihood of a leak", `${(100 * columns.leak_likelihood[row]).toFixed(1)} %`, rate ? `${bytes(rate)}/s` : ""]);
  }
  return rows;
}

const amount = (text) => (text ? text : el("span", { class: "none", "aria-label": "none" }));

function shareCell(share, low, high) {
  const text = percent(share);
  return text ? [text, el("small", {}, ` ${margin(low, high)}`)] : [amount("")];
}

// Bars below this part of the longest one would be dots.
const SHORTEST_BAR = 0.08;

// An amount with a thin bar under it that shows how it compares with the largest.
function meter(text, part, kind) {
  if (!text) return amount("");
  const shown = part >= SHORTEST_BAR && el("i", { class: `back-${kind}`, style: { width: `${100 * Math.min(1, part)}%` } });
  return el("span", { class: "meter" }, text, shown);
}

// A line of points [time, bytes] over the whole recording.
function sparkline(points, bins, label) {
  if (!points || points.length < 2) return amount("");
  const top = Math.max(...points.map(([, held]) => held), 1);
  const length = bins.width * bins.count;
  const x = (at) => Math.max(0, Math.min(100, ((at - bins.start) / length) * 100)).toFixed(2);
  const path = points.map(([at, held], place) => `${place ? "L" : "M"}${x(at)} ${(19 - (held / top) * 17).toFixed(2)}`).join("");
  return svg("svg", { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { class: "under", d: `${path}L${x(points[points.length - 1][0])} 20L${x(points[0][0])} 20Z` }), svg("path", { d: path }));
}
