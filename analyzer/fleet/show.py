"""Answers about a fleet as lines for a terminal, and as documents for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.text import Text

from ..recording.frame import rows_of_pandas
from ..recording.text import printable
from ..render.terminal.style import INDENTED
from ..report_data.difference import OPEN
from ..report_data.numbers import amount, change, changes, counted, percent, seconds, signed, size, span
from .questions.health import BUSY
from .questions.metric_changes import METRICS as HISTORY_METRICS
from .questions.top import METRICS

if TYPE_CHECKING:
    from .opened_fleet import Fleet
    from .questions.health import Health
    from .questions.metric_changes import History, Point
    from .questions.ranks import Ranks
    from .questions.spans import FleetMemory
    from .questions.when import Moved

VERSION = 1
"""Version of the JSON documents; names are only ever added to a version."""

MAX_CHANGED = 3
"""Functions of a change point that are shown."""

UNITS = {"interval": " s"}
"""Units of settings that are amounts."""

MAX_TOLD = 10
"""Recordings that were left out that are named in a terminal."""


def document(kind: str, fleet: Fleet, question: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """The JSON document of a question: the question, the recordings that were left out, and the rows."""
    return {
        "tachograph": {"document": kind, "version": VERSION},
        "fleet": {"url": fleet.url, "recordings": len(fleet.recordings), "left_out": rows_of_pandas(fleet.left_out)},
        "question": dict(question),
        **{name: rows_of_pandas(part) if isinstance(part, pd.DataFrame) else part for name, part in parts.items()},
    }


def top_lines(fleet: Fleet, frame: pd.DataFrame, query: Mapping[str, Any]) -> Iterator[Text]:
    """The rows of ``fleet top``."""
    kind, unit = METRICS[query["metric"]].each(query["per"])
    yield from _head(fleet, f"{query['metric']}: {unit}", frame.attrs.get("unit", "recordings"))
    if frame.empty:
        yield Text("   nothing was recorded", "dim")
    group = None
    for row in frame.itertuples():
        if query["by"] is not None and row.group != group:
            group = row.group
            yield Text()
            yield Text(f" {query['by']}={printable(str(group), 60)}", "bold").append(
                f"   {counted(int(row.of), 'recordings')}", "dim"
            )
        line = Text(f" {amount(row.value, kind):>10}", "bold")
        line.append(f" {interval(row.low, row.high, kind):<19}", "dim")
        line.append(f"{int(row.recordings):>6,} of {int(row.of):<6,} ", "dim")
        yield _one_line(line.append(place(row)))
    yield from left_out_lines(fleet.left_out)


def _one_line(row: Text) -> Text:
    """A row that is cut where the terminal ends."""
    row.no_wrap, row.overflow = True, "ellipsis"
    return row


def place(row: Any) -> str:
    """Where a row is: a line with its text, a function with its file, or a call path."""
    if hasattr(row, "path"):
        return " > ".join(printable(str(name), 60) for name in row.path[-6:])
    if hasattr(row, "line") and isinstance(row.file, str) and row.line is not pd.NA:
        text = f"  {printable(row.source.strip(), 60)}" if isinstance(row.source, str) else ""
        return f"{printable(row.file, 60)}:{row.line}{text}"
    where = f"  {printable(row.file, 60)}" if isinstance(row.file, str) else ""
    return f"{printable(str(row.name), 60)}{where}"


def interval(low: float, high: float, kind: str) -> str:
    """The ends of an interval of amounts; empty if they are not known."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"({amount(low, kind)} to {amount(high, kind)})"


