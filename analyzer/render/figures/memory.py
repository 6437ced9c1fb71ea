"""The footprint over time, with the allocation sites that hold the most stacked under it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...report_data.numbers import size
from ...report_data.report_data import Part, ReportData
from .palette import INK, RULE, SITES, SOFT
from .style import clipped, heading, new_figure, short_path

MB = 1e6
LEAST = 0.01
"""A site with less than this part of what all hold cannot be seen."""


def draw_footprint(data: ReportData) -> Figure | None:
    """The figure; None if memory was not recorded."""
    memory = data.profile.memory
    if memory is None or memory.footprint.empty:
        return None
    figure, axes = new_figure(3.9)
    bins = data.bins
    times = bins.start_s + np.arange(bins.count + 1) * bins.width_s
    single = len(memory.processes) <= 1
    points = memory.footprint if single else memory.footprint_sum
    whole = np.interp(times, points["time_s"], points["bytes"])
    held, names = top_sites(data.lines)
    held = held.reshape(len(held), len(times))
    # What is held is estimated from samples; it is never drawn above the footprint, which is exact.
    together = held.sum(axis=0)
    held = held * np.minimum(1.0, whole / np.where(together > 0, together, 1.0))
    rest = np.maximum(whole - together, 0.0)
    axes.stackplot(
        times,
        *(held / MB),
        rest / MB,
        colors=[*SITES[: len(held)], RULE],
        labels=[*names, "everything else"],
        linewidth=0,
    )
    axes.plot(points["time_s"], points["bytes"] / MB, color=INK, linewidth=1.3, label="footprint")
    resident = memory.resident
    if single and len(resident) > 1:
        axes.plot(
            resident["time_s"],
            resident["bytes"] / MB,
            color=SOFT,
            linewidth=0.9,
            linestyle=(0, (3, 3)),
            label="resident",
        )
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("MB")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower left", ncols=3, prop={"family": "monospace", "size": 7.5}
    )
    peak = "" if memory.peak_bytes is None else f"peak {size(round(memory.peak_bytes))}"
    heading(axes, "Memory over time, by the line that allocated it", peak)
    return figure


def top_sites(lines: Part) -> tuple[NDArray[np.float64], list[str]]:
    """What the lines that hold the most hold at each edge of a span, and their names."""
    net = lines.series.own.get("net")
    if net is None:
        return np.zeros((0, 0)), []
    held = np.concatenate([np.zeros((len(net), 1)), np.cumsum(net, axis=1)], axis=1).clip(0)
    least = LEAST * held.sum(axis=0).max(initial=0.0)
    best = [int(row) for row in np.argsort(-held.max(axis=1), kind="stable")[: len(SITES)] if held[row].max() > least]
    return held[best], [clipped(_name(lines.frame, row), 52) for row in best]


def _name(frame: pd.DataFrame, row: int) -> str:
    file, line = frame["file"].iat[row], frame["line"].iat[row]
    if not isinstance(file, str):
        return str(frame["function"].iat[row])
    return f"{short_path(file)}:{'?' if line is pd.NA else line}"
