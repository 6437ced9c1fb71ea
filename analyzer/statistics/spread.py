"""Variance between runs, row by row, when there are only a few runs.

The variance of three runs is a poor estimate. But there are many rows, and their variances have much in common: what
sampling explains (known), and a part that grows with the amount (the same relative spread for all rows, fitted). Each
row's own variance is drawn towards that, as far as the rows agree with one another: the moderated variance of Smyth
(2004, "Linear models and empirical Bayes methods", section 3 and 6.2), which is usual where few replicates of many
quantities are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .distributions import digamma, inverse_trigamma, trigamma

_Array = NDArray[np.float64]

MIN_ROWS = 6
"""With fewer rows (of both sides together) there is nothing to learn from the others."""

MIN_COUNT = 3.0
"""Rows with fewer observations a run are too discrete to tell what is usual."""

MAX_PRIOR = 4.0
"""What the rows have in common counts at most so many times as much as a row's own runs: rows are not all alike, and a
few that are much less steady than the others must not be taken for certain."""

_HALVINGS = 60


@dataclass(frozen=True)
class Spread:
    """Variance of one run for each row, and how many degrees of freedom the estimate has."""

    variance: _Array
    freedom: _Array


@dataclass(frozen=True)
class Replicates:
    """Variance and mean of the runs of a side, by row.

    The variance ``own`` among them has ``freedom`` degrees of freedom; ``sampling`` is the variance of one run that
    sampling alone explains.
    """

    own: _Array
    mean: _Array
    sampling: _Array
    freedom: float

    @property
    def usable(self) -> NDArray[np.bool_]:
        """True for rows that tell what is usual."""
        enough = np.square(self.mean) >= MIN_COUNT * self.sampling
        return enough & (self.sampling > 0) & (self.own > 0)


@dataclass(frozen=True)
class Usual:
    """Variance that the rows have in common; ``freedom`` 0: nothing."""

    relative: float = 0.0
    level: float = 1.0
    freedom: float = 0.0

    def draw(self, observed: Replicates) -> Spread:
        """The variances of a side, drawn towards what is usual."""
        freedom = min(self.freedom, MAX_PRIOR * observed.freedom)
        common = self.level * (observed.sampling + self.relative * np.square(observed.mean))
        drawn = (freedom * common + observed.freedom * observed.own) / (freedom + observed.freedom)
        fitted = common > 0
        return Spread(
            np.where(fitted, drawn, observed.own), np.where(fitted, freedom + observed.freedom, observed.freedom)
        )


def usual(sides: Sequence[Replicates]) -> Usual:
    """Fit the usual variance to all rows of all sides."""
    chosen = [side.usable for side in sides]
    rows = int(sum(each.sum() for each in chosen))
    if rows < MIN_ROWS:
        return Usual()
    own, mean, sampling = (
        np.concatenate([getattr(side, name)[each] for side, each in zip(sides, chosen, strict=True)])
        for name in ("own", "mean", "sampling")
    )
    freedom = np.concatenate([np.full(each.sum(), side.freedom) for side, each in zip(sides, chosen, strict=True)])
    relative = _relative_variance(own, mean, sampling)
    level, prior = _prior(own / (sampling + relative * np.square(mean)), freedom)
    # The degrees of freedom are limited by the number of rows.
    return Usual(relative, level, min(prior, rows / 2))


def _relative_variance(own: _Array, mean: _Array, sampling: _Array) -> float:
    """The relative variance, common to all rows, with which the rows' own variances are explained on average."""
    squares = np.square(mean)

    def excess(relative: float) -> float:
        return float(np.mean(own / (sampling + relative * squares)) - 1)

    low, high = 0.0, 1.0
    if excess(low) <= 0:
        return 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _prior(ratios: _Array, freedom: _Array) -> tuple[float, float]:
    """The usual ratio of variances, and its degrees of freedom: how much the rows agree (by moments of logarithms)."""
    expected, scatter = np.zeros(len(freedom)), np.zeros(len(freedom))
    for each in np.unique(freedom).tolist():
        expected[freedom == each] = digamma(each / 2) - math.log(each / 2)
        scatter[freedom == each] = trigamma(each / 2)
    logs = np.log(ratios) - expected
    centre, excess = float(logs.mean()), float(logs.var(ddof=1)) - float(scatter.mean())
    if excess <= 0:
        return math.exp(centre), math.inf
    prior = 2 * inverse_trigamma(excess)
    return math.exp(centre + digamma(prior / 2) - math.log(prior / 2)), prior
