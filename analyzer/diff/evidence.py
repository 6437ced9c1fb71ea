"""Intervals, p-values and verdicts for the difference of an amount between two sides, for many rows at once.

Each side is a number of runs. With several, the spread between them counts (Welch's t interval, with variances that are
moderated, see ``spread``). With one run a side the spread is not known: intervals are those of sampling alone (Poisson
counts), and a verdict needs a spread that the user states. See docs/explanation/diff.md.

Many rows are compared at once, so verdicts come from Benjamini and Hochberg's procedure (1995), which keeps the share
of wrong verdicts among all verdicts below a bound. Intervals are widened to match (Benjamini and Yekutieli 2005): of
the intervals of rows with a verdict at most the same share misses the truth, and an interval excludes 0 exactly where
there is a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..report_data.difference import Interval
from ..statistics.distributions import normal_quantile, normal_two_sided, t_quantile, t_two_sided
from ..statistics.intervals import Z95
from ..statistics.spread import Replicates, Spread, Usual, usual

_Array = NDArray[np.float64]

FEW = 20.0
"""With fewer observations a run in the mean, its variance is never taken to be less than what sampling explains."""

_MAX_Z = 38.0
"""Beyond it the probability is 0 in floating point."""

_HALVINGS = 28

_NORMAL = 1e6
"""Degrees of freedom with which Student's t is the normal distribution."""


RATE = 0.05
"""1 minus the confidence of a single interval."""


@dataclass(frozen=True)
class Amounts:
    """Measured amounts of one side: runs by rows; NaN is unknown.

    ``unit`` is what one independent observation weighs in each run (runs by 1; 0: measured and not sampled): an
    amount tells as much as amount / unit counts. Where ``down`` and ``up`` are not None, they are the arms of the
    95 % interval of each amount instead.
    """

    values: _Array
    unit: _Array
    down: _Array | None = None
    up: _Array | None = None

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.values)

    def rows(self, chosen: NDArray[np.bool_]) -> Amounts:
        """Only some rows."""
        down, up = (None if arm is None else arm[:, chosen] for arm in (self.down, self.up))
        return Amounts(self.values[:, chosen], self.unit, down, up)

    @cached_property
    def mean(self) -> _Array:
        """The mean of the runs; unknown if it is in one of them."""
        return np.asarray(self.values.mean(axis=0), np.float64)

    @cached_property
    def sampling_variance(self) -> _Array:
        """Variance of the mean that sampling alone explains."""
        if self.down is not None and self.up is not None:
            each = np.square((self.down + self.up) / (2 * Z95))
        else:
            # The mean of the runs, so that a run that happens to have nothing does not count as certain; and two
            # observations more (Agresti and Coull), so that runs that all happen to have few do not either.
            added = 2 * np.square(self.unit) / self.runs
            each = np.broadcast_to(self.mean, self.values.shape) * self.unit + added
        return np.asarray(each.sum(axis=0) / self.runs**2, np.float64)

    @cached_property
    def replicates(self) -> Replicates:
        """Variances of the runs among themselves; needs two of them."""
        own = np.asarray(self.values.var(axis=0, ddof=1), np.float64)
        parts = [np.nan_to_num(each) for each in (own, self.mean, self.sampling_variance * self.runs)]
        return Replicates(parts[0], parts[1], parts[2], self.runs - 1.0)

    def spread(self, common: Usual) -> Spread:
        """Spread of the runs, given what is usual."""
        drawn, observed = common.draw(self.replicates), self.replicates
        # Few observations can be equal in all runs by chance; then sampling bounds their error.
        few = np.square(observed.mean) < FEW * observed.sampling
        return Spread(np.where(few, np.maximum(drawn.variance, observed.sampling), drawn.variance), drawn.freedom)

    def arms(self, z: _Array | float, assumed: float) -> tuple[_Array, _Array]:
        """Reach of the interval of a single run downwards and upwards, for the normal quantile ``z``."""
        down, up = (np.sqrt(self.squared_arm(z, assumed, towards)) for towards in (-1, 1))
        return down, up

    def squared_arm(self, z: _Array | float, assumed: float, towards: NDArray[np.int64] | int) -> _Array:
        """The square of how far the interval of a single run reaches down (``towards`` -1) or up (1)."""
        value = self.values[0]
        if self.down is not None and self.up is not None:
            arm = np.where(np.asarray(towards) > 0, self.up[0], self.down[0]) * (z / Z95)
        else:
            # The score interval of a Poisson count: it is right for few counts, and for none.
            unit = self.unit[0]
            root = z * np.sqrt(np.maximum(value * unit, 0.0) + np.square(unit * z) / 4)
            arm = root + towards * (unit * np.square(z) / 2)
        return np.asarray(np.square(arm) + np.square(z * assumed * value), np.float64)


