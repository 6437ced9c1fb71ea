"""Confidence sequences: intervals for a mean that hold at every number of observations at once.

An ordinary 95 % interval that is looked at after each observation misses the truth sooner or later. A confidence
sequence misses it, at any time, with probability 5 % at most, so that one may stop as soon as it is narrow enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST = 3
"""With fewer observations the sequence tells nothing."""

PRIOR = 4.0
"""Variance of the effect, in standard deviations of an observation, at which the sequence is narrowest.

The interval holds for any effect. Small numbers make it narrower for many observations, large ones for few: five
observations can decide at a level of 0.25 %, and with thirty the interval is 5 % wider than it could be.
"""

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sequence:
    """Means of some quantities and the ends of their intervals; infinite ends where nothing is known."""

    mean: _Array
    low: _Array
    high: _Array


def mean_sequence(values: _Array, alpha: _Array, least: _Array | float = 0.0) -> Sequence:
    """The means of the columns of ``values`` (observations by quantities), with confidence sequences.

    The truth of column k is outside of its interval at any number of observations with probability ``alpha[k]`` at most
    (``alpha`` in 0..1 by quantity; 0 gives infinite ends). Observations are independent and normal, and their variance
    is unknown. ``least`` is a standard deviation that they are known to have at least: few counts may happen to be
    equal.

    The t-test's e-process with a normal prior on the effect size, which is the Bayes factor of Gönen, Johnson, Lu and
    Westfall (2005), inverted: Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with
    unknown variance" (2024), section 4. By Ville's inequality it exceeds 1 / alpha with probability alpha at most.
    """
    count, width = values.shape
    mean = values.mean(axis=0) if count else np.zeros(width)
    if count < FEWEST:
        return Sequence(mean, np.full(width, -np.inf), np.full(width, np.inf))
    spread = np.maximum(values.std(axis=0, ddof=1), least)
    with np.errstate(invalid="ignore"):
        reach = spread * np.sqrt((count - 1) * _largest(count, alpha) / count)
    # Observations that are all equal are known exactly: 0 times infinity would be unknown.
    reach = np.where(spread == 0, np.where(alpha > 0, 0.0, np.inf), reach)
    return Sequence(mean, mean - reach, mean + reach)


def evidence(values: _Array, least: _Array | float = 0.0) -> _Array:
    """Logarithms of the e-values against a mean of 0, by column of ``values`` (observations by quantities).

    It is the e-process that ``mean_sequence`` inverts: where the mean is 0, it ever exceeds log(1 / alpha) with
    probability alpha at most. E-values for one hypothesis may be averaged, and the mean is one, too.
    """
    count, width = values.shape
    if count < FEWEST:
        return np.zeros(width)
    mean, spread = values.mean(axis=0), np.maximum(values.std(axis=0, ddof=1), least)
    g = 1 + count * PRIOR
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        s = count * np.square(mean / spread) / (count - 1)
        log_e = (count * (np.log1p(s) - np.log1p(s / g)) - np.log(g)) / 2
    # Observations that are all equal are known exactly.
    return np.where(spread == 0, np.where(mean == 0, -np.log(g) / 2, np.inf), log_e)


def _largest(count: int, alpha: _Array) -> _Array:
    """The largest t^2 / (count - 1) that does not reject, t being Student's statistic.

    The e-process is g^(-1/2) ((1 + s) / (1 + s / g))^(count / 2) with s = t^2 / (count - 1) and g = 1 + count PRIOR.
    """
    g = 1 + count * PRIOR
    with np.errstate(divide="ignore", over="ignore"):
        bound = (np.sqrt(g) / alpha) ** (2 / count)
    rejects = bound < g
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rejects, (bound - 1) / (1 - np.where(rejects, bound, 0.0) / g), np.inf)
