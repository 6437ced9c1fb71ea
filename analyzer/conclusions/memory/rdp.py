"""Fewer points for a curve: Ramer, Douglas and Peucker's algorithm (Scalene 2023, section 5).

Libraries of it take a distance below which points are left out. A report needs the converse, the best so many points;
so the algorithm is run best first: the segment that is furthest off the curve is split next, until there are enough.
"""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

POINTS = 100
"""Points of a curve that is shown."""

BINNED = 2000
"""Longer curves are first reduced to the extremes of as many spans of time."""


def simplify(x: NDArray[np.float64], y: NDArray[np.float64], points: int = POINTS) -> NDArray[np.int64]:
    """Which points to keep of a curve with ascending ``x``, at most ``points`` (4 or more), in order.

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
    """The lowest and the highest point of each of ``BINNED`` / 2 spans of ``x``, and both ends."""
    bounds = np.linspace(0.0, 1.0, BINNED // 2 + 1)[:-1]
    first = distinct(np.searchsorted(_unit(x), bounds))
    span = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(x))))
    kept = [np.array([0, len(x) - 1])]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(y == extreme.reduceat(y, first)[span])
        kept.append(reached[np.diff(span[reached], prepend=-1) > 0])
    return distinct(np.concatenate(kept))
