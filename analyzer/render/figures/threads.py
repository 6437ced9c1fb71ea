"""When each thread worked and waited."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...report_data.report_data import ReportData
from ...report_data.series import CPU
from .palette import LIGHT, NAMES, WASH
from .style import clipped, heading, new_figure

MAX_THREADS = 24


def draw_threads(data: ReportData) -> Figure | None:
    """The figure; None without threads."""
    part, bins = data.threads, data.bins
    count = min(len(part.frame), MAX_THREADS)
    if not count or not any(grid.any() for grid in part.series.own.values()):
        return None
    figure, axes = new_figure(1.2 + 0.42 * count)
    edges = bins.start_s + np.arange(bins.count + 1) * bins.width_s
    drawn: set[str] = set()
    for place in range(count):
        base = float(count - 1 - place)
        axes.axhspan(base, base + 0.84, color=WASH, linewidth=0)
        bottom = np.full(bins.count, base)
        for name in (*CPU, "wait"):
            grid = part.series.own.get(name)
            if grid is None or not grid[place].any():
                continue
            share = np.minimum(grid[place] / bins.width_ns, 1.0)
            top = np.minimum(bottom + 0.84 * share, base + 0.84)
            label = NAMES[name] if name not in drawn else None
            axes.stairs(top, edges, baseline=bottom, fill=True, color=LIGHT[name], linewidth=0, label=label)
            drawn.add(name)
            bottom = top
    known = part.frame["name"].head(count).tolist()
    names = [clipped(name if isinstance(name, str) else "unnamed", 24) for name in known]
    axes.set_yticks(np.arange(count)[::-1] + 0.42, names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(-0.1, count)
    axes.set_xlabel("seconds")
    if drawn:
        figure.legend(loc="outside lower right", ncols=5)
    left_out = len(part.frame) + part.left_out - count
    heading(axes, "Threads over time", f"{left_out} more threads" if left_out else "full height: one core")
    return figure
