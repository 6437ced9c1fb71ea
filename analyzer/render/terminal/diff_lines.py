"""The terminal report of a diff: both sides, the totals, changed lines, functions and calls, and repeated work.

Text from the recordings was made printable when the rows were made, and never passes through rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ...recording.native_names import native_label, short_name
from ...recording.text import shorten_left
from ...report_data.difference import (
    FASTER,
    LESS,
    MORE,
    NOT_JUDGED,
    SLOWER,
    ComparedRun,
    DiffResult,
    Judged,
    Judgement,
    Outcome,
    Status,
    verdict_text,
)
from ...report_data.difference_sections import (
    GONE,
    NEW,
    SAMPLING_ALONE,
    CallChange,
    ChangedRow,
    ChangedTable,
    call_changes,
    changed_tables,
    explained,
    missing_text,
    redundancy_changes,
    scope_fact,
    shown_call_changes,
    shown_metrics,
    side_facts,
    spread_text,
    total_rows,
)
from ...report_data.numbers import change, counted, short_count, short_seconds, short_time
from ...report_data.sections import more_text
from .header import indented
from .section_lines import title_line
from .style import Style

MAX_FUNCTIONS = 10


def call_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section about calls; nothing where the calls of both sides are not known."""
    every = call_changes(result)
    shown = shown_call_changes(result, every) if every else []
    if not shown:
        return
    judged = counted(sum(each.verdict is not None for each in every), "verdicts")
    yield title_line("Calls of functions", f"{len(every)} compared, {judged}", style)
    yield Text(f"{'calls':>8}{'change':>10}{'per call':>10}{'change':>10}  {'interval':<19}", "dim")
    for each in shown[:MAX_FUNCTIONS]:
        yield _line(each, style, width)
    yield Text()


def _line(row: CallChange, style: Style, width: int) -> Text:
    verdict = row.verdict or ""
    text = Text(f"{short_count(row.calls):>8}{change(row.calls_change):>10}")
    text.append(style.plain(f"{short_time(row.mean_s):>10}"))
    text.append(f"{change(row.mean_change):>10}").append(f"  {row.mean_interval:<19}", "dim")
    colour = "" if not verdict else WORSE if "more" in verdict or "slower" in verdict else BETTER
    text.append(f" {row.function}  ", "bold").append(verdict, colour)
    room = width - text.cell_len - 3
    if row.file is not None and room >= 12:
        text.append("  " + shorten_left(f"{row.file}:{row.line}", room), "dim")
    return text


MOST = 10
COLOURS = {GONE: "#98c379", NEW: "#e06c75"}


def redundancy_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section; nothing where no run found any, or one did not look."""
    work_changes = redundancy_changes(result)
    if not work_changes:
        return
    yield title_line("Repeated work", "CPU time of native code that does again what an earlier call did", style)
    yield Text(f"{'base':>8}{'new':>8}  {'':<6} kind", "dim")
    for each in work_changes[:MOST]:
        row = Text(f"{short_seconds(each.base_s) or '0':>8}{short_seconds(each.new_s) or '0':>8}  ")
        row.append(f"{each.verdict:<6}", COLOURS.get(each.verdict, "dim"))
        row.append(f" {each.category or 'not decided'}, {each.kind}s  ")
        line = each.new_line if each.new_line is not None else each.base_line
        where = f"{each.function}  {each.file}:{line}"
        yield row.append(shorten_left(where, max(20, width - row.cell_len - 1)))
    if len(work_changes) > MOST:
        yield Text(f"{'':>8}{more_text(len(work_changes) - MOST)}", "dim")
    yield Text()


MIN_WIDTH = 76

WIDE = 100
"""From this width on rows have the base's amount too."""

