"""The terminal report of a diff: both sides, the totals, changed lines, functions and calls, and repeated work.

Text from the recordings was made printable when the rows were made, and never passes through rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from ...recording.native_names import native_label, short_name
from ...recording.text import shorten_left
from ...report_data.difference import (
    BY_NAME,
    CALL_TIME,
    CALLS,
    FASTER,
    GONE,
    HIDDEN_TOTALS,
    LESS,
    METRICS,
    MORE,
    NEW,
    NO_EVIDENCE,
    SLOWER,
    ComparedRun,
    DiffResult,
    Judged,
    Judgement,
    Level,
    Metric,
    Outcome,
    Status,
    calls_verdict_text,
    explained,
    redundancy_changes,
    shown_metrics,
    shown_rows,
)
from ...report_data.numbers import (
    amount,
    change,
    changes,
    counted,
    seconds,
    short_count,
    short_seconds,
    short_time,
    signed,
    span,
    when,
)
from .style import Style

MAX_FUNCTIONS = 10
MIN_SHARE = 0.01
"""Functions without a verdict are shown if the time in their calls differs by this part of the program's."""


def call_changes(result: DiffResult) -> pd.DataFrame:
    """Functions whose calls both sides know, the largest difference of the time in all of their calls first.

    Columns: those of ``Level.places``; ``calls_`` and ``mean_`` before base, new, change, change_low, change_high and
    verdict; ``spent``, the difference of calls times their mean time, in seconds; ``verdict_text``, the verdict in
    words or None.
    """
    level = result.functions
    if not (level.knows(CALLS.name) and level.knows(CALL_TIME.name)):
        return pd.DataFrame()
    parts = []
    for metric, prefix in ((CALLS, "calls_"), (CALL_TIME, "mean_")):
        values = level.values[level.values["metric"] == metric.name].set_index("row").drop(columns="metric")
        parts.append(values.add_prefix(prefix))
    frame = level.places.join(parts, how="inner")
    ends = [(frame[f"calls_{end}"] * frame[f"mean_{end}"]).fillna(0.0) for end in ("base", "new")]
    frame["spent"] = ends[1] - ends[0]
    frame["verdict_text"] = [
        calls_verdict_text(*both) for both in zip(frame["calls_verdict"], frame["mean_verdict"], strict=True)
    ]
    order = np.argsort(-frame["spent"].abs().to_numpy(), kind="stable")
    return frame.iloc[order]


def call_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section about calls; nothing where the calls of both sides are not known."""
    frame = call_changes(result)
    if frame.empty:
        return
    wall = max(run.profile.totals.wall_s or 0.0 for run in (*result.base, *result.new))
    shown = frame[frame["verdict_text"].notna() | (frame["spent"].abs() >= MIN_SHARE * wall)]
    if shown.empty:
        return
    judged = counted(int(frame["verdict_text"].notna().sum()), "verdicts").strip()
    text = Text().append(" Calls of functions ", "bold reverse" if style.colour else "bold")
    yield text.append(f"  {len(frame)} compared, {judged}", "dim")
    yield Text(f"{'calls':>8}{'change':>10}{'per call':>10}{'change':>10}  {'interval':<19}", "dim")
    for _, row in shown.head(MAX_FUNCTIONS).iterrows():
        yield _line(row, style, width)
    yield Text()


def _line(row: pd.Series, style: Style, width: int) -> Text:
    verdict = row["verdict_text"] if isinstance(row["verdict_text"], str) else None  # pandas makes None a NaN
    colour = "" if verdict is None else WORSE if "more" in verdict or "slower" in verdict else BETTER
    text = Text(f"{short_count(row['calls_new']):>8}{change(row['calls_change']):>10}")
    text.append(style.plain(f"{short_time(row['mean_new']):>10}"))
    text.append(f"{change(row['mean_change']):>10}")
    text.append(f"  {changes(row['mean_change_low'], row['mean_change_high']):<19}", "dim")
    text.append(f" {row['function']}  ", "bold").append(verdict or "", colour)
    room = width - text.cell_len - 3
    if isinstance(row["file"], str) and room >= 12:
        text.append("  " + shorten_left(f"{row['file']}:{row['line']}", room), "dim")
    return text


MOST = 10
COLOURS = {GONE: "#98c379", NEW: "#e06c75"}


def redundancy_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section; nothing where no run found any, or one did not look."""
    work_changes = redundancy_changes(result)
    if not work_changes:
        return
    text = Text().append(" Repeated work ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  CPU time of native code that does again what an earlier call did"), "dim")
    yield Text(f"{'base':>8}{'new':>8}  {'':<6} kind", "dim")
    for each in work_changes[:MOST]:
        row = Text(f"{short_seconds(each.base_s) or '0':>8}{short_seconds(each.new_s) or '0':>8}  ")
        row.append(f"{each.verdict:<6}", COLOURS.get(each.verdict, "dim"))
        row.append(f" {each.category or 'not decided'}, {each.kind}s  ")
        line = each.new_line if each.new_line is not None else each.base_line
        where = f"{each.function}  {each.file}:{line}"
        yield row.append(shorten_left(where, max(20, width - row.cell_len - 1)))
    if len(work_changes) > MOST:
        yield Text(f"{'':>8}and {len(work_changes) - MOST} more (--json has them all)", "dim")
    yield Text()


