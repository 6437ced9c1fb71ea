"""Many lines are compared at once: keeps the share of wrong verdicts among all verdicts below a bound.

Verdicts come from Benjamini and Hochberg's procedure (1995). Intervals are widened to match (Benjamini and Yekutieli
2005): of the intervals of rows with a verdict at most the same share misses the truth, and an interval excludes 0
exactly where there is a verdict.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATE = 0.05
"""The share of verdicts that may be wrong, on average; also 1 minus the confidence of a single interval."""


def adjusted_alpha(p_values: NDArray[np.float64], rate: float = RATE) -> float:
    """The level at which each row is to be judged: ``p <= alpha`` is a verdict, and intervals have 1 - alpha.

    ``p_values`` are those of all rows that were compared (NaN: not compared, and not counted).
    """
    known = np.sort(p_values[~np.isnan(p_values)])
    if not len(known):
        return rate
    bounds = rate * np.arange(1, len(known) + 1) / len(known)
    below = np.flatnonzero(known <= bounds)
    return float(bounds[below[-1]] if len(below) else bounds[0])
