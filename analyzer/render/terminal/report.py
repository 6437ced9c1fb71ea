"""The terminal report: a head, the lines that matter with their neighbours, functions and threads.

Text from the recording was made printable when the profile was built, and never passes through rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from ...report_data.headline import MEANING, OUT_OF_SCOPE, library_caller, off_line_title, scope_text
from ...report_data.line_selection import MIN_SHARE, Block, Row, blocks, other_functions
from ...report_data.numbers import percent, seconds, short_seconds, short_size, size
from ...report_data.sections import SECTIONS
from .header import header, indented
from .line_columns import Columns
from .sections import (
    call_lines,
    leak_lines,
    native_lines,
    plain_sections,
    redundancy_lines,
    section_title,
    span_lines,
    suggestion_lines,
)
from .style import COLOURS, Style

if TYPE_CHECKING:
    from rich.syntax import Syntax

MIN_WIDTH = 60
MAX_FUNCTIONS = 10
MAX_THREADS = 12


def show(
    profile: Profile,
    console: Console,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    advice: Advice | None = None,
    *,
    notes: bool = False,
) -> None:
    """Prints the report on ``console``, in its width, with colours if it has them; ``notes``: all notes on the data."""
    style = Style.of(console)
    for line in report_lines(profile, console, sort, top, advice, notes=notes):
        style.print(console, line)


def report_lines(
    profile: Profile,
    console: Console,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    advice: Advice | None = None,
    *,
    notes: bool = False,
) -> Iterator[Text]:
    """The lines of the report, in the width of ``console``."""
    suggestions = (advice or Advice()).about(profile)
    report = Report(profile, suggestions, Style.of(console), max(MIN_WIDTH, console.width), sort, top, notes=notes)
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
    ) -> None:
        self._profile = profile
        self._suggestions = suggestions
        self._style = style
        self._width = width
        self._sort = sort
        self._top = top
        self._notes = notes
        self._columns = Columns(profile, style, width, sort)
        self._syntax = _python() if style.colour else None

    def text(self) -> Iterator[Text]:
        """All lines of the report, each at most as wide as the console once it is cut there."""
        yield from header(self._profile, self._style, self._width, notes=self._notes)
        yield Text()
        file_blocks = blocks(self._profile, self._sort, self._top, beside=self._columns.beside)
        if file_blocks:
            yield from self._lines(file_blocks)
        else:
            yield Text(f" {self._nothing()}")
        yield from suggestion_lines(self._suggestions, self._style, self._width)
        yield from leak_lines(self._profile, self._style, self._width)
        yield from redundancy_lines(self._profile, self._style, self._width)
        if file_blocks:
            yield from self._functions()
            if not self._sort.by_size:
                yield from native_lines(self._profile, self._style, self._width, self._title, self._columns)
        yield from call_lines(self._profile, self._style, self._width)
        yield from span_lines(self._profile, self._style, self._width)
        yield from plain_sections(self._profile, self._style, self._width)
        if file_blocks:
            yield from self._threads()

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
        longest = "wait_s" if self._sort is Sort.WAIT else "cpu_s"
        self._columns.longest = float(self._profile.frames.lines[longest][shown].max())
        yield self._title(SECTIONS["lines"].title, self._scope())
        yield self._column_heads()
        for block in file_blocks:
            if block.file is not None:
                yield self._file(block)
            else:
                yield Text(f" {off_line_title(self._profile.scope)}", "bold")
            indent = self._indent(block)
            for number, row in enumerate(block.rows):
                if number in block.gaps:
                    yield Text(self._style.plain(f"{'⋮':>6}"), "dim")
                yield self._line(row, block.file_id, indent)
            yield from self._meanings(block)
            yield Text()
        if not self._sort.by_size:
            yield from self._into_libraries()

    def _into_libraries(self) -> Iterator[Text]:
        """A hint at ``--line`` and ``--scope``, if most of the time is in libraries that one line calls."""
        place = library_caller(self._profile)
        if place is None:
            return
        hint = (
            f"most of the time is in libraries that {place} calls: --line {place} shows what, --scope all their lines"
        )
        yield from indented(Text(hint, "dim"), self._width, "       ")
        yield Text()

    def _meanings(self, block: Block) -> Iterator[Text]:
        """The meanings of the rows that are not a line."""
        if block.file is None:
            names = [self._profile.frames.lines["function"][row.index] for row in block.rows]
            meanings = "; ".join(f"{name}: {MEANING[name]}" for name in names if name in MEANING)
            yield from indented(Text(meanings, "dim"), self._width, "       ")
            if OUT_OF_SCOPE in names:
                yield from indented(Text(self._style.plain(self._inside()), "dim"), self._width, "       ")

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
        what = f"the best {self._top}" if self._top is not None else f"at least {MIN_SHARE * 100:.0f} % of {of}"
        if profile.widened:
            return f"{what}; all code: little of it is the project's"
        return f"{what}; {scope_text(profile.scope)}"

    def _title(self, title: str, rest: str) -> Text:
        text = Text().append(f" {title} ", "bold reverse" if self._style.colour else "bold")
        return text.append(self._style.plain(f"  {rest}"), "dim")

    def _column_heads(self) -> Text:
        return Text().append(f"{'line':>6} ", "dim").append_text(self._columns.heads())

    def _file(self, block: Block) -> Text:
        files = self._profile.frames.files
        row = files.row(int(np.flatnonzero(files["file_id"] == block.file_id)[0]))
        share = f"{percent(row['cpu_share']) or '0'} %"
        if self._sort.by_size:
            share = size(round(row[self._sort.column]))
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

    def _indent(self, block: Block) -> int:
        """Columns of white space that all shown lines of a file begin with, and that need not be shown."""
        sources = (self._profile.sources.line(block.file_id, row.number or 0) for row in block.rows)
        return min((len(line) - len(line.lstrip(" ")) for line in sources if line and line.strip()), default=0)

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

    def _functions(self) -> Iterator[Text]:
        by_size = self._sort.by_size
        frame = self._profile.frames.functions
        second = f"total_{self._sort.column}" if f"total_{self._sort.column}" in frame else "total_cpu_s"
        frame = frame.take(frame.largest_first(self._sort.column, second))
        some = (
            frame[second] > 0 if by_size else (frame["total_cpu_share"] >= 0.0005) | (frame["total_wait_s"] >= 0.0005)
        )
        frame = frame.take(np.flatnonzero(some & (frame["file_id"] >= 0))[:MAX_FUNCTIONS])
        if not len(frame):
            return
        yield section_title(SECTIONS["functions"], self._style)
        if by_size:
            yield Text(f"{'self':>8}{'total':>9}{'alloc.':>9}{'copied':>9}  function", "dim")
        else:
            yield Text(f"{'self %':>8}{'total %':>9}{'':>6}{'wait':>8}  function", "dim")
        for row in frame.rows():
            text = self._sizes_of(row, second) if by_size else self._times_of(row)
            text.append(str(row["function"]))
            text.append("  ")
            where = f"{row['file']}:{row['line']}"
            text.append(shorten_left(where, max(10, self._width - text.cell_len - 1)), "dim")
            yield text
        yield Text()

    def _times_of(self, row: Values) -> Text:
        text = Text().append(f"{percent(row['cpu_share']):>8}", "bold")
        text.append(f"{percent(row['total_cpu_share']):>9}")
        text.append(f"{self._columns.margin(row, 'total_'):>6}", "dim")
        return text.append(f"{short_seconds(row['total_wait_s']):>8}  ")

    def _sizes_of(self, row: Values, total: str) -> Text:
        text = Text().append(f"{short_size(row[self._sort.column]):>8}", "bold")
        text.append(f"{short_size(row[total]) if total.endswith('bytes') else '':>9}")
        text.append(f"{short_size(row['total_allocated_bytes']):>9}", "dim")
        return text.append(f"{short_size(row['total_copied_bytes']):>9}  ", "dim")

    def _threads(self) -> Iterator[Text]:
        frame = self._profile.frames.threads
        if self._sort is Sort.WAIT:
            frame = frame.take(frame.largest_first("wait_s"))
        if len(frame) < 2:
            return
        yield section_title(SECTIONS["threads"], self._style)
        yield Text(f"{'CPU %':>8}{'':>6}{'CPU':>8}{'Python':>8}{'native':>8}{'kernel':>8}{'wait':>8}  thread", "dim")
        processes = self._profile.frames.processes
        owners = dict(zip(processes["process"], processes["name"], strict=True))
        for row in frame.take(slice(MAX_THREADS)).rows():
            text = Text().append(f"{percent(row['cpu_share']):>8}", "bold")
            text.append(f"{self._columns.margin(row) if percent(row['cpu_share']) else '':>6}", "dim")
            for part in ("cpu", "python", "native", "kernel", "wait"):
                text.append(f"{short_seconds(row[f'{part}_s']):>8}", COLOURS.get(part, "") if part != "wait" else "")
            name = "unnamed" if row["name"] is None else row["name"]
            owner = f"  {owners[row['process']]}" if len(owners) > 1 else ""
            text.append(f"  {name}").append(owner + ("" if row["tid"] is None else f"  {row['tid']}"), "dim")
            yield text
        if len(frame) > MAX_THREADS:
            yield Text(f"{'':>8}and {len(frame) - MAX_THREADS} more (--json has them all)", "dim")
        yield Text()


def _python() -> Syntax:
    """Colours for Python; what makes them is not loaded for a report without colours."""
    from rich.syntax import Syntax

    return Syntax("", "python", theme="ansi_dark")
