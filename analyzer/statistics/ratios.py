"""Statistics whose unit is the recording: how well a share is known, and whether two groups differ.

A fleet's share of a line is the sum of its amounts over the sum of what they are divided by (its CPU time in all
recordings over all CPU time): a ratio of two sums over recordings, which are taken as drawn by chance. Samples within a
recording are not independent of each other, so they are no unit.

Intervals are those of the bootstrap-t (Efron and Tibshirani 1993, chapter 12.5): recordings are drawn with replacement,
and the ratio's error in each draw is divided by the error that this draw itself would state. With few recordings it
holds its confidence better than plain percentiles, but not quite: where few happen to be alike, the ratio is small and
so is the error that they state. So the interval is no shorter than Student's t has it for the ratio's logarithm, which
takes that into account.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from .distributions import t_quantile, t_two_sided
from .intervals import CONFIDENCE, Z95

DRAWS = 999
FEWEST = 5
"""With fewer recordings there is no interval."""

MAX_CELLS = 20_000_000
"""Numbers of a matrix of draws that are held at a time."""

_SEED = 20_261_123
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ratios:
    """Ratios of rows with the ends of their intervals, and their standard errors; NaN is unknown."""

    value: _Array
    low: _Array
    high: _Array
    error: _Array
    units: int


def pooled(amounts: _Array, weights: _Array, units: NDArray[np.int64]) -> tuple[_Array, _Array]:
    """Amounts (rows by recordings) and weights with the recordings of a unit added up."""
    count = int(units.max(initial=-1)) + 1
    if count == len(units):
        return amounts, weights
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(count))
    return np.add.reduceat(amounts[:, order], starts, axis=1), np.add.reduceat(weights[order], starts)


def ratios(amounts: _Array, weights: _Array, draws: int = DRAWS) -> Ratios:
    """The ratio of each row of ``amounts`` (rows by units) to ``weights`` (by unit), with intervals.

    The interval of a part of a whole ends at 0; of few recordings nothing is known but the ratio.
    """
    rows, units = amounts.shape
    whole = float(weights.sum())
    nothing = np.full(rows, np.nan)
    if not units or whole <= 0:
        return Ratios(nothing, nothing, nothing, nothing, units)
    value = amounts.sum(axis=1) / whole
    if units < FEWEST:
        return Ratios(value, nothing, nothing, nothing, units)
    spread = units / (units - 1)
    # The error is the jackknife's: what the ratio is without each of the recordings in turn. It is a little larger than
    # the linear one of the draws, as much as few recordings of very different length need.
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (amounts - np.outer(value, weights)) / np.maximum(whole - weights, 1e-9 * whole)
    error = np.sqrt(np.square(without - without.mean(axis=1, keepdims=True)).sum(axis=1) / spread)
    chance = np.random.default_rng(_SEED)
    low, high = np.empty(rows), np.empty(rows)
    counts = chance.multinomial(units, np.full(units, 1 / units), size=draws).T.astype(np.float64)
    drawn_weights, drawn_squares = weights @ counts, np.square(weights) @ counts
    step = max(1, MAX_CELLS // max(units, draws))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        some = amounts[part]
        drawn = (some @ counts) / drawn_weights
        squares = np.square(some) @ counts - 2 * drawn * ((some * weights) @ counts) + np.square(drawn) * drawn_squares
        drawn_error = np.sqrt(np.maximum(spread * squares, 0.0)) / drawn_weights
        low[part], high[part] = _ends(value[part], error[part], drawn, drawn_error)
    reach = _reach(units)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = np.exp(reach * error / value)
    # Where one recording has nearly all, the error is as large as the ratio: its logarithm tells nothing then.
    bounded = (value > 0) & (error < value / 2)
    low = np.where(bounded, np.minimum(low, value / factor), low)
    high = np.where(bounded, np.maximum(high, value * factor), high)
    return Ratios(value, np.where((amounts >= 0).all(axis=1), np.maximum(low, 0.0), low), high, error, units)


@lru_cache(maxsize=64)  # a page asks for many groups of the same few sizes
def _reach(units: int) -> float:
    """Standard errors to the end of the interval of Student's t."""
    return float(np.ravel(t_quantile(1 - CONFIDENCE, np.array([units - 1.0])))[0])


def _ends(value: _Array, error: _Array, drawn: _Array, drawn_error: _Array) -> tuple[_Array, _Array]:
    tail = (1 - CONFIDENCE) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn - value[:, None]) / drawn_error
    # A draw without any of the few recordings that have the row says nothing of its own error: it counts as far away.
    t = np.where(np.isnan(t), 0.0, t)
    ends = np.quantile(np.clip(t, -1e6, 1e6), [tail, 1 - tail], axis=1)
    simple = np.quantile(drawn, [tail, 1 - tail], axis=1)
    wide = np.abs(ends) > 50
    low = np.where(wide[1], simple[0], value - ends[1] * error)
    high = np.where(wide[0], np.maximum(simple[1], value + Z95 * error), value - ends[0] * error)
    return low, high


@dataclass(frozen=True)
class Difference:
    """Difference of the rows' ratios between two groups: ``new - base``, by Welch's t; NaN is unknown.

    ``error`` is the standard error of each, and ``freedom`` its degrees of freedom.
    """

    value: _Array
    error: _Array
    freedom: _Array

    @cached_property
    def p(self) -> _Array:
        """Probability of a difference at least as large if there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.value == 0, 0.0, np.abs(self.value) / self.error)
        p = t_two_sided(np.nan_to_num(t, posinf=1e150), self.freedom)
        return np.where(np.isnan(self.error), np.nan, p)

    def interval(self, alpha: float) -> tuple[_Array, _Array]:
        """The ends of the interval of confidence 1 - ``alpha``."""
        arm = t_quantile(alpha, self.freedom) * self.error
        return self.value - arm, self.value + arm


def difference(base: Ratios, new: Ratios) -> Difference:
    """The differences of rows of two groups."""
    variance = np.square(base.error) + np.square(new.error)
    below = np.square(np.square(base.error)) / max(1, base.units - 1) + np.square(np.square(new.error)) / max(
        1, new.units - 1
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.square(variance) / below
    freedom = np.where(np.isnan(freedom), 1.0, np.maximum(np.floor(freedom * 10) / 10, 1.0))
    return Difference(new.value - base.value, np.sqrt(variance), freedom)
