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
from ...report_data.columns import BY_NAME
from ...report_data.headline import charges_pools
from ...report_data.numbers import margin, percent, short_seconds, short_size
from .style import COLOURS, Style

BAR_WIDTH = 10
REASON_WIDTH = 17
"""Characters of what a line waits for."""
CURVE_WIDTH = 8
CURVE = "over time"
BY_SIZE = (
    *("peak_bytes", "average_bytes", "live_at_end_bytes", "allocated_bytes"),
    *("python_fraction", CURVE, "copy_mb_per_s"),
)
"""Columns of memory behind the one that lines are sorted by."""
NARROW = ("peak_bytes", "python_fraction", CURVE)
"""Columns that are shown at any width."""
BESIDE = ("peak_bytes", "live_at_peak_bytes", "copy_mb_per_s", CURVE, "average_bytes", "python_fraction")
"""Columns of memory that are shown beside those of time, by what they are worth."""
BESIDE_ORDER = ("peak_bytes", "average_bytes", "live_at_peak_bytes", "python_fraction", CURVE, "copy_mb_per_s")
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

    def __init__(self, profile: Profile, style: Style, width: int, sort: Sort, *, by_wall: bool = False) -> None:
        self._profile = profile
        self._style = style
        self.longest = 0.0
        """The value of the line with the longest bar."""
        wide = width >= WIDE
        if sort.by_size:
            self.chosen = self._sizes(sort, wide=wide)
        else:
            self.chosen = self._waits(wide=wide) if sort is Sort.WAIT else self._times(wide=wide)
            if by_wall:
                self.chosen = self._wall(wide=wide)
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
        if self._profile.totals.await_s:
            awaited = BY_NAME["await_s"]
            columns.append(
                Column(awaited.head, awaited.width, "dim", lambda values: Text(short_seconds(values["await_s"])))
            )
        if charges_pools(self._profile.totals):
            pool = BY_NAME["pool_cpu_s"]
            columns.append(Column(pool.head, pool.width - (not wide), COLOURS[pool.part], self._pool))
        if self._profile.gpu is not None:
            gpu = BY_NAME["total_gpu_share"]
            columns.append(Column(gpu.head, gpu.width, COLOURS[gpu.part], _gpu))
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

    def _wall(self, *, wide: bool) -> list[Column]:
        """Wall time first, with a bar of its parts; beside it CPU time, waiting and awaiting."""
        times = self._times(wide=False)
        kept = times if wide else [each for each in times if each.head in ("CPU %", "wait", "await")]
        wall = Column("time", 8, "dim", lambda values: Text(short_seconds(_wall_s(values)), "bold"))
        return [Column("", BAR_WIDTH + 1, "dim", self._wall_bar), wall, *kept]

    def _wall_bar(self, values: Row) -> Text:
        amounts = {part: _seconds(values[f"{part}_s"]) for part in ("python", "native", "kernel", "unknown")}
        amounts["wait"] = _seconds(values["wait_s"]) + _seconds(values.get("await_s"))
        bar = self._style.bar(list(amounts.items()), BAR_WIDTH, self.longest)
        bar.pad_right(BAR_WIDTH + 1 - bar.cell_len)
        return bar

    def _wait_bar(self, values: Row) -> Text:
        amount = 0.0 if math.isnan(values["wait_s"]) else float(values["wait_s"])
        bar = self._style.bar([("wait", amount)], BAR_WIDTH, self.longest)
        bar.pad_right(BAR_WIDTH + 1 - bar.cell_len)
        return bar

    def _sizes(self, sort: Sort, *, wide: bool) -> list[Column]:
        first = "live_at_resident_peak_bytes" if sort is Sort.RESIDENT else "live_at_peak_bytes"
        return [
            self._held(first, "bold"),
            *(self._memory(name, self._python) for name in BY_SIZE if wide or name in NARROW),
        ]

    def _beside(self, room: int) -> list[Column]:
        """As many columns of memory as there is room for beside those of time."""
        if self._profile.memory is None and self._profile.totals.copied_bytes is None:
            return []
        shown: dict[str, Column] = {}
        for name in BESIDE:
            column = self._memory(name, self._python_of_held)
            if column.width > room:
                break
            room -= column.width
            shown[name] = column
        return [shown[name] for name in BESIDE_ORDER if name in shown]

    def _memory(self, name: str, python: Callable[[Row], Text]) -> Column:
        """A column of memory; ``python`` makes the cells of Python's part."""
        if name == CURVE:
            return Column(CURVE, CURVE_WIDTH + 3, "dim", self._curve)
        measure = BY_NAME[name]
        if name == "python_fraction":
            return Column(measure.head, measure.width, COLOURS["python"], python)
        if name == "copy_mb_per_s":
            return Column(measure.head, measure.width, "dim", _copies)
        if name == "allocated_bytes":
            return Column(measure.head, measure.width, "dim", _allocated)
        if measure.unit != "bytes":
            show = percent if measure.unit == "share" else short_seconds
            return Column(measure.head, measure.width, "dim", lambda row: Text(_known(row[name], show)))
        return self._held(name)

    def _held(self, name: str, style: str = "") -> Column:
        """Bytes that were held; nothing for less than a thousandth of the program's peak, which samples cannot tell."""
        memory = self._profile.memory
        least = (memory.peak_bytes or 0.0) / 1000 if memory is not None else 0.0

        def cell(values: Row) -> Text:
            held = values[name]
            return Text("" if held < least else short_size(held, unknown=""), style)

        return Column(BY_NAME[name].head, BY_NAME[name].width, "dim", cell)

    def _percent(self, seconds: float) -> str:
        cpu = self._profile.totals.cpu_s
        return percent(seconds / cpu if cpu > 0 else 0.0)

    def _pool(self, values: Row) -> Text:
        """CPU time of native threads for the line, beside its own time."""
        charged = 0.0 if values["file_id"] < 0 else values["pool_cpu_s"]
        return Text(self._percent(charged), COLOURS["native"])

    def _bar(self, values: Row) -> Text:
        parts = [(part, float(values[f"{part}_s"] or 0)) for part in ("python", "native", "kernel", "unknown")]
        drawn = [(part, 0.0 if math.isnan(amount) else amount) for part, amount in parts]
        bar = self._style.bar(drawn, BAR_WIDTH, self.longest)
        bar.pad_right(BAR_WIDTH + 1 - bar.cell_len)
        return bar

    def _python(self, values: Row) -> Text:
        """Python's part of what was allocated; empty if that is hardly anything."""
        if not short_size(values["allocated_bytes"]) or math.isnan(values["python_fraction"]):
            return Text()
        return Text(f"{values['python_fraction'] * 100:.0f}", COLOURS["python"])

    def _python_of_held(self, values: Row) -> Text:
        """Python's part of what was allocated, for lines that hold something; else empty."""
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
    """The main reason of a line's waiting, with its share if it is not all: ``lock or GIL 70 %``."""
    if not reasons:
        return ""
    first, amount = reasons[0]
    share = amount / sum(seconds for _, seconds in reasons)
    return first if share >= 0.95 else f"{first} {share * 100:.0f}%"


def _seconds(value: float | None) -> float:
    return 0.0 if value is None or math.isnan(value) else float(value)


def _wall_s(values: Row) -> float:
    """Seconds that a line ran, waited and awaited."""
    return sum(_seconds(values.get(name)) for name in ("cpu_s", "wait_s", "await_s"))


def _known(value: float, show: Callable[[float], str]) -> str:
    return "" if math.isnan(value) else show(value)


def _share(values: Row) -> Text:
    return Text(percent(values["cpu_share"]), "bold" if values["cpu_share"] >= 0.1 else "")


def _gpu(values: Row) -> Text:
    """The busy share of the GPU while the line was on the stack; empty where it is unknown."""
    share = values["total_gpu_share"]
    return Text("" if math.isnan(share) else percent(share) or "0", COLOURS["gpu"])


def _allocated(values: Row) -> Text:
    return Text(short_size(values["allocated_bytes"], unknown=""))


def _copies(values: Row) -> Text:
    rate = values["copy_mb_per_s"]
    return Text("" if math.isnan(rate) else short_size(rate * 1e6))