def health_lines(health: Health) -> Iterator[Text]:
    """The state of a fleet."""
    counts = health.counts
    yield Text(f" {counted(int(counts['recordings']), 'recordings')}", "bold").append(
        f" of {counted(int(counts['hosts']), 'hosts')}, {seconds(counts['cpu_s'])} CPU, {size(round(counts['bytes']))}"
    )
    share = counts["unsampled_s"] / counts["cpu_s"] if counts["cpu_s"] > 0 else 0.0
    yield Text(f"   {percent(share) or '0'} % of the CPU time is in no sample", "dim")
    for name, text in (
        ("unfinished", "never finished: what their spools hold is counted"),
        ("recovered", "recovered after a crash"),
        ("with_losses", "in which data was lost"),
        ("on_busy_machines", "of a busy machine, with too few processors: waiting and wall time tell little"),
    ):
        if counts[name]:
            yield Text(f" ! {counted(int(counts[name]), 'recordings')} {text}", "yellow")
    for row in health.losses.itertuples():
        mark = "!" if row.severity == "loss" else " "
        text = f" {mark} {row.doc}: {row.count:,.0f} in {counted(int(row.recordings), 'recordings')}; {row.advice}"
        yield Text(printable(text, 400), "yellow" if mark == "!" else "dim")
    yield Text()
    for mode, rows in health.modes.groupby("mode", sort=False):
        unit = UNITS.get(str(mode), "")
        text = ", ".join(f"{row.value}{unit} (of {counted(row.recordings, 'recordings')})" for row in rows.itertuples())
        yield Text(f"   {mode:<12}", "dim").append(printable(text, 200))
    for row in health.labels.itertuples():
        more = " ..." if row.values > 5 else ""
        text = f"{counted(int(row.recordings), 'recordings')}, {counted(int(row.values), 'values')}: {row.most}{more}"
        yield Text(f"   {printable(str(row.label), 40)}  ", "bold").append(printable(text, 200))
    yield from left_out_lines(health.left_out)


def compare_lines(fleet: Fleet, frame: pd.DataFrame, query: Mapping[str, Any]) -> Iterator[Text]:
    """The rows of ``fleet compare``."""
    kind, unit = METRICS[query["metric"]].each(query["per"])
    subject = f"{query['metric']}: {unit}; {query['base']} and {query['new']}"
    yield Text(f" {printable(fleet.url, 100)}", "bold").append(f"   {printable(subject, 200)}", "dim")
    if len(frame):
        counts = f"{int(frame['of_base'].iat[0]):,} and {int(frame['of_new'].iat[0]):,} recordings"
        few = "" if frame["verdict"].notna().any() else "; with fewer than 5 a side nothing can be said of differences"
        yield Text(f"   {counts}{few}", "dim")
    for row in frame.itertuples():
        style = {"more": "red", "less": "green"}.get(row.verdict, "dim")
        line = Text(f" {row.verdict or '?':<11}", style)
        line.append(f"{amount(row.base, kind):>10} {amount(row.new, kind):>10} ", "bold")
        line.append(f" {signed(row.difference, kind):>9} ", style)
        line.append(f"{_between(row.low, row.high, kind):<18} ", "dim")
        yield _one_line(line.append(place(row)))
    yield from left_out_lines(fleet.left_out)


