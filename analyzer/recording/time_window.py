"""The time window of a question (``--from``, ``--to``), and time ranges of single threads.

``TimeRanges`` weighs measurements by the part of them that lies in the ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

if TYPE_CHECKING:
    from .span_tracks import Tracks

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]

OPEN_START = -(1 << 62)
OPEN_END = 1 << 62


@dataclass(frozen=True, eq=False)
class TimeRanges:
    """Time ranges ``start_ns <= time < end_ns`` of threads, sorted by thread and then by start.

    ``group`` says what each belongs to; ranges of one thread and group do not overlap.
    """

    thread: _Ids
    start_ns: _Ids
    end_ns: _Ids
    group: _Ids

    @classmethod
    def of(cls, rows: list[tuple[int, int, int, int]]) -> TimeRanges:
        """Time ranges from (thread, start, end, group) in any order."""
        table = np.array(sorted(rows), np.int64).reshape(-1, 4)
        return cls(*(table[:, column].copy() for column in range(4)))

    def __len__(self) -> int:
        return len(self.thread)

    def cut(self, start_ns: int, end_ns: int) -> TimeRanges:
        """The parts of the ranges between two times."""
        start, end = np.maximum(self.start_ns, start_ns), np.minimum(self.end_ns, end_ns)
        left = start < end
        return TimeRanges(self.thread[left], start[left], end[left], self.group[left])

    def divided(self, bounds_ns: _Ids) -> TimeRanges:
        """Pieces that lie between one of ``bounds_ns`` and the next each; groups become group * intervals + interval.

        Everything lies between the first bound and the last.
        """
        intervals = len(bounds_ns) - 1
        first = np.searchsorted(bounds_ns, self.start_ns, "right") - 1
        last = np.searchsorted(bounds_ns, self.end_ns, "left") - 1
        count = np.maximum(last - first + 1, 0)
        own = np.repeat(np.arange(len(self)), count)
        interval = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
        start = np.maximum(self.start_ns[own], bounds_ns[interval])
        end = np.minimum(self.end_ns[own], bounds_ns[interval + 1])
        order = np.lexsort((start, self.thread[own]))
        group = self.group[own] * intervals + interval
        return TimeRanges(self.thread[own][order], start[order], end[order], group[order])

    def followed_by(self, others: TimeRanges) -> TimeRanges:
        """These and behind them ``others``, which are of threads with larger numbers."""
        pairs = zip(self._columns, others._columns, strict=True)
        return TimeRanges(*(np.concatenate(pair) for pair in pairs))

    @property
    def _columns(self) -> tuple[_Ids, _Ids, _Ids, _Ids]:
        return self.thread, self.start_ns, self.end_ns, self.group

    def only(self, mask: NDArray[np.bool_]) -> TimeRanges:
        """Some of them."""
        return TimeRanges(self.thread[mask], self.start_ns[mask], self.end_ns[mask], self.group[mask])

    def within(self, others: TimeRanges) -> TimeRanges:
        """The parts of the ranges that lie in ranges of ``others``, which are of one group."""
        parts = []
        for thread, mine in self._by_thread():
            theirs = slice(*np.searchsorted(others.thread, [thread, thread + 1]).tolist())
            start, end = others.start_ns[theirs], others.end_ns[theirs]
            first = np.searchsorted(end, self.start_ns[mine], "right")
            last = np.searchsorted(start, self.end_ns[mine], "left")
            count = np.maximum(last - first, 0)
            own = np.repeat(np.arange(mine.start, mine.stop), count)
            other = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
            parts.append(
                (
                    np.full(len(own), thread),
                    np.maximum(self.start_ns[own], start[other]),
                    np.minimum(self.end_ns[own], end[other]),
                    self.group[own],
                )
            )
        if not parts:
            return TimeRanges.of([])
        return TimeRanges(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def contains(self, thread: NDArray[np.integer], time_ns: _Ids) -> NDArray[np.bool_]:
        """True for moments of threads that lie in a range, where all are of one group."""
        inside = np.zeros(len(time_ns), np.bool_)
        for rows, mine in self._rows_of(thread):
            place = np.searchsorted(self.start_ns[mine], time_ns[rows], "right") - 1
            inside[rows] = (place >= 0) & (time_ns[rows] < self.end_ns[mine][np.maximum(place, 0)])
        return inside

    def group_at(self, thread: NDArray[np.integer], time_ns: _Ids) -> _Ids:
        """The group of the range that each moment of a thread lies in, -1 where there is none; no ranges overlap."""
        group = np.full(len(time_ns), -1, np.int64)
        for rows, mine in self._rows_of(thread):
            place = np.searchsorted(self.start_ns[mine], time_ns[rows], "right") - 1
            last = np.maximum(place, 0)
            inside = (place >= 0) & (time_ns[rows] < self.end_ns[mine][last])
            group[rows[inside]] = self.group[mine][last[inside]]
        return group

    def overlaps(self, thread: NDArray[np.integer], start_ns: _Ids, end_ns: _Ids) -> tuple[_Ids, _Ids, _Floats]:
        """Of spans of time of threads what lies in each range: their rows, the ranges' groups, and parts (0..1)."""
        overlaps = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for rows, mine in self._rows_of(thread):
            begin, end = self.start_ns[mine], self.end_ns[mine]
            first = np.searchsorted(end, start_ns[rows], "right")
            count = np.maximum(np.searchsorted(begin, end_ns[rows], "left") - first, 0)
            row = np.repeat(rows, count)
            other = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
            length = np.minimum(end_ns[row], end[other]) - np.maximum(start_ns[row], begin[other])
            overlaps.append((row, self.group[mine][other], length / np.maximum(end_ns[row] - start_ns[row], 1)))
        row, group, part = (np.concatenate(column) for column in zip(*overlaps, strict=True))
        return row, group, part

    def part(self, thread: NDArray[np.integer], start_ns: _Ids, end_ns: _Ids) -> _Floats:
        """The part (0..1) of each span of time of a thread that lies in ranges, where all are of one group."""
        part = np.zeros(len(start_ns))
        for rows, mine in self._rows_of(thread):
            covered = self._covered(mine, end_ns[rows]) - self._covered(mine, start_ns[rows])
            part[rows] = covered / np.maximum(end_ns[rows] - start_ns[rows], 1)
        return np.where(end_ns > start_ns, np.clip(part, 0.0, 1.0), self.contains(thread, start_ns))

    def wall_ns(self) -> int:
        """The time in which at least one of them lasted."""
        return united_ns(self.start_ns, self.end_ns)

    def _covered(self, mine: slice, time_ns: _Ids) -> _Ids:
        """Nanoseconds of a thread's ranges that lie before each time."""
        start, end = self.start_ns[mine], self.end_ns[mine]
        before = np.concatenate(([0], np.cumsum(end - start)))
        place = np.searchsorted(start, time_ns, "right")
        last = np.maximum(place - 1, 0)
        inside = np.clip(time_ns - start[last], 0, end[last] - start[last])
        return np.asarray(np.where(place > 0, before[last] + inside, 0), np.int64)

    def sum_moments(self, thread: NDArray[np.integer], time_ns: _Ids, weight: _Floats, groups: int) -> _Floats:
        """Weight of the moments that lie in the ranges of each group."""
        sums = np.zeros(groups)
        for found, mine in self._rows_of(thread):
            rows = found
            times = time_ns[rows]
            if len(times) and (np.diff(times) < 0).any():
                order = np.argsort(times, kind="stable")
                rows, times = rows[order], times[order]
            before = np.concatenate(([0.0], np.cumsum(weight[rows])))
            inside = (
                before[np.searchsorted(times, self.end_ns[mine])] - before[np.searchsorted(times, self.start_ns[mine])]
            )
            sums += np.bincount(self.group[mine], inside, groups)
        return sums

    def sum_spans(
        self, thread: NDArray[np.integer], start_ns: _Ids, end_ns: _Ids, weight: _Floats, groups: int
    ) -> _Floats:
        """Weight of intervals as far as they lie in the ranges of each group."""
        sums = np.zeros(groups)
        for found, mine in self._rows_of(thread):
            rows = found[end_ns[found] > start_ns[found]]
            if not len(rows):
                continue
            rows = rows[np.argsort(start_ns[rows], kind="stable")]
            if (start_ns[rows][1:] < end_ns[rows][:-1]).any():
                edges = _amounts(start_ns[rows], end_ns[rows], weight[rows], self.start_ns[mine], self.end_ns[mine])
                sums += np.bincount(self.group[mine], edges, groups)
                continue
            time = np.maximum.accumulate(np.column_stack([start_ns[rows], end_ns[rows]]).ravel())
            total = np.cumsum(weight[rows])
            amount = np.column_stack([total - weight[rows], total]).ravel()
            zero = time[0]  # floating point has no room for a monotonic clock in nanoseconds
            inside = np.interp(self.end_ns[mine] - zero, time - zero, amount, 0.0) - np.interp(
                self.start_ns[mine] - zero, time - zero, amount, 0.0
            )
            sums += np.bincount(self.group[mine], inside, groups)
        return sums

    def _by_thread(self) -> Iterator[tuple[int, slice]]:
        """Each thread and where its ranges are."""
        first = np.flatnonzero(np.diff(self.thread, prepend=-1))
        after = np.append(first, len(self))[1:]
        for start, stop in zip(first.tolist(), after.tolist(), strict=True):
            yield int(self.thread[start]), slice(start, stop)

    def _rows_of(self, thread: NDArray[np.integer]) -> Iterator[tuple[_Ids, slice]]:
        """The rows of each thread that has ranges, in their order, and where its ranges are."""
        order = np.argsort(thread, kind="stable")
        ordered = thread[order]
        for each, mine in self._by_thread():
            first, last = np.searchsorted(ordered, [each, each + 1]).tolist()
            if first < last:
                yield order[first:last], mine


