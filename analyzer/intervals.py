"""Intervals for shares that were estimated from samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054
"""Quantile of the normal distribution for a two-sided 95 % interval."""


def effective_samples(weight: float, weight_squared: float) -> float:
    """Kish's effective number of samples, (sum w)^2 / sum w^2: how many equal samples would tell as much."""
    return weight * weight / weight_squared if weight_squared > 0 else 0.0


def wilson(
    shares: NDArray[np.float64], samples: float, z: float = Z95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of Wilson's score interval for shares (0..1) of ``samples`` samples; NaN without samples.

    It holds for shares near 0 and 1 and for few samples, where the usual p +- z sqrt(p(1-p)/n) is far too narrow.
    """
    shares = np.clip(np.asarray(shares, np.float64), 0.0, 1.0)
    if samples <= 0:
        return np.full(shares.shape, math.nan), np.full(shares.shape, math.nan)
    square = z * z / samples
    centre = shares + square / 2
    reach = z * np.sqrt(shares * (1 - shares) / samples + square / (4 * samples))
    # The ends of the range are exact, but rounding puts them a hair inside or outside of it.
    low = np.where(shares <= 0, 0.0, (centre - reach) / (1 + square))
    high = np.where(shares >= 1, 1.0, (centre + reach) / (1 + square))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
