"""Calls of functions for the page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from .pack import number

COLUMNS = (
    *("calls", "calls_low", "calls_high", "watched_s", "own_call_mean_s"),
    *(f"call_{name}_s" for name in ("mean", "p50", "p90", "p99", "max")),
)


def call_columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """The columns about calls of a part of the profile; nothing if none were watched.

    ``call_times`` is by row a list of (binary digits of the time in ns, calls), or None.
    """
    if "watched_s" not in frame or frame["watched_s"].isna().all():
        return {}
    columns: dict[str, list[Any]] = {
        name: [number(value, 7) for value in frame[name].to_numpy(np.float64).tolist()] for name in COLUMNS
    }
    columns["call_times"] = [
        [[round(math.log2(end * 1e9)), number(calls, 4)] for end, calls in times] if isinstance(times, list) else None
        for times in frame["call_times"]
    ]
    return columns