def _amounts(start_ns: _Ids, end_ns: _Ids, weight: _Floats, from_ns: _Ids, to_ns: _Ids) -> _Floats:
    """Weight of intervals, which may overlap, as far as they lie between each two times."""
    zero = start_ns.min()  # floating point has no room for a monotonic clock in nanoseconds
    time = (np.concatenate([start_ns, end_ns]) - zero).astype(np.float64)
    rate = weight / (end_ns - start_ns)
    order = np.argsort(time, kind="stable")
    time, slope = time[order], np.cumsum(np.concatenate([rate, -rate])[order])
    amount = np.concatenate(([0.0], np.cumsum(slope[:-1] * np.diff(time))))
    ends, begins = (np.interp(edge - zero, time, amount) for edge in (to_ns, from_ns))
    return np.asarray(ends - begins, np.float64)


def united_ns(start_ns: _Ids, end_ns: _Ids) -> int:
    """The time in which at least one of some ranges lasted."""
    order = np.argsort(start_ns, kind="stable")
    start, end = start_ns[order], np.maximum.accumulate(end_ns[order])
    before = np.concatenate((start[:1], end[:-1]))
    return int(np.maximum(end - np.maximum(start, before), 0).sum())


@dataclass(frozen=True, slots=True)
class Window:
    """Monotonic times, ``start_ns <= time < end_ns``, and perhaps only ranges of threads within them (``spans``).

    ``tracks`` are what rows that say in which span they were have in place of threads, and ``spans_ns`` is the time in
    which at least one of the spans lasted.
    """

    start_ns: int = OPEN_START
    end_ns: int = OPEN_END
    spans: TimeRanges | None = None
    tracks: Tracks | None = None
    spans_ns: int = 0

    @property
    def whole(self) -> bool:
        """True if the window leaves nothing out."""
        return self == Window()

    def contains(self, time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for moments that lie in the window."""
        return (time_ns >= self.start_ns) & (time_ns < self.end_ns)

    def selects(self, thread: NDArray[np.integer], time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for moments of threads that lie in the window, and in its spans."""
        inside = self.contains(time_ns)
        return inside if self.spans is None else inside & self.spans.contains(thread, time_ns)

    def part(
        self, thread: NDArray[np.integer], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The part (0..1) of each span of time of a thread that lies in the window, and in its spans."""
        if self.spans is None:
            return self.fraction(start_ns, end_ns)
        return self.spans.part(thread, start_ns, end_ns)

    def fraction(self, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part (0..1) of each span that lies in the window; a span without length counts whole or not at all."""
        inside = np.minimum(end_ns, self.end_ns) - np.maximum(start_ns, self.start_ns)
        length = end_ns - start_ns
        part = np.clip(inside / np.maximum(length, 1), 0.0, 1.0)
        return np.where(length > 0, part, self.contains(start_ns).astype(np.float64))


def make_window(start_s: float | None, end_s: float | None, recording_start: int, recording_end: int | None) -> Window:
    """A window from seconds since the start of the recording; negative ones count from its end.

    Errors:
        FormatError: it is empty, or counts from an end that is not known.
    """

    def moment(seconds: float | None, otherwise: int) -> int:
        if seconds is None:
            return otherwise
        base = recording_start
        if seconds < 0:
            if recording_end is None:
                raise FormatError("the recording does not tell when it ended: give --from and --to from its start")
            base = recording_end
        return max(OPEN_START, min(OPEN_END, base + round(seconds * 1e9)))

    window = Window(moment(start_s, OPEN_START), moment(end_s, OPEN_END))
    if window.start_ns >= window.end_ns:
        raise FormatError("--from is not before --to: the window is empty")
    if recording_end is not None and (window.start_ns > recording_end or window.end_ns <= recording_start):
        length = (recording_end - recording_start) / 1e9
        raise FormatError(f"the window lies outside of the recording, which is {length:.3f} s long")
    return window
