"""The columns of the terminal report's table of lines: of time, of memory, or of both, as the width allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from ...profile.profile import Profile
from ...profile.span_sums import COLUMN as WAIT_FOR
from ...recording.frame import Row
from ...recording.question_options import Sort
from ...report_data.headline import charges_pools
from ...report_data.numbers import margin, percent, short_seconds, short_size
from .style import COLOURS, Style

BAR_WIDTH = 10
REASON_WIDTH = 17
"""Characters of what a line waits for."""
CURVE_WIDTH = 8
WIDE = 100
"""From this width on lines have a bar."""

SOURCE_WIDTH = 38
"""Characters that are left to the source before columns of memory are shown beside those of time."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, its width, the colour of both, and what it shows of a line."""

    head: str
    width: int
    colour: str
    cell: Callable[[Row], Text]


class Columns:
    """The columns of one report."""

    def __init__(self, profile: Profile, style: Style, width: int, sort: Sort) -> None:
        self._profile = profile
        self._style = style
        self.longest = 0.0
        """What the line with the longest bar has."""
        wide = width >= WIDE
        if sort.by_size:
            self.chosen = self._sizes(sort, wide=wide)
        else:
            self.chosen = self._waits(wide=wide) if sort is Sort.WAIT else self._times(wide=wide)
            room = width - 9 - sum(column.width for column in self.chosen) - SOURCE_WIDTH
            self.chosen += self._beside(room)
        heads = {column.head for column in self.chosen}
        self.beside = {name for head, name in (("peak", "peak_bytes"), ("copy/s", "copied_bytes")) if head in heads}
        """The measures of memory that are shown."""

    @property
    def width(self) -> int:
        """Their width together."""
        return sum(column.width for column in self.chosen)

    def heads(self) -> Text:
        """The line of heads."""
        text = Text()
        for column in self.chosen:
            text.append(f"{column.head:>{column.width}}", column.colour)
        return text

    def cells(self, values: Row | None, *, dim: bool) -> Text:
        """The cells of a line, blank for a line of which nothing was measured."""
        text = Text()
        for column in self.chosen:
            cell = Text() if values is None else column.cell(values)
            cell.truncate(column.width)
            cell.align("right", column.width)
            if dim and column.colour == "dim":
                cell.stylize("dim")
            text.append_text(cell)
        return text

    def margin(self, row: Row, prefix: str = "") -> str:
        """Half the width of the interval of a share."""
        return self._style.plain(margin(row[f"{prefix}cpu_share_low"], row[f"{prefix}cpu_share_high"]))

    def _times(self, *, wide: bool) -> list[Column]:
        def share(part: str, head: str, width: int) -> Column:
            return Column(
                head, width, COLOURS[part], lambda values: Text(self._percent(values[f"{part}_s"]), COLOURS[part])
            )

        columns = [
            Column("CPU %", 7 if wide else 6, "dim", _share),
            Column(
                "", 6, "dim", lambda values: Text(self.margin(values) if percent(values["cpu_share"]) else "", "dim")
            ),
            share("python", "Python" if wide else "Py", 8 if wide else 6),
            share("native", "native" if wide else "nat.", 8 if wide else 6),
            share("kernel", "kernel" if wide else "kern", 8 if wide else 6),
            Column("wait", 8 if wide else 7, "dim", lambda values: Text(short_seconds(values["wait_s"]))),
        ]
        if charges_pools(self._profile.totals):
            columns.append(Column("pool %", 8 if wide else 7, COLOURS["native"], self._pool))
        if self._profile.gpu is not None:
            columns.append(Column("GPU %", 7, COLOURS["gpu"], _gpu))
        return [Column("", BAR_WIDTH + 1, "dim", self._bar), *columns] if wide else columns

    def _waits(self, *, wide: bool) -> list[Column]:
        """Waiting first, with what it is for; the bar is of it."""
        times = self._times(wide=False)
        columns = [
            Column("wait", 8, COLOURS["wait"], lambda values: Text(short_seconds(values["wait_s"]), "bold")),
            Column("for", 1 + REASON_WIDTH, "dim", lambda values: Text(wait_text(values[WAIT_FOR]))),
            *(column for column in times if column.head not in ("wait", "")),
        ]
        return [Column("", BAR_WIDTH + 1, "dim", self._wait_bar), *columns] if wide else columns[:3]

    def _wait_bar(self, values: Row) -> Text:
        amount = 0.0 if math.isnan(values["wait_s"]) else float(values["wait_s"])
        bar = self._style.bar([("wait", amount)], BAR_WIDTH, self.longest)
        bar.pad_right(BAR_WIDTH + 1 - bar.cell_len)
        return bar

    def _sizes(self, sort: Sort, *, wide: bool) -> list[Column]:
        resident = sort is Sort.RESIDENT
        columns = [
            self._held("resident", "live_at_resident_peak_bytes", 10, "bold")
            if resident
            else self._held("at peak", "live_at_peak_bytes", 9, "bold"),
            self._held("peak", "peak_bytes", 8),
            self._held("average", "average_bytes", 9),
            self._held("at end", "live_at_end_bytes", 8),
            _size("alloc.", "allocated_bytes", 8),
            Column("Py %", 6, COLOURS["python"], self._python),
            Column("over time", CURVE_WIDTH + 3, "dim", self._curve),
            Column("copy/s", 8, "dim", _copies),
        ]
        if wide:
            return columns
        return [column for column in columns if column.head in ("resident", "at peak", "peak", "Py %", "over time")]

    def _beside(self, room: int) -> list[Column]:
        """As many columns of memory as there is room for beside those of time."""
        if self._profile.memory is None and self._profile.totals.copied_bytes is None:
            return []
        columns = [
            self._held("peak", "peak_bytes", 8),
            self._held("at peak", "live_at_peak_bytes", 9),
            Column("copy/s", 8, "dim", _copies),
            Column("over time", CURVE_WIDTH + 3, "dim", self._curve),
            self._held("average", "average_bytes", 9),
            Column("Py %", 6, COLOURS["python"], self._python_of_held),
        ]
        shown: list[Column] = []
        for column in columns:
            if column.width > room:
                break
            room -= column.width
            shown.append(column)
        order = ("peak", "average", "at peak", "Py %", "over time", "copy/s")
        return sorted(shown, key=lambda column: order.index(column.head))

    def _held(self, head: str, name: str, width: int, style: str = "") -> Column:
        """Bytes that were held; nothing for less than a thousandth of the program's peak, which samples cannot tell."""
        memory = self._profile.memory
        least = (memory.peak_bytes or 0.0) / 1000 if memory is not None else 0.0

        def cell(values: Row) -> Text:
            held = values[name]
            return Text("" if held < least else short_size(held, unknown=""), style)

        return Column(head, width, "dim", cell)

    def _percent(self, seconds: float) -> str:
        cpu = self._profile.totals.cpu_s
        return percent(seconds / cpu if cpu > 0 else 0.0)

    def _pool(self, values: Row) -> Text:
        """What native threads used for the line, beside its own time."""
        charged = 0.0 if values["file_id"] < 0 else values["pool_cpu_s"]
        return Text(self._percent(charged), COLOURS["native"])

    def _bar(self, values: Row) -> Text:
        parts = [(part, float(values[f"{part}_s"] or 0)) for part in ("python", "native", "kernel", "unknown")]
        known = [(part, 0.0 if math.isnan(amount) else amount) for part, amount in parts]
        bar = self._style.bar(known, BAR_WIDTH, self.longest)
        bar.pad_right(BAR_WIDTH + 1 - bar.cell_len)
        return bar

    def _python(self, values: Row) -> Text:
        """Python's part of what was allocated; empty if that is hardly anything."""
        if not short_size(values["allocated_bytes"]) or math.isnan(values["python_fraction"]):
            return Text()
        return Text(f"{values['python_fraction'] * 100:.0f}", COLOURS["python"])

    def _python_of_held(self, values: Row) -> Text:
        """The same, for lines that hold something."""
        memory = self._profile.memory
        least = (memory.peak_bytes or 0.0) / 1000 if memory is not None else 0.0
        return self._python(values) if values["peak_bytes"] >= least else Text()

    def _curve(self, values: Row) -> Text:
        memory, totals = self._profile.memory, self._profile.totals
        curve: Sequence[tuple[float, float]] | None = values["timeline"]
        if curve is None or memory is None or not isinstance(curve, list) or not totals.wall_s or len(curve) < 2:
            return Text()
        return Text("  " + self._style.curve(curve, CURVE_WIDTH), COLOURS["memory"])


def wait_text(reasons: list[tuple[str, float]] | None) -> str:
    """What a line waited for most, with its share if it is not all: ``lock or GIL 70 %``."""
    if not reasons:
        return ""
    first, amount = reasons[0]
    share = amount / sum(seconds for _, seconds in reasons)
    return first if share >= 0.95 else f"{first} {share * 100:.0f}%"


def _share(values: Row) -> Text:
    return Text(percent(values["cpu_share"]), "bold" if values["cpu_share"] >= 0.1 else "")


def _gpu(values: Row) -> Text:
    """How busy the GPU was while the line was on the stack; empty where nothing is known of it."""
    share = values["total_gpu_share"]
    return Text("" if math.isnan(share) else percent(share) or "0", COLOURS["gpu"])


def _size(head: str, name: str, width: int, style: str = "") -> Column:
    return Column(head, width, "dim", lambda values: Text(short_size(values[name], unknown=""), style))


def _copies(values: Row) -> Text:
    rate = values["copy_mb_per_s"]
    return Text("" if math.isnan(rate) else short_size(rate * 1e6))
