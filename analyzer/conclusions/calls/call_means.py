"""Mean times of calls, how much calls differ, and how far the means may be off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .call_estimates import student
from .call_facts import Floats, Ids, added

UNENDED = 0.01
"""Where the ends of more than this part of the calls were not seen, the mean is unknown: the longest are missing."""
FEWEST_PERIODS = 4
"""Periods without which nothing is learned from how much they differ."""


def mean_times(
    function: Ids,
    count: int,
    weight: Floats,
    ended: Floats,
    total_ns: Floats,
    squared: Floats,
    *,
    begun: Floats,
    exact: NDArray[np.bool_],
) -> dict[str, Floats]:
    """By function (of ``count``): mean_s, mean_s_low, mean_s_high, sd_s; NaN is unknown.

    ``function`` to ``squared`` are by period: its function, what one seen call stands for, and the sums of the calls
    that ended. ``begun`` is by function, weighted likewise. Where ``exact``, all calls were seen to
    begin and to end. Else the interval has the larger of two variances: that of the calls, as if each had been drawn
    by itself, and that among the periods, since calls that follow one another are alike.
    """

    def whole(values: Floats) -> Floats:
        return added(function, values, count)

    number = whole(weight * ended)
    with np.errstate(divide="ignore", invalid="ignore"):
        # No call takes no time at all: what watching was taken to cost is all that there was.
        known = (number > 0) & (begun - number <= UNENDED * begun) & (whole(total_ns) > 0)
        mean = np.where(known, whole(weight * total_ns) / number, np.nan)
        variance = np.maximum(whole(weight * squared) / number - mean**2, 0.0)
        drawn = number**2 / whole(weight**2 * ended)
        error = variance / np.maximum(drawn - 1, 1e-9)
        periods = whole(np.where(ended > 0, 1.0, 0.0))
        off = weight * (total_ns - mean[function] * ended)
        among = whole(np.nan_to_num(off) ** 2) * periods / np.maximum(periods - 1, 1) / number**2
    some = periods >= FEWEST_PERIODS
    several = some & (among > error)
    reach = student(np.where(several, periods, drawn) - 1) * np.sqrt(np.where(several, among, error))
    reach = np.where(exact, 0.0, np.where(drawn > 1, reach, np.nan))
    return {
        "mean_s": mean / 1e9,
        "mean_s_low": np.maximum(mean - reach, 0.0) / 1e9,
        "mean_s_high": (mean + reach) / 1e9,
        "sd_s": np.where(known & (number > 1), np.sqrt(variance), np.nan) / 1e9,
    }
