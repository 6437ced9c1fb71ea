"""Shares of the CPU time with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..profile.profile import Totals
from ..samples.intervals import wilson


@dataclass(frozen=True, slots=True)
class Share:
    """A share (0..1) with the ends of its 95 % interval; NaN is unknown."""

    value: float
    low: float
    high: float


def share_of(totals: Totals, cpu_s: float | None) -> Share:
    """The share of all CPU time that some seconds are; None is unknown."""
    if cpu_s is None or math.isnan(cpu_s):
        return Share(math.nan, math.nan, math.nan)
    share = cpu_s / totals.cpu_s if totals.cpu_s > 0 else 0.0
    low, high = wilson(np.array([share]), totals.effective_samples)
    return Share(share, float(low[0]), float(high[0]))