class Evidence:
    """Evidence of two sides about the difference ``new - factor * base``."""

    def __init__(
        self, base: Amounts, new: Amounts, spread: float = 0.0, factor: float = 1.0, drift: float = 0.0
    ) -> None:
        self._base, self._new = base, new
        self._spread = spread
        self._factor = factor
        self._drift = drift
        self._quantiles: dict[float, _Array] = {}
        self.single = base.runs == 1 and new.runs == 1
        """True if there is one run a side."""

    @property
    def difference(self) -> _Array:
        """The difference of the means."""
        return self._new.mean - self._factor * self._base.mean

    def p_values(self, rows: NDArray[np.bool_] | None = None) -> _Array:
        """Probability of a difference at least as large if there is none; NaN where it is unknown.

        Only ``rows`` are computed: the others are NaN.
        """
        if rows is not None:
            p = np.full(rows.shape, np.nan)
            # With several runs a side the rows learn from one another.
            p[rows] = self._of_rows(rows).p_values() if self.single else self.p_values()[rows]
            return p
        if self.single:
            return self._single_p()
        base, new, freedom = self._variances
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.difference) / np.sqrt(base + new)
        t = np.where(self.difference == 0, 0.0, t)
        p = t_two_sided(np.nan_to_num(t, posinf=1e150), freedom)
        return np.where(np.isnan(self.difference), np.nan, p)

    def interval(self, alpha: float) -> Interval:
        """The difference with its interval of confidence 1 - ``alpha``."""
        (base_down, base_up), (new_down, new_up) = self._arms(alpha)
        difference = self.difference
        # Donner and Zou's rule (MOVER): each end is as far away as the ends of the two intervals that matter there.
        low = difference - np.hypot(new_down, self._factor * base_up)
        high = difference + np.hypot(new_up, self._factor * base_down)
        return Interval(difference, low, high)

    def relative(self, alpha: float) -> Interval:
        """The relative change new / base - 1 with its interval; infinite where base may be nothing."""
        (base_down, base_up), (new_down, new_up) = self._arms(alpha)
        base, new = self._base.mean, self._new.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            # Those factors at which the interval of the difference ends in 0.
            low_part = new**2 - new_down**2
            low = low_part / (
                new * base + np.sqrt(np.maximum((new * base) ** 2 - (base**2 - base_up**2) * low_part, 0))
            )
            high_part, certain = new**2 - new_up**2, base**2 - base_down**2
            high = (new * base + np.sqrt(np.maximum((new * base) ** 2 - certain * high_part, 0))) / certain
            value = new / base
        high = np.where(certain <= 0, np.inf, high)
        unknown = np.isnan(value) & ~((base > 0) | (new > 0)) | np.isnan(base) | np.isnan(new)
        low = np.where(np.isnan(low) | (low < 0), 0.0, low)
        return Interval(*(np.where(unknown, np.nan, ratio - 1) for ratio in (value, low, high)))

    def _arms(self, alpha: float) -> tuple[tuple[_Array, _Array], tuple[_Array, _Array]]:
        if self.single:
            z = normal_quantile(alpha)
            return self._base.arms(z, self._spread), self._new.arms(z, self._spread)
        base, new, freedom = self._variances
        if alpha not in self._quantiles:  # the difference and the ratio ask for the same
            self._quantiles[alpha] = t_quantile(alpha, freedom)
        t = self._quantiles[alpha]
        down = t * np.sqrt(base) / self._factor, t * np.sqrt(new)
        return (down[0], down[0]), (down[1], down[1])

    @cached_property
    def _variances(self) -> tuple[_Array, _Array, _Array]:
        """Variances of both means (the base's with the factor), and the degrees of freedom."""
        common = usual([side.replicates for side in (self._base, self._new) if side.runs > 1])
        base, new = _of_mean(self._base, self._new, common), _of_mean(self._new, self._base, common)
        base_part, new_part = np.square(self._factor) * base.variance, new.variance
        # What a whole side may be off by. It is measured, but not by these rows: it takes no degrees of freedom.
        base_off = np.square(self._drift * self._factor * self._base.mean)
        new_off = np.square(self._drift * self._new.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.square(base_part) / base.freedom + np.square(new_part) / new.freedom
            freedom = np.square(base_part + base_off + new_part + new_off) / below
        if min(self._base.runs, self._new.runs) == 1:
            freedom = base.freedom  # both are from the same runs
        least = np.minimum(base.freedom, new.freedom)
        # Rounded down to a tenth, so that quantiles are shared; fewer degrees only make intervals wider.
        freedom = np.floor(np.where(np.isnan(freedom), least, np.minimum(freedom, _NORMAL)) * 10) / 10
        return base_part + base_off, new_part + new_off, np.maximum(freedom, least)

    def _of_rows(self, rows: NDArray[np.bool_]) -> Evidence:
        return Evidence(self._base.rows(rows), self._new.rows(rows), self._spread, self._factor, self._drift)

    def _single_p(self) -> _Array:
        """Finds the quantile at which the interval just reaches 0."""
        difference = self.difference
        if not difference.size:
            return difference
        squared, factor = np.square(difference), np.square(self._factor)
        # Where there is more, the new side's arm down and the base's arm up are in the way.
        towards = np.where(difference > 0, 1, -1)
        low, high = np.zeros(difference.shape), np.full(difference.shape, _MAX_Z)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            reach = self._new.squared_arm(middle, self._spread, -towards)
            reach += factor * self._base.squared_arm(middle, self._spread, towards)
            short = reach < squared
            np.copyto(low, middle, where=short)
            np.copyto(high, middle, where=~short)
        return np.where(np.isnan(difference), np.nan, normal_two_sided(high))


def _of_mean(side: Amounts, other: Amounts, common: Usual) -> Spread:
    """Variance of a side's mean: from its runs, or for a single run from the other side's."""
    if side.runs > 1:
        spread = side.spread(common)
        return Spread(spread.variance / side.runs, spread.freedom)
    spread = other.spread(common)
    return Spread(np.maximum(spread.variance, side.sampling_variance), spread.freedom)
