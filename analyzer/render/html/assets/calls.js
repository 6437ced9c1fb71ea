// Calls of functions: how often, how long one took, and a small histogram of their times; all of the whole time.

// About three digits with a letter: 812, 1.2k, 35M.
function shortCount(value) {
  if (unknown(value)) return "?";
  if (value < 9999.5) return String(Math.round(value));
  let unit = "";
  for (unit of ["k", "M", "G", "T"]) {
    value /= 1000;
    if (value < 999.5) break;
  }
  return `${value < 99.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

// A time of any length: 41 ns, 1.3 µs, 250 ms; calls are much shorter than what else a page tells of.
function shortTime(value) {
  if (unknown(value)) return "?";
  for (const [limit, scale, unit] of [[9.995e-7, 1e9, "ns"], [9.995e-4, 1e6, "µs"], [0.9995, 1e3, "ms"]]) {
    if (value < limit) return `${value > 0 && value * scale < 9.95 ? (value * scale).toFixed(1) : Math.round(value * scale)} ${unit}`;
  }
  return seconds(value);
}

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
function exactCalls(columns, row) {
  const value = (name) => columns[name] && columns[name][row];
  if (!columns.calls || unknown(value("watched_s")) || !value("calls") && value("calls") !== null) return [];
  const [low, high] = [value("calls_low"), value("calls_high")];
  const range = low === high ? "exact" : unknown(high) ? `at least ${count(low)}` : `${count(Math.round(low))} to ${count(Math.round(high))}`;
  const rows = [["calls", unknown(value("calls")) ? "?" : count(Math.round(value("calls"))), range], ["   watched for", seconds(value("watched_s")), ""]];
  const times = [["mean", "call_mean_s"], ["half of them within", "call_p50_s"], ["90 %", "call_p90_s"], ["99 %", "call_p99_s"], ["longest seen", "call_max_s"], ["mean in its own lines", "own_call_mean_s"]];
  for (const [title, name] of times) if (!unknown(value(name))) rows.push([`   ${title}`, shortTime(value(name)), ""]);
  return rows;
}

// Columns of the table of functions.
function callColumns(columns, all) {
  if (!columns.calls) return [];
  const called = (row) => all("calls")(row) > 0 || all("calls_low")(row) > 0;
  const known = (name) => (row) => !unknown(all(name)(row));
  return [
    { id: "calls", title: "calls", class: "alltime", hint: "How often it was called, and how far that may be off; without ± it is exact (of the whole time)", value: all("calls"), has: called,
      cell: (row) => (called(row) ? [shortCount(all("calls")(row)), el("small", {}, ` ${callMargin(all("calls")(row), all("calls_low")(row), all("calls_high")(row))}`)] : amount("")) },
    { id: "call_mean_s", title: "one call", class: "alltime", hint: "Mean time of one call, with all that it calls (of the whole time)", value: all("call_mean_s"), has: known("call_mean_s"),
      cell: (row) => amount(known("call_mean_s")(row) ? shortTime(all("call_mean_s")(row)) : "") },
    { id: "call_p99_s", title: "99 % within", class: "alltime wide second", hint: "99 of 100 calls took no longer (of the whole time)", value: all("call_p99_s"), has: known("call_p99_s"),
      cell: (row) => amount(known("call_p99_s")(row) ? shortTime(all("call_p99_s")(row)) : "") },
    { id: "call_times", title: "times of calls", class: "sparks alltime wide", hint: "How many calls took how long: a bar for each power of two, from the shortest to the longest (of the whole time)", has: (row) => Boolean(columns.call_times[row.id]),
      cell: (row) => {
        const times = columns.call_times[row.id];
        if (!times) return amount("");
        // A bucket has the times with so many binary digits in ns.
        const [low, high] = [times[0][0] > 0 ? 2 ** (times[0][0] - 1) / NS : 0, 2 ** times[times.length - 1][0] / NS];
        const chart = timesChart(times, `times of calls from ${shortTime(low)} to ${shortTime(high)}`);
        const cell = el("div", {}, chart);
        tip(cell, () => facts(row.label, [...exactCalls(columns, row.id), ["   from, to", `${shortTime(low)}, ${shortTime(high)}`, ""]]));
        return cell;
      } },
  ];
}
