"""The calls of functions in the terminal report."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.text import shorten_left
from ...report_data.numbers import short_count, short_time
from .style import Style

MAX_FUNCTIONS = 12


def call_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about calls, the functions with the most time in all of their calls first; nothing without calls."""
    frame = profile.frames.functions
    if np.isnan(frame["watched_s"]).all():
        return
    spent = np.nan_to_num(frame["calls"] * frame["call_mean_s"])
    order = np.argsort(-spent, kind="stable")
    frame = frame.take(order[spent[order] > 0][:MAX_FUNCTIONS])
    if not len(frame):
        return
    text = Text().append(" Calls ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  times of one call, with all that it calls; own: in its own lines"), "dim")
    heads = ("calls", "", "mean", "half", "90 %", "99 %", "longest", "own")
    yield Text("".join(f"{name:>8}" for name in heads) + "  function", "dim")
    for row in frame.rows():
        yield _function(row, style, width)
    yield Text()


def _function(row: Row, style: Style, width: int) -> Text:
    text = Text().append(f"{short_count(row['calls']):>8}", "bold")
    text.append(style.plain(f"{_margin(row):>8}"), "dim")
    text.append(style.plain(f"{short_time(row['call_mean_s']):>8}"), "bold")
    for name in ("call_p50_s", "call_p90_s", "call_p99_s", "call_max_s", "own_call_mean_s"):
        text.append(style.plain(f"{short_time(row[name]):>8}"))
    text.append(f"  {row['function']}  ")
    where = f"{row['file']}:{row['line']}"
    return text.append(shorten_left(where, max(10, width - text.cell_len - 1)), "dim")


def _margin(row: Row) -> str:
    """How far the number of calls may be off, in percent; nothing where it is exact."""
    calls, low, high = row["calls"], row["calls_low"], row["calls_high"]
    if math.isnan(calls) or math.isnan(high):
        return "?"
    if low == high or calls <= 0:
        return ""
    share = max(high - calls, calls - low) / calls
    return f"±{share:.0%}" if share < 9.995 else "?"