_RULER = Console(width=80)  # wrap() wants one; nothing is printed on it
MIN_WIDTH = 76

WIDE = 100
"""From this width on rows have the base's amount too."""

WORSE, BETTER = "#e06c75", "#98c379"
_COLOURS = {SLOWER: WORSE, MORE: WORSE, FASTER: BETTER, LESS: BETTER}
_MARKS = {Status.VANISHED: "-", Status.NEW: "+", Status.EDITED: "~", Status.MOVED: ">", Status.RENAMED: ">"}


def show(
    result: DiffResult,
    console: Console,
    *,
    metric: str | None = None,
    top: int | None = None,
    judgements: Sequence[Judgement] = (),
) -> None:
    """Prints the report in the width of ``console``, with colours if it has them."""
    style = Style.of(console)
    width = max(MIN_WIDTH, console.width)
    for line in Report(result, style, width, metric, top).text(judgements):
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        style.print(console, line)


class Report:
    """The lines of one report."""

    def __init__(self, result: DiffResult, style: Style, width: int, metric: str | None, top: int | None) -> None:
        self._result = result
        self._style = style
        self._width = width
        self._metric = metric
        self._top = top

    def text(self, judgements: Sequence[Judgement]) -> Iterator[Text]:
        """All lines of the report."""
        yield from self._head()
        yield Text()
        yield from self._totals()
        yield Text()
        for metric in shown_metrics(self._result, self._metric):
            yield from self._lines(metric)
            yield from self._functions(metric)
            yield from self._native(metric)
        yield from call_change_lines(self._result, self._style, self._width)
        yield from redundancy_change_lines(self._result, self._style, self._width)
        yield from self._legend()
        if judgements:
            yield Text()
        for judgement in judgements:
            yield self._judged(judgement)

    def _head(self) -> Iterator[Text]:
        result = self._result
        program = result.new[0].profile.metadata.program or result.new[0].name
        yield Text(" tachograph diff  ", "bold").append(program, "bold #e5c07b")
        yield from self._side("base", result.base)
        yield from self._side("new", result.new)
        yield from self._prose(result.summary.sentence, "bold")
        if result.spread is not None:
            yield from self._prose(
                f"one recording a side, and runs are said to differ by {result.spread * 100:g} %", "dim"
            )
        for remark in result.remarks:
            yield from self._prose(remark, "yellow")

    def _prose(self, text: str, look: str) -> Iterator[Text]:
        """A text on as many lines as it needs."""
        for line in Text(self._style.plain(text), look).wrap(_RULER, self._width - 4):
            line.rstrip()
            yield Text("   ").append_text(line)

    def _side(self, name: str, runs: list[ComparedRun]) -> Iterator[Text]:
        text = Text(f" {name:<5}", "bold")
        first = runs[0].profile
        if len(runs) == 1:
            facts = [when(first.metadata.created_utc), f"{seconds(first.totals.wall_s)} wall"]
            facts.append(f"{first.totals.samples:,} samples")
            text.append(f"{runs[0].name}  ")
            yield text.append(self._style.plain(" · ").join(fact for fact in facts if fact), "dim")
            return
        yield text.append(f"{len(runs)} recordings, means are shown")
        yield from self._prose(", ".join(run.name for run in runs), "dim")

    def _totals(self) -> Iterator[Text]:
        yield Text(f"{'':<20}{'base':>9}{'new':>9}{'change':>10}  {'interval':<19}verdict", "dim")
        for row in self._result.totals.values.itertuples(index=False):
            if row.metric in HIDDEN_TOTALS and row.verdict == NO_EVIDENCE:
                continue
            unit, colour = BY_NAME[row.metric].unit, _COLOURS.get(row.verdict, "")
            if row.base > 0:
                change_text, interval = change(row.change), changes(row.change_low, row.change_high)
            else:
                change_text, interval = signed(row.difference, unit), span(row.low, row.high, unit)
            text = Text(f" {BY_NAME[row.metric].label:<19}", "bold")
            text.append(f"{amount(row.base, unit):>9}{amount(row.new, unit):>9}")
            text.append(f" {change_text:>9}", colour).append(f"  {interval:<18} ", "dim")
            yield text.append(row.verdict, colour or "dim")

    def _lines(self, metric: str) -> Iterator[Text]:
        level = self._result.lines
        if not level.knows(metric):
            yield Text(f" {BY_NAME[metric].label} was not recorded on both sides")
            return
        yield self._title(f"Lines by {BY_NAME[metric].label}", level, metric)
        frame = shown_rows(self._result, level, metric, self._metric, self._top)
        if frame.empty:
            yield Text("   no line differs for certain, or by 1 % of the total", "dim")
        else:
            yield self._heads()
        for path in dict.fromkeys(frame["file"].tolist()):
            rows = frame[frame["file"] == path] if isinstance(path, str) else frame[frame["file"].isna()]
            name = shorten_left(path, self._width - 3) if isinstance(path, str) else "not on a line"
            yield Text(f" {name}", "bold")
            for _, row in rows.iterrows():
                yield self._line(row, BY_NAME[metric])
        yield from self._left_out(level, metric, frame)
        yield Text()

    def _line(self, row: pd.Series, metric: Metric) -> Text:
        text = self._cells(row, metric)
        number = "" if row["line"] is pd.NA else str(row["line"])
        text.append(f" {_MARKS.get(row['status'], ' ')}{number:>5}  ", "dim")
        source = row["source"].strip() if isinstance(row["source"], str) else None
        text.append(source if source is not None else f"{row['function']}", "" if source is not None else "italic")
        if row["status"] in (Status.MOVED, Status.EDITED) and row["base_line"] is not pd.NA:
            moved = row["base_file"] != row["file"]
            was = f"{shorten_left(row['base_file'], 30)}:{row['base_line']}" if moved else f"line {row['base_line']}"
            text.append(f"  (was {was})", "dim")
        return text

    def _functions(self, metric: str) -> Iterator[Text]:
        level, name = self._result.functions, f"total_{metric}"
        if not level.knows(name):
            return
        frame = shown_rows(self._result, level, name, self._metric, self._top)
        if frame.empty:
            return
        yield self._title(f"Functions by {BY_NAME[metric].label}, with what they call", level, name)
        yield self._heads()
        for _, row in frame.iterrows():
            text = self._cells(row, BY_NAME[name])
            text.append(f" {_MARKS.get(row['status'], ' ')} ", "dim").append(str(row["function"]))
            if row["status"] in (Status.RENAMED, Status.MOVED):
                text.append(f"  (was {row['base_function']})", "dim")
            room = self._width - text.cell_len - 2
            if isinstance(row["file"], str) and room >= 12:
                text.append("  " + shorten_left(f"{row['file']}:{row['line']}", room), "dim")
            yield text
        yield from self._left_out(level, name, frame)
        yield Text()

    def _native(self, metric: str) -> Iterator[Text]:
        """Native functions: with what they call, or without it if a side does not know their callers."""
        level = self._result.native_functions
        name = f"total_{metric}" if level.knows(f"total_{metric}") else metric
        if not level.knows(name):
            return
        frame = shown_rows(self._result, level, name, self._metric, self._top)
        if frame.empty:
            return
        called = ", with what they call" if name != metric else " itself"
        yield self._title(f"Native functions by {BY_NAME[metric].label}{called}", level, name)
        yield self._heads()
        for _, row in frame.iterrows():
            text = self._cells(row, BY_NAME[name])
            text.append(f" {_MARKS.get(row['status'], ' ')} ", "dim")
            library = row["module"] if isinstance(row["module"], str) else ""
            function = native_label(str(row["function"]), library)
            shown = short_name(function)
            room = max(16, self._width - text.cell_len - min(len(library), 24) - 3)
            text.append(self._style.plain(shown if len(shown) <= room else shown[: room - 1] + "…"))
            room = self._width - text.cell_len - 2
            if not function.startswith("[") and library and room >= 8:
                text.append("  " + shorten_left(library, room), "dim")
            yield text
        yield from self._left_out(level, name, frame)
        yield Text()

    def _left_out(self, level: Level, metric: str, shown: pd.DataFrame) -> Iterator[Text]:
        """The option that shows the verdicts that a table leaves out, if there are any."""
        left = level.verdicts(metric) - int(shown["verdict"].isin(_COLOURS).sum())
        if left > 0:
            name = metric.removeprefix("total_")
            how = "--top N shows more" if name == (self._metric or METRICS[0]) else f"--metric {name} shows more"
            hidden = counted(left, "verdicts on smaller differences").strip()
            yield Text(f"   and {hidden}: {how}", "dim")

    def _title(self, title: str, level: Level, metric: str) -> Text:
        text = Text().append(f" {title} ", "bold reverse" if self._style.colour else "bold")
        of = " as shares of their runs" if self._result.shares else ""
        verdicts = counted(level.verdicts(metric), "verdicts").strip()
        return text.append(f"  {level.compared(metric)} compared{of}, {verdicts}", "dim")

    def _heads(self) -> Text:
        base = f"{'base':>9}" if self._width >= WIDE else ""
        return Text(f"{base}{'new':>9}{'difference':>11}  {'interval':<19}{'verdict':<11}", "dim")

    def _cells(self, row: pd.Series, metric: Metric) -> Text:
        unit = "share" if self._result.shares else metric.unit
        colour = _COLOURS.get(row["verdict"], "")
        text = Text(f"{amount(row['base'], unit):>9}" if self._width >= WIDE else "")
        text.append(f"{amount(row['new'], unit):>9}{signed(row['difference'], unit):>11}", colour)
        text.append(f"  {span(row['low'], row['high'], unit):<18} ", "dim")
        return text.append(f"{row['verdict']:<11}", colour or "dim")

    def _legend(self) -> Iterator[Text]:
        note = "if nothing changed, hardly 1 diff in 100 has a verdict"
        if self._result.judged is Judged.NOTHING:
            note = "intervals are of sampling alone: how much runs differ is not in them"
        yield from self._prose(f"+ new  - gone  ~ edited  > moved or renamed; {note}", "dim")

    def _judged(self, judgement: Judgement) -> Text:
        condition = judgement.condition
        words = {
            Outcome.FAILED: ("FAILED", WORSE),
            Outcome.PASSED: ("passed", BETTER),
            Outcome.UNDECIDED: ("not sure", "yellow"),
        }
        word, colour = words[judgement.outcome]
        return Text(f" {word:<9}", f"bold {colour}").append(condition.text).append(f"  {explained(judgement)}", "dim")
