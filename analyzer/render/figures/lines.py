"""Where the time of the top lines went: a bar for each, divided into Python, native and kernel, with its interval."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ...report_data.numbers import seconds
from ...report_data.report_data import ReportData
from .palette import FAINT, INK, LIGHT, NAMES
from .style import WIDTH, clipped, heading, new_figure, place_label

TOP = 15
PARTS = ("python", "native", "kernel", "unknown")


def draw_lines(data: ReportData) -> Figure | None:
    """The figure; None without CPU time."""
    profile = data.profile
    frame = profile.lines.head(TOP)
    frame = frame[frame["cpu_s"] > 0]
    if frame.empty:
        return None
    figure, axes = new_figure(1.1 + 0.36 * len(frame))
    place = np.arange(len(frame))[::-1]
    whole = profile.totals.cpu_s
    left = np.zeros(len(frame))
    for part in PARTS:
        share = 100 * frame[f"{part}_s"].fillna(0.0).to_numpy(np.float64) / whole
        if share.any():
            axes.barh(place, share, 0.62, left=left, color=LIGHT[part], label=NAMES[part])
        left += share
    low, high = (100 * frame[f"cpu_share_{end}"].to_numpy(np.float64) for end in ("low", "high"))
    axes.hlines(place, low, high, color=INK, linewidth=1, alpha=0.75)
    longest = float(np.nanmax(np.maximum(left, high)))
    names = [clipped(place_label(row), 44) for row in frame.itertuples()]
    room = _room(names) / (longest * 1.75)
    for at, end, row in zip(place, np.maximum(left, high), frame.itertuples(), strict=True):
        text = clipped(_source(row), max(3, int((longest * 1.75 - end) * room) - 1))
        axes.annotate(
            text, (end, at), (6, 0), textcoords="offset points", va="center", fontsize=7.5, family="monospace",
            color=FAINT,
        )  # fmt: skip
    axes.set_yticks(place, names, family="monospace", fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, longest * 1.75)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest * 1.1])
    axes.set_xlim(0, longest * 1.75)
    axes.set_ylim(-0.6, len(frame) - 0.4)
    axes.set_xlabel("share of the CPU time, %; the thin line is the 95 % interval")
    figure.legend(loc="outside lower right", ncols=len(PARTS))
    heading(axes, "Lines with the most CPU time", f"{seconds(whole)} CPU in {seconds(profile.totals.wall_s)}")
    return figure


def _room(names: list[str]) -> float:
    """How many characters of source text the axes are wide, in 7.5 points of DejaVu Sans Mono (0.602 em)."""
    labels = max(map(len, names)) * 8 * 0.602 / 72 + 0.25
    return (WIDTH - labels) * 72 / (7.5 * 0.602)


def _source(row: object) -> str:
    source = row.source  # type: ignore[attr-defined]
    return source.strip() if isinstance(source, str) else ""
