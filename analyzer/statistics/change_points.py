"""Change points of a series: where its distribution changed, how many times, and how sure that is.

E-divisive: Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA
109 (2014), sections 2.2 to 3.1, with the last observation of a segment as the end of its right part. The series is cut
where the energy distance of both parts is largest, each part is cut again, and a permutation test ends it. Nothing is
assumed of how observations are distributed, and single outliers move it little. Daly et al., "The Use of Change Point
Detection to Identify Software Performance Regressions in a Continuous Integration System" (2020), report on its use for
the same purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .distributions import WRONG

SHUFFLES = 199
"""Permutations of a test: one more is the number of the smallest probability, which is below ``WRONG``."""

LEAST = 2
"""Fewest observations of a part: the energy distance needs a distance within each."""

_SEED = 20_261_127
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChangePoint:
    """``at`` is the number of the first observation after it; ``p`` is that of its permutation test."""

    at: int
    p: float


def change_points(values: _Array, allowed: NDArray[np.bool_] | None = None) -> list[ChangePoint]:
    """The change points of ``values`` (observations in their order), in that order.

    ``allowed`` says before which observations there may be one (observations that came together are not divided); None:
    before all. O(n^2) in time and memory.
    """
    count = len(values)
    may = np.ones(count, np.bool_) if allowed is None else np.asarray(allowed, np.bool_)
    distances = np.abs(values[:, None] - values[None, :])
    chance = np.random.default_rng(_SEED)
    points: list[ChangePoint] = []
    waiting = [(0, count)]
    while waiting:
        begin, end = waiting.pop()
        possible = np.flatnonzero(may[begin:end])
        possible = possible[(possible >= LEAST) & (end - begin - possible >= LEAST)]
        if not len(possible):
            continue
        inside = distances[begin:end, begin:end]
        own = _divergence(inside, possible)
        best = int(own.argmax())
        as_far = 0
        for _ in range(SHUFFLES):
            order = chance.permutation(end - begin)
            as_far += bool(_divergence(inside[np.ix_(order, order)], possible).max() >= own[best] * (1 - 1e-9))
            if 1 + as_far > WRONG * (SHUFFLES + 1):
                break
        p = (1 + as_far) / (SHUFFLES + 1)
        if p <= WRONG:
            at = begin + int(possible[best])
            points.append(ChangePoint(at, p))
            waiting += [(begin, at), (at, end)]
    return sorted(points, key=lambda each: each.at)


def _divergence(distances: _Array, cuts: NDArray[np.int64]) -> _Array:
    """The scaled energy distance of both parts for each cut (the number of observations before it): equation 5."""
    count = len(distances)
    corner = distances.cumsum(axis=0).cumsum(axis=1)
    left, right = cuts.astype(np.float64), (count - cuts).astype(np.float64)
    within_left = corner[cuts - 1, cuts - 1]
    across = corner[cuts - 1, count - 1] - within_left
    within_right = corner[-1, -1] - within_left - 2 * across
    # Both orders of each pair are in the sums, as they are in the numbers of pairs.
    energy = 2 * across / (left * right) - within_left / (left * (left - 1)) - within_right / (right * (right - 1))
    return np.asarray(left * right / count * energy, np.float64)
