"""Sums by index, in floating point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def summed(index: NDArray[np.integer], weights: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """For each of 0 .. ``size`` - 1 the sum of the weights with that index."""
    return np.asarray(np.bincount(index, weights=weights, minlength=size), np.float64)


def counted(index: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    """For each of 0 .. ``size`` - 1 how often it is in the index."""
    return np.asarray(np.bincount(index, minlength=size), np.float64)
