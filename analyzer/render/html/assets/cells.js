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
  unknown(low) ? "" : `${fixed(low * 100, 1)} to ${fixed(high * 100, 1)}${unit}`;

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

// By unit of a measure: which values are too small to show (bytes: samples cannot tell less than `least`), and how the others are written.
const UNITS = {
  bytes: { some: (value, least) => value >= least, text: bytes },
  s: { some: (value) => value > 5e-4, text: seconds },
  count: { some: (value) => value >= 0.5, text: (value) => fixed(value, 0) },
  share: { some: (value) => value > 0, text: (value) => `${percent(value) || "0"} %`, zero: true },
};

// Figures that hold for the whole question, with their intervals. Fewer bytes than `least` are too few for samples to tell.
function exactMeasures(part, row, least) {
  const columns = part.columns;
  const rows = [];
  for (const { name, unit, exact: title } of part.measures) {
    if (!title || !columns[name] || unknown(columns[name][row])) continue;
    const text = UNITS[unit].text(columns[name][row]);
    const [low, high] = [columns[`${name}_low`], columns[`${name}_high`]].map((ends) => ends && ends[row]);
    if (unit === "share") rows.push([title, text, ""]);
    else if (UNITS[unit].some(columns[name][row], least)) rows.push([title, text, unknown(low) ? "" : `${UNITS[unit].text(low)} to ${UNITS[unit].text(high)}`]);
    else rows.push([title, columns[name][row] > 0 ? "hardly any" : "none seen", ""]);
  }
  if (columns.leak_likelihood && columns.leak_likelihood[row] >= 0.95) {
    const rate = columns.leak_rate_bytes_per_s && columns.leak_rate_bytes_per_s[row];
    rows.push(["likelihood of a leak", `${fixed(100 * columns.leak_likelihood[row], 1)} %`, rate ? `${bytes(rate)}/s` : ""]);
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

// Calls of functions: how often, how long one took, and a small histogram of their times; all of the whole time.

// How far a number of calls may be off; nothing where it is exact.
function callMargin(calls, low, high) {
  if (unknown(calls) || unknown(high)) return "±?";
  if (low === high || calls <= 0) return "";
  return `±${Math.max(1, Math.round((100 * Math.max(high - calls, calls - low)) / calls))} %`;
}

// One bar for each power of two between the shortest and the longest of the calls; `times` is [[binary digits, calls], ...].
function timesChart(times, label) {
  if (!times || !times.length) return amount("");
  const [first, last] = [times[0][0], times[times.length - 1][0]];
  const most = Math.max(...times.map(([, calls]) => calls));
  const wide = Math.max(last - first + 1, 8);
  // What is there at all can be seen.
  const bars = times.map(([bucket, calls]) => {
    const height = Math.max(1.5, (18 * calls) / most);
    return svg("rect", { x: bucket - first + 0.08, y: 19 - height, width: 0.84, height });
  });
  return svg("svg", { class: "times", viewBox: `0 0 ${wide} 20`, preserveAspectRatio: "none", role: "img", "aria-label": label }, bars);
}

// Rows of the tooltip of a function: its calls, the times of one of them, and the histogram in words.
function exactCalls(columns, row, described) {
  const value = (name) => columns[name] && columns[name][row];
  if (!columns.calls || unknown(value("watched_s")) || !value("calls") && value("calls") !== null) return [];
  const [low, high] = [value("calls_low"), value("calls_high")];
  const range = low === high ? "exact" : unknown(high) ? `at least ${count(low)}` : `${count(Math.round(low))} to ${count(Math.round(high))}`;
  const rows = [[described.find(({ key }) => key === "calls").exact, unknown(value("calls")) ? "?" : count(Math.round(value("calls"))), range], ["   watched for", seconds(value("watched_s")), ""]];
  for (const { key, unit, exact: title } of described) if (unit === "time" && title && !unknown(value(key))) rows.push([`   ${title}`, shortTime(value(key)), ""]);
  return rows;
}

// Columns of the table of functions, as report_data/sections.py describes those of calls.
function callColumns(columns, all, section) {
  if (!columns.calls) return [];
  const called = (row) => all("calls")(row) > 0 || all("calls_low")(row) > 0;
  const known = (name) => (row) => !unknown(all(name)(row));
  const time = (name) => ({ value: all(name), has: known(name), cell: (row) => amount(known(name)(row) ? shortTime(all(name)(row)) : "") });
  const chart = (row) => {
    const times = columns.call_times[row.id];
    if (!times) return amount("");
    // A bucket has the times with so many binary digits in ns.
    const [low, high] = [times[0][0] > 0 ? 2 ** (times[0][0] - 1) / NS : 0, 2 ** times[times.length - 1][0] / NS];
    const cell = el("div", {}, timesChart(times, `times of calls from ${shortTime(low)} to ${shortTime(high)}`));
    tip(cell, () => facts(row.label, [...exactCalls(columns, row.id, section.columns), ["   from, to", `${shortTime(low)}, ${shortTime(high)}`, ""]]));
    return cell;
  };
  const own = {
    calls: { class: "alltime", value: all("calls"), has: called,
      cell: (row) => (called(row) ? [shortCount(all("calls")(row)), el("small", {}, ` ${callMargin(all("calls")(row), all("calls_low")(row), all("calls_high")(row))}`)] : amount("")) },
    call_mean_s: { class: "alltime", ...time("call_mean_s") },
    call_p99_s: time("call_p99_s"),
    call_times: { class: "sparks alltime wide", value: undefined, has: (row) => Boolean(columns.call_times[row.id]), cell: chart },
  };
  return sectionColumns(section, own, (key) => key in own).map((column) => ({ ...column, hint: `${column.hint} (of the whole time)` }));
}