def _between(low: float, high: float, kind: str) -> str:
    """The ends of an interval of a difference; empty if they are not known."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return span(low, high, kind).replace(" %", " pp")


def when_lines(fleet: Fleet, moved: Moved, query: Mapping[str, Any]) -> Iterator[Text]:
    """The answer of ``fleet when``."""
    kind, unit = METRICS[query["metric"]].each(query["per"])
    where = f" ({printable(moved.file, 80)})" if moved.file else ""
    yield Text(f" {printable(moved.name, 80)}{where}", "bold").append(f"   {query['metric']}: {unit}", "dim")
    if moved.since is None:
        p_value = "" if math.isnan(moved.p) else f" (p = {moved.p:.3g})"
        yield Text(f"   no step is certain{p_value}")
    else:
        change = f"{amount(moved.before, kind)} before, {amount(moved.after, kind)} since"
        yield Text(f" {query['by']} {printable(moved.since, 60)}: {change} (p = {moved.p:.3g})", "yellow")
    for row in moved.groups.itertuples():
        mark = ">" if row.group == moved.since else " "
        line = Text(f" {mark} {printable(str(row.group), 30):<30} {amount(row.value, kind):>10} ")
        yield line.append(
            f"{interval(row.low, row.high, kind):<19} {counted(int(row.recordings), 'recordings')}", "dim"
        )
    yield from left_out_lines(fleet.left_out)


def history_points(answer: History) -> list[dict[str, Any]]:
    """The change points for JSON; null is unknown."""
    points = []
    for each in answer.points:
        ends = {name: getattr(each, name) for name in ("before", "after", "change", "low", "high", "p")}
        known: dict[str, Any] = {name: value if math.isfinite(value) else None for name, value in ends.items()}
        summary = None if each.difference is None else each.difference.summary
        known |= {"at": each.at, "base": list(each.base), "new": list(each.new), "why_not": each.why_not}
        known |= {"verdict": summary and summary.verdict, "sentence": summary and summary.sentence}
        points.append({**known, "functions": [asdict(row) for row in _changed_functions(each)]})
    return points


@dataclass(frozen=True)
class ChangedFunction:
    """A function of the diff at a change point, with its own CPU time (or share of it) on both sides."""

    function: str
    file: str | None
    line: int | None
    base: float
    new: float
    verdict: str


def _changed_functions(point: Point) -> list[ChangedFunction]:
    """The functions whose own CPU time differs most, those with a verdict first."""
    if point.difference is None or not point.difference.functions.knows("cpu"):
        return []
    frame = point.difference.functions.metric("cpu")
    frame = frame[frame["file"].notna()]
    order = frame["verdict"].isin(OPEN).sort_values(kind="stable").index
    rows = frame.loc[order].head(MAX_CHANGED)
    return [
        ChangedFunction(str(row["function"]), row["file"], _whole(row["line"]), row["base"], row["new"], row["verdict"])
        for _, row in rows.iterrows()
    ]


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def history_lines(fleet: Fleet, answer: History, query: Mapping[str, Any]) -> Iterator[Text]:
    """The answer of ``history``."""
    unit = HISTORY_METRICS[query["metric"]]
    of = f" of {printable(query['function'], 60)}" if query["function"] else ""
    title = f" {counted(answer.recordings, 'recordings')} in {printable(fleet.url, 100)}"
    yield Text(title, "bold").append(f"   {query['metric']}{of}, by {printable(query['by'], 40)}", "dim")
    if answer.left_out:
        yield Text(f"   the newest; {counted(answer.left_out, 'older ones')} were not looked at", "dim")
    if not answer.points:
        yield Text("   no change is certain")
    for point in answer.points:
        moved = f"{amount(point.before, unit)} -> {amount(point.after, unit)}"
        known = math.isfinite(point.low) and math.isfinite(point.high)
        ends = f" ({changes(point.low, point.high)})" if known else ""
        relative = f", {change(point.change)}{ends}" if math.isfinite(point.change) else ""
        style = "red" if point.after > point.before else "green"
        yield Text(f" {printable(query['by'], 40)} {point.at}: {moved}{relative}", f"bold {style}").append(
            f"   p = {point.p:.3g}", "dim"
        )
        if point.difference is not None:
            yield Text(f"   {point.difference.summary.sentence}")
        elif point.why_not is not None:
            yield Text(f"   no diff: {printable(point.why_not, 200)}", "yellow")
        for row in _changed_functions(point):
            kind = "share" if point.difference is not None and point.difference.shares else "s"
            sizes = f"{amount(row.base, kind):>9} {amount(row.new, kind):>9}  {row.verdict.replace('_', ' '):<11} "
            yield Text(f"   {sizes} {printable(row.function, 60)}").append(
                f"  {printable(str(row.file), 80)}:{row.line}", "dim"
            )
    for each in answer.segments:
        between = each.first if each.first == each.last else f"{each.first} to {each.last}"
        yield Text(f"   {amount(each.mean, unit):>10}  {counted(each.recordings, 'recordings'):<15} {between}", "dim")
    yield from left_out_lines(fleet.left_out)


def ranks_lines(fleet: Fleet, answer: Ranks) -> Iterator[Text]:
    """The answer of ``fleet ranks``."""
    if answer.meeting is None:
        yield Text(" the ranks wait for one another nowhere", "bold")
    elif answer.late is None:
        yield Text(f" no rank is late for certain in {printable(answer.meeting, 60)}", "bold").append(
            f": rank {answer.last} waits least there, by {_less(answer)}"
        )
    else:
        row = answer.ranks[answer.ranks["rank"] == answer.late].iloc[0]
        each = f", {seconds(answer.late_s / answer.steps)} in each of {answer.steps:,.0f}" if answer.steps else ""
        where = f"{printable(str(row['file']), 60)}:{row['line']}"
        yield Text(f" rank {answer.late} is late by {_less(answer)}{each}", "bold yellow").append(
            f": the others wait for it in {printable(answer.meeting, 60)}"
        )
        text = f"  {printable(row['source'].strip(), 60)}" if isinstance(row["source"], str) else ""
        doing = _doing(row["cpu_share"])
        yield Text(f"   it spends {seconds(row['more_s'])} more than they {doing}on {where}{text}")
    if answer.without_cpu > BUSY:
        share = f"{percent(answer.without_cpu)} % of their time"
        yield Text(f"   the ranks had no processor for {share}: a late one may be the machine's doing", "yellow")
    yield Text("   rank  CPU        waiting    in it      for the late one   host", "dim")
    for each in answer.ranks.itertuples():
        line = (
            f"   {each.rank:<5} {seconds(each.cpu_s):<10} {seconds(each.wait_s):<10} {seconds(each.meeting_wait_s):<10}"
        )
        yield Text(f"{line} {seconds(each.waited_s):<18} {printable(str(each.host or '?'), 40)}")
    if not answer.spans.empty:
        yield Text("   by span: who spends more in it than the others", "dim")
    for each in answer.spans.head(MAX_TOLD).itertuples():
        of_each = f", {seconds(each.more_s / each.count)} in each of {each.count:,.0f}" if each.count else ""
        place_of = f"{printable(str(each.file), 60)}:{each.line}"
        where = f"  {_doing(each.cpu_share)}on {place_of}" if isinstance(each.file, str) else ""
        yield Text(f"   {printable(each.span, 40):<20} rank {each.rank}: {seconds(each.more_s)} more{of_each}{where}")
    yield from left_out_lines(fleet.left_out)


def _less(answer: Ranks) -> str:
    """The time by which the last rank waits less, with its interval."""
    return f"{seconds(answer.late_s)} ({span(answer.late_low, answer.late_high, 's')})"


def _doing(cpu_share: float) -> str:
    """Main activity of a rank compared with the others: it computes or it waits."""
    return "" if pd.isna(cpu_share) else "computing " if cpu_share >= 0.5 else "waiting "


def memory_lines(fleet: Fleet, answer: FleetMemory) -> Iterator[Text]:
    """The answer of ``fleet memory``."""
    yield Text(" memory        least     median    9 of 10   99 of 100 most      recordings", "bold")
    for row in answer.peaks.itertuples():
        sizes = "".join(
            f"{amount(getattr(row, name), 'bytes'):<10}" for name in ("least", "median", "p90", "p99", "most")
        )
        line = Text(f"   {row.measure:<12}{sizes}{row.recordings:,}")
        yield line.append(f"   most in {printable(row.largest, 60)}" if row.largest else "", "dim")
    if answer.leaks.empty:
        yield Text("   no leaks", "dim")
    for row in answer.leaks.itertuples():
        mark, style = (" ! ", "yellow") if row.confirmed else ("   ", "dim")
        where = f"{printable(row.file, 60)}:{row.line}" if isinstance(row.file, str) else ""
        hosts = f"{counted(int(row.hosts), 'hosts')}, {counted(int(row.recordings), 'recordings')} of {row.of:,}"
        yield Text(
            f"{mark}leak in {hosts}: {amount(row.rate_bytes_per_s, 'bytes/s')}  {where} {printable(row.name, 60)}",
            style,
        )
    yield from left_out_lines(fleet.left_out)


def spans_lines(fleet: Fleet, frame: pd.DataFrame, query: Mapping[str, Any]) -> Iterator[Text]:
    """The rows of ``fleet spans``."""
    yield from _head(
        fleet, "named spans: how long one lasts (mean, p50/p95/p99), and its CPU time and waiting", "hosts"
    )
    if frame.empty:
        yield Text("   no recording has named spans", "dim")
    group = None
    for row in frame.itertuples():
        if query["by"] is not None and row.group != group:
            group = row.group
            yield Text()
            yield Text(f" {query['by']}={printable(str(group), 60)}", "bold")
        line = Text(f" {seconds(row.mean_s):>10}", "bold").append(f" {interval(row.low, row.high, 's'):<19}", "dim")
        parts = "/".join(amount(each, "s").strip() for each in (row.p50_s, row.p95_s, row.p99_s))
        line.append(f"{parts:>20} ", "dim")
        line.append(f"{amount(row.cpu_s, 's'):>9} CPU {amount(row.wait_s, 's'):>9} waiting ", "dim")
        for value, kind, text in ((row.await_s, "s", "awaiting"), (row.allocated_bytes, "bytes", "allocated")):
            if value > 0:
                line.append(f"{amount(value, kind):>9} {text} ", "dim")
        line.append(f"{row.count:>9,} in {row.recordings:,} of {row.of:,}  ", "dim")
        yield line.append(printable(row.name, 80)).append(f"   longest {seconds(row.longest_s)}", "dim")
    yield from left_out_lines(fleet.left_out)


def flame_lines(fleet: Fleet, tree: pd.DataFrame, measure: str, rows: int) -> Iterator[Text]:
    """The call tree of ``fleet flame``: its largest branches, callers above callees."""
    total = tree[f"total_{measure}"].to_numpy()
    parent = tree["parent"].to_numpy()
    whole = float(total[parent < 0].sum())
    yield from _head(fleet, "CPU time" if measure == "cpu_s" else "waiting, all threads")
    if not whole:
        yield Text("   nothing was recorded", "dim")
        return
    # A caller has at least what it calls: the largest nodes are a tree.
    shown = set((-total).argsort(kind="stable")[:rows].tolist())
    children: dict[int, list[int]] = {}
    for node in sorted(shown, key=lambda node: -total[node]):
        children.setdefault(int(parent[node]), []).append(node)
    for indent, node in INDENTED.rows(children.get(-1, []), lambda node: children.get(node, [])):
        row = tree.iloc[node]
        line = Text(f" {percent(total[node] / whole) or '0':>5} % {seconds(total[node]):>10}  ", "bold")
        line.append(f"{indent[:80]}{printable(str(row['name']), 80)}")
        yield line.append(f"  {printable(row['file'], 60)}" if isinstance(row["file"], str) else "", "dim")
    if len(shown) < len(tree):
        yield Text(f"   and {len(tree) - len(shown):,} smaller branches", "dim")
    yield from left_out_lines(fleet.left_out)


def find_lines(fleet: Fleet, frame: pd.DataFrame, query: Mapping[str, Any]) -> Iterator[Text]:
    """The rows of ``fleet find``."""
    metric = METRICS[query["metric"]]
    kind, unit = metric.each(query["per"])
    of, place_of = frame.attrs, ""
    if of["level"] == "lines":
        place_of = f"{printable(str(of['file']), 80)}:{of['line']}"
    elif of["level"] == "functions":
        place_of = f"{printable(str(of['name']), 80)}" + (f" ({printable(of['file'], 80)})" if of["file"] else "")
    yield from _head(
        fleet, f"{query['metric']}{f' of {place_of}' if place_of else ''}{f': {unit}' if place_of else ''}"
    )
    own = "s" if metric.name in ("cpu", "wait") else "bytes"
    for row in frame.itertuples():
        value = amount(row.value, kind) if place_of else ""
        line = Text(f" {amount(row.amount, own):>10} {value:>9}  ", "bold").append(printable(row.path, 100))
        labels = " ".join(f"{key}={value}" for key, value in row.labels.items())
        yield line.append(f"   {printable(str(row.host or '?'), 40)} {printable(labels, 160)}", "dim")
    yield from left_out_lines(fleet.left_out)


def left_out_lines(left_out: pd.DataFrame) -> Iterator[Text]:
    """Recordings that are in no answer, and the reasons."""
    if left_out.empty:
        return
    yield Text()
    yield Text(f" ! left out: {counted(len(left_out), 'recordings')}", "yellow")
    for row in left_out.head(MAX_TOLD).itertuples():
        yield Text(f"   {printable(row.path, 80)}: {printable(row.reason, 200)}", "dim")
    if len(left_out) > MAX_TOLD:
        yield Text(f"   and {len(left_out) - MAX_TOLD:,} more; --json has all", "dim")


def _head(fleet: Fleet, what: str, unit: str | None = None) -> Iterator[Text]:
    over = "" if unit is None else f"; in brackets the 95 % interval over {unit}"
    title = f" {counted(len(fleet.recordings), 'recordings')} in {printable(fleet.url, 100)}"
    yield Text(title, "bold").append(f"   {what}{over}", "dim")
