"""Sums beside CPU time: by named span, by reason of waiting, and in the interpreter's garbage collector.

- Time and memory by the names of spans: in the span itself, and with the spans within it.
- Waiting of lines, functions, files and threads by its reason, and how much of it was idleness.
- Time in the garbage collector, by the lines that set collections off; it is a part of Python's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conclusions.awaits import Awaits
from ..recording.frame import Column, Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.recorded_spans import Spans
from ..recording.span_tracks import Tracks
from ..recording.text import printable
from ..recording.time_window import TimeRanges, Window
from ..samples.attribution import STATES
from ..samples.counter_classes import FrameClass, stripped
from ..samples.reduction import Facts
from ..samples.sites import NodeSums, joined, state_label
from ..samples.stream import CpuBatch, Stream, WaitBatch
from ..samples.summary import Columns, Placement
from ..samples.weights import REASONS
from ..statistics.grouped_sums import summed
from .held_memory import Held

COLUMN = "wait_for"

IDLE = 0.5
"""A thread that waits in one place for more than this part of the time is idle there."""

_NAMES = tuple(f"wait_for_{number}_ns" for number in range(len(REASONS)))


def wait_measure(reason: str) -> str:
    """The name of the measure, in nanoseconds by node, of the waits for a reason."""
    return _NAMES[REASONS.index(reason)]


def reason_sums(waits: Frame, nodes: int) -> NodeSums:
    """Waits (``Facts.waits``) by node or stack state, and by reason; those for a processor left out."""
    waits = waits.take(waits["kind"] != "cpu")
    stack, reason = waits["stack"], waits["reason"]
    by_node, by_state = np.zeros((nodes, len(REASONS))), np.zeros((STATES, len(REASONS)))
    placed, amount = stack >= 0, waits["wait_ns"]
    np.add.at(by_node, (stack[placed], reason[placed]), amount[placed])
    states = waits["stack_state"][~placed]
    np.add.at(by_state, (states, reason[~placed]), amount[~placed])
    labels = [state_label(state) for state in range(STATES)]
    names = list(dict.fromkeys(labels))
    merged = np.zeros((len(names), len(REASONS)))
    np.add.at(merged, [names.index(label) for label in labels], by_state)
    return NodeSums(_NAMES, by_node, names, merged)


@dataclass(frozen=True)
class WaitColumns:
    """Makes the column ``wait_for`` from the measures ``names`` of a summary; None where nothing waited."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """One list of (reason, seconds) per row, the most first."""
        del total
        result: NDArray[Any] = np.full(placement.rows, None, object)
        if _NAMES[0] not in self.names:
            return {COLUMN: result}
        first = self.names.index(_NAMES[0])
        values = own[:, first : first + len(REASONS)]
        for row in np.flatnonzero(values.any(axis=1)).tolist():
            result[row] = ranked(values[row])
        return {COLUMN: result}


def ranked(values: Sequence[float] | _Floats) -> list[tuple[str, float]]:
    """Reasons with their seconds, from nanoseconds by number of reason, the most first."""
    order = np.argsort(-np.asarray(values), kind="stable")
    return [(REASONS[number], float(values[number]) / 1e9) for number in order.tolist() if values[number] > 0]


def idle_seconds(waits: Frame, wall_s: float | None) -> float:
    """The waiting of threads in a place where they wait for most of the time: workers and servers without work."""
    if not wall_s:
        return 0.0
    waits = waits.take(waits["kind"] != "cpu")
    _, place = np.unique(np.stack([waits["thread"], waits["stack"]]), axis=1, return_inverse=True)
    sums = np.bincount(place.reshape(-1), weights=waits["wait_ns"]) / 1e9
    return float(sums[sums > IDLE * wall_s].sum())


NO_SPAN = "<no span>"
"""The row of everything outside of spans."""
COLUMNS = (
    "name",
    "count",
    "duration_s",
    "longest_s",
    "p50_s",
    "p95_s",
    "p99_s",
    "cpu_s",
    "wait_s",
    "await_s",
    "allocated_bytes",
    "live_at_end_bytes",
    "copied_bytes",
    "total_cpu_s",
    "total_wait_s",
    "total_await_s",
    "total_allocated_bytes",
    "total_live_at_end_bytes",
    "total_copied_bytes",
    "each_cpu_s",
    "each_wait_s",
    "each_await_s",
    "each_allocated_bytes",
    "each_live_at_end_bytes",
)
_FACTORS = {"cpu_s": 1e-9, "wait_s": 1e-9, "await_s": 1e-9}
QUANTILES = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
"""Columns with how long so large a part of the spans lasted at most."""

_Floats = NDArray[np.float64]
Sums = tuple[_Floats, _Floats, float]
"""Sums by name, of the span itself and with the spans within it; and of the whole question."""

Ranges = tuple[TimeRanges, TimeRanges]
"""Of spans themselves, and with the spans within them (``recorded_spans.own_and_total``)."""


def sum_spans(
    spans: Spans, window: Window, held: Held, sums: TimeRangeSums | None, awaits: Awaits | None = None
) -> Frame:
    """One row per name, and one for everything outside of spans; the most CPU time, with the spans within, first.

    ``count`` is their number, ``duration_s`` their duration within the window; ``QUANTILES`` are of whole spans. The
    other columns are about what was sampled in the spans: in their context where rows say so, else on their threads
    while they lasted; NaN where not recorded. ``each_`` is ``total_`` by ``count``: of one request, in the mean. Empty
    where there are no spans, which is where ``sums`` is None.
    """
    if sums is None:
        return Frame({name: [] for name in COLUMNS})
    threads, groups, total = held.filter.threads, sums.groups, sums.of_threads()
    length = (total.end_ns - total.start_ns) / 1e9
    mine = spans if threads is None else spans.only(threads[spans.thread])
    ranges = TimeRanges(mine.thread, mine.start_ns, mine.end_ns, mine.name).cut(window.start_ns, window.end_ns)
    open_then = (mine.start_ns < window.end_ns) & (mine.end_ns > window.start_ns)
    if window.spans is not None:
        inside = window.spans.part(ranges.thread, ranges.start_ns, ranges.end_ns) > 0
        ranges = ranges.only(inside)
        open_then &= window.spans.part(mine.thread, mine.start_ns, mine.end_ns) > 0
    longest = np.zeros(groups)
    np.maximum.at(longest, ranges.group, (ranges.end_ns - ranges.start_ns) / 1e9)
    columns: dict[str, Column | list[str]] = {
        "name": [printable(name, 500) for name in spans.names] + [NO_SPAN],
        "count": WholeNumbers.of([*np.bincount(ranges.group, minlength=groups).tolist(), None]),
        "duration_s": np.append(np.bincount(total.group, length, groups), np.nan),
        "longest_s": np.append(longest, np.nan),
        **_quantiles(mine.only(open_then), groups),
    }
    for name, (by_own, by_total, everything) in {**sums.sums(held), "await_s": sums.awaiting(awaits)}.items():
        factor = _FACTORS.get(name, 1.0)
        rest = max(everything - float(np.sum(by_own)), 0.0) if not np.isnan(everything) else np.nan
        columns[name] = np.append(by_own, rest) * factor
        columns[f"total_{name}"] = np.append(by_total, rest) * factor
    frame = Frame(columns)
    count = np.array([np.nan if each is None else each for each in frame["count"].tolist()], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = {name: frame[f"total_{name[5:]}"] / count for name in COLUMNS if name.startswith("each_")}
    frame = frame.with_columns({name: np.where(count > 0, values, np.nan) for name, values in each.items()})
    frame = frame.select(COLUMNS)
    order = frame.largest_first("total_cpu_s", "total_wait_s", "duration_s")
    named = order[(order < groups) & (frame["count"].values[order] > 0)]
    return frame.take(np.append(named, groups))


def _quantiles(spans: Spans, groups: int) -> dict[str, _Floats]:
    """How long spans of each name lasted at most, for parts of them; NaN for what was in no span."""
    length = (spans.end_ns - spans.start_ns) / 1e9
    order = np.lexsort((length, spans.name))
    length, count = length[order], np.bincount(spans.name, minlength=groups)
    first = np.cumsum(count) - count
    columns = {}
    for column, part in QUANTILES.items():
        place = first + part * np.maximum(count - 1, 0)
        low = np.minimum(np.floor(place).astype(np.int64), max(len(length) - 1, 0))
        high = np.minimum(np.ceil(place).astype(np.int64), max(len(length) - 1, 0))
        values = length[low] + (length[high] - length[low]) * (place - low) if len(length) else np.zeros(groups)
        columns[column] = np.append(np.where(count > 0, values, np.nan), np.nan)
    return columns


class TimeRangeSums:
    """The sink that adds up by group of time ranges: of the spans themselves, and with the spans within them."""

    times = True

    def __init__(self, stream: Stream, ranges: Ranges, groups: int, tracks: Tracks | None = None) -> None:
        self.ranges = ranges
        self._tracks = tracks
        self.groups = groups
        self._waits_known = stream.waits_known
        self._cpu, self._wait = np.zeros((2, groups)), np.zeros((2, groups))
        self._everything = {"cpu": 0.0, "wait": 0.0}

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        self._everything["cpu"] += float(batch.weight_ns.sum())
        for row, each in enumerate(self.ranges):
            self._cpu[row] += each.sum_moments(batch.track, batch.time_ns, batch.weight_ns, self.groups)

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits; those for a processor do not count."""
        mine = batch.for_the_world()
        self._everything["wait"] += float(mine.weight_ns.sum())
        for row, each in enumerate(self.ranges):
            self._wait[row] += each.sum_spans(mine.track, mine.start_ns, mine.end_ns, mine.whole_ns, self.groups)

    def sums(self, held: Held) -> dict[str, Sums]:
        """Nanoseconds of CPU time and waiting, and bytes that were ``held``, by group."""
        waits = (self._wait[0], self._wait[1], self._everything["wait"])
        return {
            "cpu_s": (self._cpu[0], self._cpu[1], self._everything["cpu"]),
            "wait_s": waits if self._waits_known else _unknown(self.groups),
            **self._memory(held),
        }

    def of_threads(self) -> TimeRanges:
        """The ranges with the spans within them that are of threads: those in which spans lasted."""
        total = self.ranges[1]
        return total if self._tracks is None else self._tracks.threads_of(total)

    def awaiting(self, awaits: Awaits | None) -> Sums:
        """Nanoseconds that suspended tasks awaited, by group; not known where they do not say their span."""
        if awaits is None or self._tracks is None:
            return _unknown(self.groups)
        return self._moments(self._tracks.of_span[awaits.span], awaits.time_ns, awaits.await_ns)

    def _memory(self, held: Held) -> dict[str, Sums]:
        """Bytes by name: allocated, allocated and still held at the end, copied."""
        columns = {name: _unknown(self.groups) for name in ("allocated_bytes", "live_at_end_bytes", "copied_bytes")}
        heap, copies = held.heap, held.copies
        if heap is not None:
            blocks, mine = heap.blocks, heap.of_threads(held.filter.named) & heap.allocated_in_window()
            alive = mine & heap.alive_at_end()
            for name, mask in (("allocated_bytes", mine), ("live_at_end_bytes", alive)):
                track = self._track(blocks.thread[mask], blocks.span[mask])
                columns[name] = self._moments(track, blocks.birth_ns[mask], blocks.bytes[mask])
        if copies is not None:
            threads = held.filter.threads
            mask = copies.sampled if threads is None else copies.sampled & threads[copies.thread]
            track = self._track(copies.thread[mask], copies.span[mask])
            columns["copied_bytes"] = self._moments(track, copies.time_ns[mask], copies.bytes[mask])
        return columns

    def _track(self, thread: NDArray[np.integer], span: NDArray[np.integer]) -> NDArray[np.integer]:
        return thread if self._tracks is None else self._tracks.of(thread, span)

    def _moments(self, track: NDArray[np.integer], time_ns: NDArray[np.int64], weight: _Floats) -> Sums:
        own, total = (each.sum_moments(track, time_ns, weight, self.groups) for each in self.ranges)
        return own, total, float(weight.sum())


