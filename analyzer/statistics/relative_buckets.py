"""Quantiles from counts in buckets that are told to within 2 % of the value, and can be added up over recordings.

DDSketch (Masson, Rim and Lee, VLDB 2019, section 2.1): bucket ``i`` holds the values above ``GAMMA ** (i - 1)`` up to
``GAMMA ** i``, and stands for the value that is as far from both, by ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ERROR = 0.02
"""Of a quantile, relative."""
GAMMA = (1 + ERROR) / (1 - ERROR)


def buckets(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bucket of each value, which is above 0."""
    return np.asarray(np.ceil(np.log(values) / np.log(GAMMA)), np.int64)


def quantile(bucket: NDArray[np.int64], count: NDArray[np.float64], part: float) -> float:
    """The value that ``part`` of all values are at most; NaN where there are none. A bucket may be there twice."""
    order = np.argsort(bucket, kind="stable")
    summed = np.cumsum(count[order])
    if not len(summed) or not summed[-1]:
        return float("nan")
    place = np.searchsorted(summed, part * (summed[-1] - 1), side="right")
    return float(2 * GAMMA ** float(bucket[order[min(place, len(order) - 1)]]) / (GAMMA + 1))
