"""The figure of copied bytes, by line and over time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...report_data.numbers import size
from ...report_data.report_data import ReportData
from .style import INK, LIGHT, clipped, heading, new_figure, place_label

TOP = 10
MB, GB = 1e6, 1e9
LEAST = 0.005
"""Lines with less than this part of the longest bar have none that can be seen."""


def draw_copies(data: ReportData) -> Figure | None:
    """The figure; None if copies were not recorded, or there were none."""
    frame = data.profile.lines
    if "copied_bytes" not in frame:
        return None
    frame = frame[frame["copied_bytes"] > LEAST * frame["copied_bytes"].max()]
    frame = frame.sort_values("copied_bytes", ascending=False).head(TOP)
    if frame.empty:
        return None
    scale, unit = (GB, "GB") if frame["copied_bytes"].max() >= 2 * GB else (MB, "MB")
    figure, axes = new_figure(1.2 + 0.34 * len(frame))
    place = np.arange(len(frame))[::-1]
    copied, low, high = (frame[f"copied_bytes{end}"].to_numpy(np.float64) / scale for end in ("", "_low", "_high"))
    axes.barh(place, copied, 0.62, color=LIGHT["copies"])
    axes.hlines(place, low, high, color=INK, linewidth=1, alpha=0.75)
    axes.set_ylim(-0.6, len(frame) - 0.4)
    axes.set_yticks(
        place, [clipped(place_label(row), 50) for row in frame.itertuples()], family="monospace", fontsize=8
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"{unit} copied; the thin line is the 95 % interval")
    whole, wall = data.profile.totals.copied_bytes or 0.0, data.profile.totals.wall_s
    rate = f", {size(round(whole / wall))}/s" if wall else ""
    heading(axes, "Lines that copy the most", f"{size(round(whole))} in all{rate}")
    return figure