WORSE, BETTER = "#e06c75", "#98c379"
_COLOURS = {SLOWER: WORSE, MORE: WORSE, FASTER: BETTER, LESS: BETTER}
_NOT_JUDGED = verdict_text(NOT_JUDGED)
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
    style.print_lines(console, Report(result, style, width, metric, top).text(judgements))


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
            missing = missing_text(self._result, metric)
            if missing is not None:
                yield Text(f" {missing}")
            for table in changed_tables(self._result, metric, self._metric, self._top):
                yield from self._table(table)
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
        facts = (spread_text(result) if result.spread is not None else None, scope_fact(result))
        for fact in filter(None, facts):
            yield from self._prose(fact, "dim")
        for remark in result.remarks:
            yield from self._prose(remark, "yellow")

    def _prose(self, text: str, look: str) -> Iterator[Text]:
        """A text on as many lines as it needs."""
        return indented(Text(self._style.plain(text), look), self._width - 1, "   ")

    def _side(self, name: str, runs: list[ComparedRun]) -> Iterator[Text]:
        text, facts = Text(f" {name:<5}", "bold"), side_facts(runs)
        if len(runs) == 1:
            text.append(f"{runs[0].name}  ")
            yield text.append(self._style.plain(" · ").join(facts), "dim")
            return
        yield text.append(", ".join(facts), "dim")
        yield from self._prose(", ".join(run.name for run in runs), "dim")

    def _totals(self) -> Iterator[Text]:
        yield Text(f"{'':<20}{'base':>9}{'new':>9}{'change':>10}  {'interval':<19}verdict", "dim")
        for row in total_rows(self._result):
            colour = _COLOURS.get(row.verdict, "")
            text = Text(f" {row.label:<19}", "bold").append(f"{row.base:>9}{row.new:>9}")
            text.append(f" {row.change or row.difference:>9}", colour)
            text.append(f"  {row.change_interval or row.interval:<18} ", "dim")
            yield text.append(row.verdict, colour or "dim")

    def _table(self, table: ChangedTable) -> Iterator[Text]:
        yield title_line(table.title, table.subtitle, self._style)
        if table.rows:
            base = f"{'base':>9}" if self._width >= WIDE else ""
            verdict = "verdict" if any(row.verdict != _NOT_JUDGED for row in table.rows) else ""
            yield Text(f"{base}{'new':>9}{'difference':>11}  {'interval':<19}{verdict}", "dim")
        else:
            yield Text("   no line differs for certain, or by 1 % of the total", "dim")
        if table.level == "lines":
            yield from self._lines(table.rows)
        else:
            put = self._function if table.level == "functions" else self._native
            yield from (put(row) for row in table.rows)
        if table.more:
            yield Text(f"   {table.more}", "dim")
        yield Text()

    def _lines(self, rows: Sequence[ChangedRow]) -> Iterator[Text]:
        for path in dict.fromkeys(row.file for row in rows):
            yield Text(f" {'not on a line' if path is None else shorten_left(path, self._width - 3)}", "bold")
            yield from (self._line(row) for row in rows if row.file == path)

    def _line(self, row: ChangedRow) -> Text:
        number = "" if row.line is None else str(row.line)
        text = self._cells(row).append(f" {_MARKS.get(row.status, ' ')}{number:>5}  ", "dim")
        if row.source is None:
            text.append(row.function, "italic")
        else:
            text.append(row.source.strip())
        if row.status in (Status.MOVED, Status.EDITED) and row.base_line is not None:
            moved = row.base_file is not None and row.base_file != row.file
            was = f"{shorten_left(row.base_file or '', 30)}:{row.base_line}" if moved else f"line {row.base_line}"
            text.append(f"  (was {was})", "dim")
        return text

    def _function(self, row: ChangedRow) -> Text:
        text = self._cells(row).append(f" {_MARKS.get(row.status, ' ')} ", "dim").append(row.function)
        if row.status in (Status.RENAMED, Status.MOVED):
            text.append(f"  (was {row.base_function})", "dim")
        room = self._width - text.cell_len - 2
        if row.file is not None and room >= 12:
            text.append("  " + shorten_left(f"{row.file}:{row.line}", room), "dim")
        return text

    def _native(self, row: ChangedRow) -> Text:
        text = self._cells(row).append(f" {_MARKS.get(row.status, ' ')} ", "dim")
        library = row.module or ""
        function = native_label(row.function, library)
        shown = short_name(function)
        room = max(16, self._width - text.cell_len - min(len(library), 24) - 3)
        text.append(self._style.plain(shown if len(shown) <= room else shown[: room - 1] + "…"))
        room = self._width - text.cell_len - 2
        if not function.startswith("[") and library and room >= 8:
            text.append("  " + shorten_left(library, room), "dim")
        return text

    def _cells(self, row: ChangedRow) -> Text:
        colour = _COLOURS.get(row.verdict, "")
        text = Text(f"{row.base:>9}" if self._width >= WIDE else "")
        text.append(f"{row.new:>9}{row.difference:>11}", colour)
        text.append(f"  {row.interval:<18} ", "dim")
        # Above the rows it says why.
        verdict = "" if row.verdict == _NOT_JUDGED else f"{row.verdict:<11}"
        return text.append(verdict, colour or "dim")

    def _legend(self) -> Iterator[Text]:
        note = "if nothing changed, hardly 1 diff in 100 has a verdict"
        if self._result.judged in (Judged.NOTHING, Judged.COUNTERS):
            note = SAMPLING_ALONE
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
