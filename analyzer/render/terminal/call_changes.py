"""Functions that became slower per call, or are called more often, in the terminal report of a diff."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from rich.text import Text

from ...recording.text import shorten_left
from ...report_data.difference import DiffResult
from ...report_data.difference_metrics import CALL_TIME, CALLS, told_of_calls
from ...report_data.numbers import change, changes, counted, short_count, short_time
from .style import Style

MAX_FUNCTIONS = 10
MIN_SHARE = 0.01
"""Functions without a verdict are shown if the time in their calls differs by this part of the program's."""

WORSE, BETTER = "#e06c75", "#98c379"


def call_changes(result: DiffResult) -> pd.DataFrame:
    """Functions whose calls both sides know, the largest difference of the time in all of their calls first.

    Columns: those of ``Level.places``; ``calls_`` and ``mean_`` before base, new, change, change_low, change_high and
    verdict; ``spent``, the difference of calls times their mean time, in seconds; ``told``, the verdict in words
    or None.
    """
    level = result.functions
    if not (level.knows(CALLS.name) and level.knows(CALL_TIME.name)):
        return pd.DataFrame()
    parts = []
    for metric, prefix in ((CALLS, "calls_"), (CALL_TIME, "mean_")):
        values = level.values[level.values["metric"] == metric.name].set_index("row").drop(columns="metric")
        parts.append(values.add_prefix(prefix))
    frame = level.places.join(parts, how="inner")
    ends = [(frame[f"calls_{end}"] * frame[f"mean_{end}"]).fillna(0.0) for end in ("base", "new")]
    frame["spent"] = ends[1] - ends[0]
    frame["told"] = [told_of_calls(*both) for both in zip(frame["calls_verdict"], frame["mean_verdict"], strict=True)]
    order = np.argsort(-frame["spent"].abs().to_numpy(), kind="stable")
    return frame.iloc[order]


def call_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section about calls; nothing where the calls of both sides are not known."""
    frame = call_changes(result)
    if frame.empty:
        return
    wall = max(run.profile.totals.wall_s or 0.0 for run in (*result.base, *result.new))
    shown = frame[frame["told"].notna() | (frame["spent"].abs() >= MIN_SHARE * wall)]
    if shown.empty:
        return
    judged = counted(int(frame["told"].notna().sum()), "verdicts").strip()
    text = Text().append(" Calls of functions ", "bold reverse" if style.colour else "bold")
    yield text.append(f"  {len(frame)} compared, {judged}", "dim")
    yield Text(f"{'calls':>8}{'change':>10}{'per call':>10}{'change':>10}  {'interval':<19}", "dim")
    for _, row in shown.head(MAX_FUNCTIONS).iterrows():
        yield _line(row, style, width)
    yield Text()


def _line(row: pd.Series, style: Style, width: int) -> Text:
    told = row["told"] if isinstance(row["told"], str) else None  # pandas makes None a NaN
    colour = "" if told is None else WORSE if "more" in told or "slower" in told else BETTER
    text = Text(f"{short_count(row['calls_new']):>8}{change(row['calls_change']):>10}")
    text.append(style.plain(f"{short_time(row['mean_new']):>10}"))
    text.append(f"{change(row['mean_change']):>10}")
    text.append(f"  {changes(row['mean_change_low'], row['mean_change_high']):<19}", "dim")
    text.append(f" {row['function']}  ", "bold").append(told or "", colour)
    room = width - text.cell_len - 3
    if isinstance(row["file"], str) and room >= 12:
        text.append("  " + shorten_left(f"{row['file']}:{row['line']}", room), "dim")
    return text
