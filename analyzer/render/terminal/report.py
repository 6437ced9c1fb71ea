"""The terminal report: a head, the lines that matter with their neighbours, functions and threads.

Text from the recording was made printable when the profile was built, and never passes through rich's markup.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row as Values
from ...recording.question_options import Sort
from ...recording.text import shorten_left
from ...report_data.advice.program import Suggestion
from ...report_data.advice.table import Advice
from ...report_data.headline import (
    MEANING,
    OUT_OF_SCOPE,
    files_without_source,
    library_callers,
    off_line_title,
    scope_text,
)
from ...report_data.line_selection import MIN_SHARE, Block, Row, blocks, mostly_waits, other_functions, wall_of
from ...report_data.numbers import percent, seconds, short_seconds, short_size, size
from ...report_data.section_rows import loop_holder
from ...report_data.sections import SECTIONS
from .header import header, indented
from .line_columns import Columns
from .section_lines import (
    call_lines,
    function_lines,
    hot_spot_lines,
    leak_lines,
    native_lines,
    plain_sections,
    redundancy_lines,
    section_title,
    span_lines,
    suggestion_lines,
    thread_lines,
)
from .style import Style

if TYPE_CHECKING:
    from rich.syntax import Syntax

MIN_WIDTH = 60

MAX_FILES = 2
"""Files without source that are named."""


def show(
    profile: Profile,
    console: Console,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    advice: Advice | None = None,
    *,
    notes: bool = False,
    following: bool = False,
) -> None:
    """Prints the report on ``console``, in its width, with colours if it has them; ``notes``: all notes on the data.

    ``following``: lines are ordered by wall time, not by ``sort``, where the program waits for most of it.
    """
    style = Style.of(console)
    for line in report_lines(profile, console, sort, top, advice, notes=notes, following=following):
        style.print(console, line)


def report_lines(
    profile: Profile,
    console: Console,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    advice: Advice | None = None,
    *,
    notes: bool = False,
    following: bool = False,
) -> Iterator[Text]:
    """The lines of the report, in the width of ``console``."""
    suggestions = (advice or Advice()).about(profile)
    by_wall = following and mostly_waits(profile)
    width = max(MIN_WIDTH, console.width)
    report = Report(profile, suggestions, Style.of(console), width, sort, top, notes=notes, by_wall=by_wall)
    for line in report.text():
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        yield line


class Report:
    """The lines of one report."""

    def __init__(
        self,
        profile: Profile,
        suggestions: list[Suggestion],
        style: Style,
        width: int,
        sort: Sort,
        top: int | None,
        *,
        notes: bool,
        by_wall: bool,
    ) -> None:
        self._profile = profile
        self._suggestions = suggestions
        self._style = style
        self._width = width
        self._sort = sort
        self._top = top
        self._notes = notes
        self._by_wall = by_wall
        self._columns = Columns(profile, style, width, sort, by_wall=by_wall)
        self._syntax = _python() if style.colour else None

    def text(self) -> Iterator[Text]:
        """All lines of the report, each at most as wide as the console once it is cut there."""
        yield from header(self._profile, self._style, self._width, notes=self._notes)
        yield Text()
        file_blocks = blocks(self._profile, self._sort, self._top, beside=self._columns.beside, by_wall=self._by_wall)
        if file_blocks:
            yield from self._lines(file_blocks)
        else:
            yield Text(f" {self._nothing()}")
        yield from suggestion_lines(self._suggestions, self._style, self._width)
        if not self._suggestions and file_blocks and not self._sort.by_size:
            yield from hot_spot_lines(self._profile, self._style, self._width)
        yield from leak_lines(self._profile, self._style, self._width)
        yield from redundancy_lines(self._profile, self._style, self._width)
        yield from span_lines(self._profile, self._style, self._width)
        if file_blocks:
            yield from function_lines(self._profile, self._sort, self._style, self._width)
            if not self._sort.by_size:
                yield from native_lines(self._profile, self._style, self._width)
        yield from call_lines(self._profile, self._style, self._width)
        yield from plain_sections(self._profile, self._style, self._width)
        if file_blocks:
            yield from thread_lines(self._profile, self._sort, self._style, self._width)

    def _nothing(self) -> str:
        """Why there are no lines."""
        if not self._sort.by_size:
            return "No CPU time or waiting was recorded here."
        if self._sort is Sort.LEAK and self._profile.frames.leaks is not None:
            return "Nothing leaks, as far as this recording tells."
        recorded = self._profile.totals.copied_bytes if self._sort is Sort.COPIES else self._profile.memory
        return "Memory and copies were not recorded here." if recorded is None else "There is none of that here."

    def _lines(self, file_blocks: list[Block]) -> Iterator[Text]:
        shown = [row.index for block in file_blocks for row in block.rows if row.index is not None]
        if self._by_wall:  # other code waits for all that is idle: a bar of it would leave none to see of the lines
            shown = [row for row in shown if self._profile.frames.lines["line"].tolist()[row] is not None]
        longest = "wait_s" if self._sort is Sort.WAIT else "cpu_s"
        amounts = wall_of(self._profile.frames.lines) if self._by_wall else self._profile.frames.lines[longest]
        self._columns.longest = float(amounts[shown].max(initial=0.0))
        yield from section_title(SECTIONS["lines"], self._style, self._width, self._scope())
        yield self._column_heads()
        for block in file_blocks:
            if block.file is not None:
                yield self._file(block)
            else:
                yield Text(f" {off_line_title(self._profile.scope)}", "bold")
            for number, (row, indent) in enumerate(zip(block.rows, self._indents(block), strict=True)):
                if number in block.gaps:
                    yield Text(self._style.plain(f"{'⋮':>6}"), "dim")
                yield self._line(row, block.file_id, indent)
            yield from self._meanings(block)
            yield Text()
        if not self._sort.by_size:
            yield from self._into_libraries()
            yield from self._without_source()
            yield from self._of_tasks()

    def _of_tasks(self) -> Iterator[Text]:
        """A hint at ``--tasks``, if coroutines ran, and at what held their event loop."""
        tasks = self._profile.frames.tasks
        if len(tasks) and "task" in tasks["kind"].astype(str).tolist():
            holder = loop_holder(self._profile)
            if holder is not None:
                held = (
                    f"the event loop was never idle: {holder['function']} held it for most of the time, and the tasks"
                    " that awaited anything waited for that"
                )
                yield from indented(Text(self._style.plain(held)), self._width, "       ")
            yield Text("       coroutines ran: --tasks shows their time, and what they waited for", "dim")
            yield Text()

    def _into_libraries(self) -> Iterator[Text]:
        """A hint at ``--line`` and ``--scope``, if most of the time is in libraries that a few lines call."""
        callers = library_callers(self._profile)
        if not callers:
            return
        places = [f"{file.rpartition('/')[2]}:{line}" for file, line in callers]
        of = " and ".join([", ".join(places[:-1]), places[-1]] if len(places) > 1 else places)
        hint = (
            f"most of the time is in libraries that {of} {'calls' if len(places) == 1 else 'call'}:"
            f" --line {shlex.quote(places[0])} shows what, --scope all their lines"
        )
        yield from indented(Text(hint, "dim"), self._width, "       ")
        yield Text()

    def _without_source(self) -> Iterator[Text]:
        """Files with much of the time at whose lines no rule of the suggestions could look."""
        files = files_without_source(self._profile)
        if files:
            names = ", ".join(each.rpartition("/")[2] for each in files[:MAX_FILES])
            names += f" and {len(files) - MAX_FILES} other files" if len(files) > MAX_FILES + 1 else ""
            hint = f"the source of {names} is not in the recording: no suggestion's rule could look at these lines"
            yield from indented(Text(self._style.plain(hint), "dim"), self._width, "       ")
            yield Text()

    def _meanings(self, block: Block) -> Iterator[Text]:
        """The meanings of the rows that are not a line."""
        if block.file is None:
            names = [self._profile.frames.lines["function"][row.index] for row in block.rows]
            meanings = "; ".join(f"{name}: {MEANING[name]}" for name in names if name in MEANING)
            yield from indented(Text(meanings, "dim"), self._width, "       ")
            if OUT_OF_SCOPE in names and (inside := self._inside()):
                yield from indented(Text(self._style.plain(inside), "dim"), self._width, "       ")

    def _inside(self) -> str:
        """The functions behind the row of other code, and how to see all of them."""
        functions = []
        for each in other_functions(self._profile, self._sort):
            amount = short_size(each.amount) if each.by_size else short_seconds(each.amount)
            waits = f"waits {short_seconds(each.wait_s)}" if short_seconds(each.wait_s) and not each.by_size else ""
            place = "" if each.file is None else f" {each.file.rpartition('/')[2]}:{each.line}"
            functions.append(f"{each.name}{place} ({', '.join(filter(None, (amount, waits))) or 'hardly any'})")
        return f"most of {OUT_OF_SCOPE}: {'; '.join(functions)}; --scope all shows its lines" if functions else ""

    def _scope(self) -> str:
        profile = self._profile
        of = (
            "the busy time"
            if self._sort is Sort.WAIT
            else "all"
            if self._sort.by_size
            else "the time, or 5 % of the memory"
            if self._columns.beside
            else "the time"
        )
        if self._by_wall:
            return f"by wall time of all threads and tasks, as it mostly waits; {scope_text(profile.scope)}"
        what = f"the best {self._top}" if self._top is not None else f"at least {MIN_SHARE * 100:.0f} % of {of}"
        if profile.widened:
            return f"{what}; all code: little of it is the project's"
        return f"{what}; {scope_text(profile.scope)}"

    def _column_heads(self) -> Text:
        return Text().append(f"{'line':>6} ", "dim").append_text(self._columns.heads())

    def _file(self, block: Block) -> Text:
        files = self._profile.frames.files
        row = files.row(int(np.flatnonzero(files["file_id"] == block.file_id)[0]))
        share = f"{percent(row['cpu_share']) or '0'} %"
        if self._sort.by_size:
            share = size(round(row[self._sort.column]))
        elif self._by_wall:
            share = seconds(float(wall_of(files)[np.flatnonzero(files["file_id"] == block.file_id)[0]]))
        elif self._sort is Sort.WAIT:
            share = f"{seconds(row['wait_s'])} waiting"
        room = self._width - len(share) - 4
        text = Text().append(f" {shorten_left(block.file or '', room)}", "bold")
        text.pad_right(max(1, room - text.cell_len + 2))
        return text.append(share, "bold")

    def _line(self, row: Row, file: int, indent: int) -> Text:
        values = self._profile.frames.lines.row(row.index) if row.index is not None else None
        number = "" if row.number is None else str(row.number)
        text = Text().append(f"{number:>6} ", "dim" if row.context else "")
        text.append_text(self._columns.cells(values, dim=row.context))
        text.append("  ")
        room = max(8, self._width - text.cell_len - 1)
        if row.number is None and values is not None:
            return text.append(str(values["function"]))
        source = self._profile.sources.line(file, row.number or 0)
        return text.append_text(self._source(source and source[indent:], values, room, dim=row.context))

    def _indents(self, block: Block) -> Iterator[int]:
        """Columns of white space, by row, that all lines up to the next gap begin with, and that need not be shown."""
        ends = [0, *sorted(set(block.gaps) - {0}), len(block.rows)]
        for start, end in pairwise(ends):
            sources = (self._profile.sources.line(block.file_id, row.number or 0) for row in block.rows[start:end])
            indents = (len(line) - len(line.lstrip(" ")) for line in sources if line and line.strip())
            yield from repeat(min(indents, default=0), end - start)

    def _source(self, source: str | None, values: Values | None, room: int, *, dim: bool) -> Text:
        if source is None:
            name = "" if values is None else f"in {values['function']}"
            if values is not None and values["file"] in self._profile.sources.generated:
                name += ", generated code"
            text = Text(name, "dim italic")
        elif self._syntax is not None and not dim:
            text = self._syntax.highlight(source)
            text.rstrip()
        else:
            text = Text(source, "dim" if dim else "")
        text.truncate(room, overflow="ellipsis")
        return text


def _python() -> Syntax:
    """Colours for Python; what makes them is not loaded for a report without colours."""
    from rich.syntax import Syntax

    return Syntax("", "python", theme="ansi_dark")
