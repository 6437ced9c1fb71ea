"""Sums and counts by group: for each group, the sum of the values that belong to it.

In the order of the rows, so that equal input has sums that are equal to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def summed(group: NDArray[np.integer], values: NDArray[Any], groups: int) -> NDArray[np.float64]:
    """The sum of the values of each of ``groups`` groups, which are numbered from 0.

    ``group`` is that of each value. Values with two axes are rows: each column is summed by itself.
    """
    if values.ndim == 1:
        return np.asarray(np.bincount(group, weights=values, minlength=groups), np.float64)
    sums = np.zeros((groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, weights=values[:, column], minlength=groups)
    return sums


def counted(group: NDArray[np.integer], groups: int) -> NDArray[np.float64]:
    """The number of entries of each of ``groups`` groups, which are numbered from 0."""
    return np.asarray(np.bincount(group, minlength=groups), np.float64)
