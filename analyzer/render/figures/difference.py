"""What changed between recordings: a bar for each function, with the interval of the difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...report_data.difference import NO_EVIDENCE, UNKNOWN, DiffResult
from ...report_data.difference_metrics import BY_NAME
from ...report_data.numbers import seconds, size
from .palette import INK, LIGHT, RULE
from .style import clipped, heading, new_figure, save_all, short_path

TOP = 14
MORE, LESS = "#c8601a", LIGHT["python"]


def draw_diff(result: DiffResult, metric: str = "cpu") -> Figure | None:
    """The figure of one metric; None if a side does not know it, or nothing differs."""
    if not result.functions.compared(metric):
        return None
    frame = result.functions.metric(metric)
    frame = frame[frame["difference"].fillna(0.0) != 0].head(TOP)
    if frame.empty:
        return None
    told = BY_NAME[metric]
    scale, unit = (100.0, "percentage points") if result.shares else (1.0, "s") if told.unit == "s" else (1e-6, "MB")
    figure, axes = new_figure(1.2 + 0.34 * len(frame))
    place = np.arange(len(frame))[::-1]
    difference, low, high = (scale * frame[name].to_numpy(np.float64) for name in ("difference", "low", "high"))
    sure = ~frame["verdict"].isin((NO_EVIDENCE, UNKNOWN)).to_numpy()
    colours = np.where(difference > 0, MORE, LESS)
    for chosen, strength in ((sure, 1.0), (~sure, 0.32)):
        if chosen.any():
            axes.barh(place[chosen], difference[chosen], 0.62, color=colours[chosen].tolist(), alpha=strength)
    axes.hlines(place, low, high, color=INK, linewidth=1, alpha=0.75)
    axes.axvline(0, color=RULE, linewidth=1, zorder=0)
    axes.set_yticks(place, [clipped(_label(row), 52) for row in frame.itertuples()], family="monospace", fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(frame) - 0.4)
    axes.set_xlabel(f"{told.label}, difference in {unit}; thin lines are intervals, pale bars no evidence")
    heading(axes, f"What changed: {told.label}, by function", _whole(result, metric))
    return figure


def write_diff_figures(result: DiffResult, folder: Path) -> list[Path]:
    """Writes a figure for CPU time, waiting in main and allocated memory, where they are known; returns the files.

    Errors:
        FormatError: a file cannot be written.
    """
    drawn = (("cpu", "cpu"), ("waiting", "main_wait"), ("allocated", "memory.allocated"))
    return save_all(((f"diff-{name}", draw_diff(result, metric)) for name, metric in drawn), folder)


def _label(row: object) -> str:
    function, file = row.function, row.file  # type: ignore[attr-defined]
    return f"{function}  {short_path(file, 1)}" if isinstance(file, str) and not pd.isna(file) else str(function)


def _whole(result: DiffResult, metric: str) -> str:
    """The metric of the whole program, before and now."""
    rows = result.totals.values[result.totals.values["metric"] == metric]
    if rows.empty:
        return ""
    shown = seconds if BY_NAME[metric].unit == "s" else lambda value: size(round(value)) if value == value else "?"
    return f"{shown(rows['base'].iat[0])} before, {shown(rows['new'].iat[0])} now"
