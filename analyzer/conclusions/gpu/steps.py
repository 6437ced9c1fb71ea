"""Values over time that hold for a while each: how busy something was, and how much memory was in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Busy:
    """A share (0..1) over time, as running sums: nanoseconds of being busy, and nanoseconds in which that is known."""

    time_ns: Ids
    busy_ns: Floats
    known_ns: Floats

    def between(self, start_ns: Ids, end_ns: Ids) -> tuple[Floats, Floats]:
        """Busy and known nanoseconds of spans of time."""
        if not len(self.time_ns):
            return np.zeros(len(start_ns)), np.zeros(len(start_ns))
        # Floating point has no room for a monotonic clock in nanoseconds.
        zero = self.time_ns[0]
        start, end, time = start_ns - zero, end_ns - zero, self.time_ns - zero
        first, second = (np.interp(end, time, sums) - np.interp(start, time, sums) for sums in self._sums)
        return first, second

    @property
    def _sums(self) -> tuple[Floats, Floats]:
        return self.busy_ns, self.known_ns


def busy_of(start_ns: Ids, end_ns: Ids, share: Floats) -> Busy:
    """``share`` of each span of time; where spans overlap the earlier one counts, and between them nothing is known."""
    order = np.argsort(end_ns, kind="stable")
    start, end, share = start_ns[order], end_ns[order], share[order]
    before = np.concatenate((start[:1], np.maximum.accumulate(end)[:-1]))
    start = np.minimum(np.maximum(start, before), end)
    length = (end - start).astype(np.float64)
    time = _in_turn(start, end)
    known = _in_turn(np.cumsum(length) - length, np.cumsum(length))
    work = share * length
    busy = _in_turn(np.cumsum(work) - work, np.cumsum(work))
    return Busy(time, busy, known)


def _in_turn(first: NDArray[Number], second: NDArray[Number]) -> NDArray[Number]:
    return np.column_stack([first, second]).ravel()


def with_edges(start_ns: Ids, end_ns: Ids, share: Floats) -> tuple[Ids, Ids, Floats]:
    """Spans that follow one another, in order of time, each cut in two where the share changed within it.

    The driver's spans are long (0.2 s on an H200), and a phase that ends within one would have its share smeared over
    what follows. Where a share lies strictly between those of the spans before and after, it is taken for one step
    from the first to the second, at the moment at which the two parts make this share: sums stay as they are, and a
    step between phases of more than two spans is where it was. All other spans are left whole.
    """
    before, after = share[:-2], share[2:]
    here, first, last = share[1:-1], start_ns[1:-1], end_ns[1:-1]
    joined = (first == end_ns[:-2]) & (last == start_ns[2:])
    steps = 1 + np.flatnonzero(joined & (np.minimum(before, after) < here) & (here < np.maximum(before, after)))
    if not len(steps):
        return start_ns, end_ns, share
    until = (share[steps] - share[steps + 1]) / (share[steps - 1] - share[steps + 1])
    # A span that stays whole has nothing behind its middle.
    middle, left, right = end_ns.copy(), share.copy(), share.copy()
    middle[steps] = start_ns[steps] + (until * (end_ns[steps] - start_ns[steps])).astype(np.int64)
    left[steps], right[steps] = share[steps - 1], share[steps + 1]
    return _in_turn(start_ns, middle), _in_turn(middle, end_ns), _in_turn(left, right)


def busy_or_idle(start_ns: Ids, end_ns: Ids, share: Floats, first_ns: int, last_ns: int) -> Busy:
    """As ``busy_of``, with nothing done between the spans, from ``first_ns`` to ``last_ns``."""
    busy = busy_of(start_ns, end_ns, share)
    time = np.concatenate(([first_ns], np.clip(busy.time_ns, first_ns, last_ns), [last_ns]))
    work = np.concatenate(([0.0], busy.busy_ns, busy.busy_ns[-1:] if len(busy.busy_ns) else [0.0]))
    return Busy(time, work, (time - first_ns).astype(np.float64))


def together(parts: Sequence[Busy]) -> Busy:
    """The sums of several: device-nanoseconds."""
    if len(parts) == 1:
        return parts[0]
    time = distinct(np.concatenate([part.time_ns for part in parts])) if parts else np.zeros(0, np.int64)
    start = np.full(len(time), time[0] if len(time) else 0, np.int64)
    busy, known = np.zeros(len(time)), np.zeros(len(time))
    for part in parts:
        more_busy, more_known = part.between(start, time)
        busy += more_busy
        known += more_known
    return Busy(time, busy, known)


@dataclass(frozen=True)
class Held:
    """Bytes that hold from each moment until the next; before the first and after the last nothing is known."""

    time_ns: Ids
    bytes: Floats

    def at(self, time_ns: Ids) -> Floats:
        """What was held at moments, NaN where that is not known."""
        if not len(self.time_ns):
            return np.full(len(time_ns), np.nan)
        place = np.searchsorted(self.time_ns, time_ns, "right") - 1
        known = (place >= 0) & (time_ns <= self.time_ns[-1])
        return np.where(known, self.bytes[np.maximum(place, 0)], np.nan)

    def most(self, start_ns: Ids, end_ns: Ids) -> Floats:
        """The most that was held in spans of time."""
        most = np.fmax(self.at(start_ns), self.at(end_ns))
        low, high = np.searchsorted(self.time_ns, start_ns, "right"), np.searchsorted(self.time_ns, end_ns, "right")
        inside = np.flatnonzero(high > low)
        if len(inside):
            edges = _in_turn(low[inside], high[inside])
            values = np.append(self.bytes, -np.inf)  # an edge may lie behind the last
            most[inside] = np.fmax(most[inside], np.maximum.reduceat(values, edges)[0::2])
        return most