def _unknown(groups: int) -> Sums:
    return np.full(groups, np.nan), np.full(groups, np.nan), np.nan


MEASURE = "collector_ns"
COLLECTOR_COLUMN = "gc_s"


def collector_sums(cpu: Frame, nodes: int) -> NodeSums:
    """Nanoseconds of rows of ``Facts.cpu`` by node or stack state."""
    mine = cpu.take(cpu["frame_class"] == FrameClass.COLLECTOR)
    placed = mine["stack"] >= 0
    inside, outside = mine.take(placed), mine.take(~placed)
    own = summed(inside["stack"], inside["python_ns"], nodes)
    by_state = summed(outside["stack_state"].astype(np.int64), outside["python_ns"], STATES)
    labels = [state_label(number) for number in range(STATES)]
    return joined([NodeSums((MEASURE,), own[:, None], labels, by_state[:, None])])


def collector_nodes(cpu: Frame, nodes: int) -> NDArray[np.bool_]:
    """Mask of the nodes of the call tree that spend most of their CPU time in garbage collections."""
    mine = cpu.take(cpu["stack"] >= 0)
    collecting = np.where(mine["frame_class"] == FrameClass.COLLECTOR, mine["python_ns"], 0.0)
    spent = summed(mine["stack"], mine["cpu_ns"], nodes)
    return (summed(mine["stack"], collecting, nodes) > spent / 2) & (spent > 0)


def collector_known(facts: Facts, recording: Recording) -> bool:
    """True if garbage collections are known: from samples (since version 1.4), or from names of functions."""
    if facts.collections_known:
        return True
    if len(facts.cpu) and not (facts.cpu["frame_class"] != FrameClass.UNKNOWN).any():
        return False
    return not without_names(facts, recording)


def without_names(facts: Facts, recording: Recording) -> bool:
    """True if the collector's time is unknown because the interpreter has no names."""
    tables = (recording.table(name) for name in ("native_frames", "modules"))
    return not facts.collections_known and stripped(*tables)


@dataclass(frozen=True)
class CollectorColumns:
    """Makes the column ``gc_s`` from the measures ``names`` of a summary; NaN unless it was ``measured``."""

    names: tuple[str, ...]
    measured: bool

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """Seconds in collections that were set off there."""
        del placement, total
        seconds = own[:, self.names.index(MEASURE)] / 1e9 if self.measured else np.full(len(own), np.nan)
        return {COLLECTOR_COLUMN: seconds}
