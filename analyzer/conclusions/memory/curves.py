"""Live bytes of sites over time: their peaks, and curves of few points.

Curves are simplified by Ramer, Douglas and Peucker's algorithm (Scalene 2023, section 5). Libraries of it take a
distance below which points are left out. A report needs the converse, the best so many points; so the algorithm is run
best first: the segment that is furthest off the curve is split next, until there are enough.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

from ...statistics.grouped_sums import summed
from .blocks import Blocks
from .counters import Counters, following

POINTS = 100
"""Points of a curve that is shown."""

BINNED = 2000
"""Longer curves are first reduced to the extremes of as many bins."""


def simplify(x: NDArray[np.float64], y: NDArray[np.float64], points: int = POINTS) -> NDArray[np.int64]:
    """Points to keep of a curve with ascending ``x``, at most ``points`` (4 or more), in order.

    The first and the last, the highest and the lowest are always kept. Distances are measured with both axes scaled
    to the extent of the curve.
    """
    if len(x) <= points or len(x) < 2:
        return np.arange(len(x))
    candidates = _extremes(x, y) if len(x) > BINNED else np.arange(len(x))
    u, v = _unit(x[candidates]), _unit(y[candidates])
    kept = {0, len(u) - 1, int(np.argmax(v)), int(np.argmin(v))}
    heap: list[tuple[float, int, int, int]] = []

    def consider(first: int, last: int) -> None:
        if last - first > 1:
            du, dv = u[last] - u[first], v[last] - v[first]
            inner = slice(first + 1, last)
            distance = np.abs(dv * (u[inner] - u[first]) - du * (v[inner] - v[first]))
            length = float(np.hypot(du, dv))
            if length == 0.0:
                distance, length = np.hypot(u[inner] - u[first], v[inner] - v[first]), 1.0
            furthest = int(np.argmax(distance))
            if distance[furthest] > 0:
                heapq.heappush(heap, (-float(distance[furthest]) / length, first, first + 1 + furthest, last))

    anchors = sorted(kept)
    for first, last in pairwise(anchors):
        consider(first, last)
    while heap and len(kept) < points:
        _, first, middle, last = heapq.heappop(heap)
        kept.add(middle)
        consider(first, middle)
        consider(middle, last)
    return candidates[sorted(kept)]


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def _extremes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """The lowest and the highest point of each of ``BINNED`` / 2 bins of ``x``, and both ends."""
    bounds = np.linspace(0.0, 1.0, BINNED // 2 + 1)[:-1]
    first = distinct(np.searchsorted(_unit(x), bounds))
    span = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(x))))
    kept = [np.array([0, len(x) - 1])]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(y == extreme.reduceat(y, first)[span])
        kept.append(reached[np.diff(span[reached], prepend=-1) > 0])
    return distinct(np.concatenate(kept))


MAX_EVENTS = 2_000_000
"""More births and deaths than this are summed up by site and bin."""

MIN_SPANS, MAX_SPANS = 200, 20_000

Curve = list[tuple[float, float]]
"""Seconds since the start of the recording, and bytes."""

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LiveCurves:
    """Bytes held by each row of a frame after each birth and death of its blocks, row by row, in the order of time.

    The entries of row r are ``first[r]`` up to ``first[r + 1]``.
    """

    first: _Ids
    time_ns: _Ids
    bytes: _Floats
    variance: _Floats

    def below(self, times: _Ids, most: _Floats) -> LiveCurves:
        """The same curves, nowhere higher than ``most`` of the first of ``times`` that is not earlier."""
        place = np.minimum(np.searchsorted(times, self.time_ns), len(times) - 1) if len(times) else None
        return self if place is None else replace(self, bytes=np.minimum(self.bytes, most[place]))

    def peaks(self) -> tuple[_Floats, _Floats]:
        """Highest bytes held by each row, and their variance; 0 for rows without blocks."""
        rows = len(self.first) - 1
        peaks, variances = np.zeros(rows), np.zeros(rows)
        used = np.flatnonzero(np.diff(self.first) > 0)
        if len(used):
            starts = self.first[used]
            peaks[used] = np.maximum.reduceat(self.bytes, starts)
            owner = np.repeat(np.arange(len(used)), np.diff(self.first)[used])
            at_peak = np.flatnonzero(self.bytes >= peaks[used][owner])
            _, earliest = np.unique(owner[at_peak], return_index=True)
            variances[used] = self.variance[at_peak[earliest]]
        return np.maximum(peaks, 0.0), np.maximum(variances, 0.0)

    def curve(self, row: int, start_ns: int, end_ns: int, zero_ns: int) -> Curve:
        """The curve of a row between two times, as a line through few points."""
        points = slice(self.first[row], self.first[row + 1])
        times, held = self.time_ns[points], self.bytes[points]
        return step_curve(times, held, start_ns, end_ns, zero_ns)


def envelope(counters: Counters, start_ns: _Ids, gone_ns: _Ids) -> tuple[_Ids, _Floats]:
    """Times, and the highest possible footprint of all processes since the time before.

    ``start_ns`` and ``gone_ns`` say by process from when to when it held anything.
    """
    rows = np.flatnonzero(~np.isnan(counters.footprint))
    process, time_ns = counters.process[rows], counters.time_ns[rows]
    top = np.fmax(counters.peak[rows], counters.footprint[rows])
    # Clocks of threads are read one after the other: a block may belong to the row after.
    after = following(process)
    most = np.maximum(top, np.where(after >= 0, top[after], top))
    owners = distinct(process)
    if len(owners) == 1:
        return time_ns, most
    # Each process holds nothing before it began, and no more than at its last row until it is gone.
    last = np.flatnonzero(after < 0)
    process = np.concatenate((process, process[last], owners))
    time_ns = np.concatenate((time_ns, gone_ns[process[len(rows) : len(rows) + len(last)]], start_ns[owners]))
    most = np.concatenate((most, most[last], np.zeros(len(owners))))
    order = np.argsort(time_ns, kind="stable")
    process, time_ns, most = process[order], time_ns[order], most[order]
    after = following(process)
    change = most - np.where(after >= 0, most[after], 0.0)
    return time_ns, np.cumsum(change[::-1])[::-1]


def step_curve(times: _Ids, held: _Floats, start_ns: int, end_ns: int, zero_ns: int) -> Curve:
    """A curve that is constant between times, as a line through few points."""
    # A step is two points: the bytes until then, and the bytes from then on.
    x = np.repeat(times, 2).astype(np.float64)
    y = np.stack((np.concatenate(([0.0], held[:-1])), held), axis=1).reshape(-1) if len(held) else np.zeros(0)
    final = held[-1] if len(held) else 0.0
    x, y = np.concatenate(([start_ns], x, [end_ns])), np.concatenate(([0.0], y, [final]))
    return line_curve(x, y, zero_ns)


def line_curve(x: _Floats, y: _Floats, zero_ns: int) -> Curve:
    """A line through points as one through few."""
    kept = simplify(x, y)
    return [
        ((time - zero_ns) / 1e9, max(0.0, value))
        for time, value in zip(x[kept].tolist(), y[kept].tolist(), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Events:
    """Births and deaths of blocks in the order of time: the site, when, and the change of its live bytes."""

    site: _Ids
    time_ns: _Ids
    change: _Floats
    variance: _Floats


def events(blocks: Blocks, chosen: NDArray[np.bool_], sites: int, start_ns: int, end_ns: int) -> Events:
    """The events of the chosen blocks between two times; older blocks are born at the first.

    Of very many only the sums by site and short span of time are kept.
    """
    born = np.flatnonzero(chosen & blocks.followed & (blocks.birth_ns < end_ns) & (blocks.death_ns > start_ns))
    dying = born[blocks.death_ns[born] < end_ns]
    if len(born) + len(dying) > MAX_EVENTS:
        return _summed_events(blocks, born, dying, sites, start_ns, end_ns)
    dying = dying[np.argsort(blocks.death_ns[dying], kind="stable")]
    times = np.concatenate((blocks.death_ns[dying], np.maximum(blocks.birth_ns[born], start_ns)))
    # Deaths come first: a block that grows is released and allocated again at one and the same time.
    order = np.argsort(times, kind="stable")
    block, sign = np.concatenate((dying, born))[order], np.where(order < len(dying), -1.0, 1.0)
    return Events(blocks.site[block], times[order], sign * blocks.bytes[block], sign * blocks.variance[block])


def _summed_events(blocks: Blocks, born: _Ids, dying: _Ids, sites: int, start_ns: int, end_ns: int) -> Events:
    spans = max(MIN_SPANS, min(MAX_SPANS, MAX_EVENTS // max(sites, 1)))
    width = max((end_ns - start_ns) / spans, 1.0)
    sums = np.zeros((2, spans * sites))
    for sign, index, times in ((1.0, born, blocks.birth_ns), (-1.0, dying, blocks.death_ns)):
        span = (np.maximum(times[index] - start_ns, 0) / width).astype(np.int64)
        cell = np.minimum(span, spans - 1) * sites + blocks.site[index]
        for row, values in enumerate((blocks.bytes, blocks.variance)):
            sums[row] += sign * summed(cell, values[index], spans * sites)
    used = np.flatnonzero(sums[0])
    span, site = np.divmod(used, sites)
    times = start_ns + ((span + 1) * width).astype(np.int64) - 1
    return Events(site, np.minimum(times, end_ns - 1), sums[0, used], sums[1, used])


def live_curves(happened: Events, site_row: _Ids, rows: int) -> LiveCurves:
    """The curves of rows, by the row of each site."""
    owner = site_row[happened.site]
    by_row = np.argsort(owner.astype(np.uint16) if rows < 1 << 16 else owner, kind="stable")
    first = np.searchsorted(owner[by_row], np.arange(rows + 1))
    return LiveCurves(
        first,
        happened.time_ns[by_row],
        _running(happened.change[by_row], first),
        _running(happened.variance[by_row], first),
    )


def _running(changes: _Floats, first: _Ids) -> _Floats:
    """Running sums that begin anew at every row."""
    sums = np.concatenate(([0.0], np.cumsum(changes)))
    running: _Floats = sums[1:] - np.repeat(sums[first[:-1]], np.diff(first))
    return running
