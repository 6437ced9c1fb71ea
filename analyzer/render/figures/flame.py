"""The flame graph (icicle) of the CPU time."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from ...recording.text import printable
from ...report_data.flame import FOLDED, LABEL
from ...report_data.numbers import seconds
from ...report_data.report_data import ReportData
from ...report_data.row_labels import UNKNOWN_CODE
from ...report_data.series import CPU
from .palette import FAINT, INK, LIGHT, NAMES, PAPER, SOFT, WASH
from .style import heading, new_figure, short_path

MIN_WIDTH = 0.0015
MAX_DEPTH = 36
"""Deeper calls are left out: a figure has to fit on a slide."""

STRIP = 0.16
"""Height of the strip that says whose time a box holds, in rows."""

Colour = tuple[float, float, float]

ROW = 0.165
CHARACTER = 0.0063
"""Width of a character as a part of the figure's width."""


def draw_flame(picture: ReportData) -> Figure | None:
    """The figure; None without CPU time."""
    parts = np.zeros((len(CPU), len(picture.flame.parent)))
    for place, part in enumerate(CPU):
        if part in picture.flame_series.own:
            parts[place] = picture.flame_series.own[part].sum(axis=1)
    own = parts.sum(axis=0)
    boxes = layout(picture.flame.parent, own)
    if not boxes:
        return None
    below = _with_calls(picture.flame.parent, parts)
    deepest = max(level for _, _, _, level in boxes) + 1
    depth = min(MAX_DEPTH, deepest)
    figure, axes = new_figure(0.9 + ROW * depth)
    rectangles, colours = [], []
    strips, hues = [], []
    for node, left, width, level in boxes:
        if level >= MAX_DEPTH:
            continue
        name, colour, ink = _look(picture, int(picture.flame.function[node]))
        rectangles.append(Rectangle((left, level), width, 0.92))
        colours.append(colour)
        reached = left
        for part, amount in zip(CPU, below[:, node] / (below[:, node].sum() or 1.0), strict=True):
            strips.append(Rectangle((reached, level + 0.92 - STRIP), width * amount, STRIP))
            hues.append(LIGHT[part])
            reached += width * amount
        fits = int(width / CHARACTER) - 1
        if fits >= 3:
            text = name if len(name) <= fits else name[: fits - 1] + "…"
            axes.text(left + 0.003, level + 0.42, text, fontsize=6.5, va="center", color=ink, clip_on=True)
    axes.add_collection(PatchCollection(rectangles, facecolors=colours, edgecolors=PAPER, linewidths=0.5))
    axes.add_collection(PatchCollection(strips, facecolors=hues, linewidths=0))
    axes.set_xlim(0, 1)
    axes.set_ylim(depth, 0)
    axes.set_axis_off()
    cut = f", {deepest - depth} deeper levels left out" if deepest > depth else ""
    heading(axes, "Where CPU time is spent", f"{seconds(own.sum() / 1e9)} CPU; callers above what they call{cut}")
    used = [part for place, part in enumerate(CPU) if parts[place].any()]
    handles = [Rectangle((0, 0), 1, 1, facecolor=LIGHT[part], label=NAMES[part]) for part in used]
    figure.legend(handles=handles, loc="outside lower right", ncols=len(used))
    return figure


def layout(parent: NDArray[np.int64], own: NDArray[np.float64]) -> list[tuple[int, float, float, int]]:
    """Boxes (node, left, width, level) in parts of the whole, callers first, the widest child leftmost."""
    total = own.astype(np.float64).copy()
    children: dict[int, list[int]] = {}
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0:
            total[parent[node]] += total[node]
        children.setdefault(int(parent[node]), []).append(node)
    whole = sum(total[node] for node in children.get(-1, []))
    if whole <= 0:
        return []
    boxes: list[tuple[int, float, float, int]] = []
    left = [(-1, 0.0, -1)]
    while left:
        node, x, level = left.pop()
        for child in sorted(children.get(node, []), key=lambda each: -total[each]):
            width = float(total[child] / whole)
            if width >= MIN_WIDTH:
                boxes.append((child, x, width, level + 1))
                left.append((child, x, level + 1))
            x += width
    return boxes


def _with_calls(parent: NDArray[np.int64], parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each part of the time of each node with everything below it."""
    sums = parts.copy()
    for node in range(len(parent) - 1, -1, -1):
        if parent[node] >= 0:
            sums[:, parent[node]] += sums[:, node]
    return sums


def _look(picture: ReportData, function: int) -> tuple[str, Colour, str]:
    """Name, colour and ink of a box; code out of scope is paler."""
    if function >= 0:
        inside = bool(picture.in_scope[function])
        name = printable(picture.tree.function_names[function])
        if name == "<module>":  # modules have all one name: their file tells them apart
            name += f" {short_path(printable(picture.tree.paths[picture.tree.function_files[function]]))}"
        return name, _tint(0.34 if inside else 0.12), INK if inside else SOFT
    if function == FOLDED:
        return "(small functions)", to_rgb(WASH), FAINT
    return picture.labels[LABEL - function] if function <= LABEL else UNKNOWN_CODE, to_rgb(WASH), FAINT


def _tint(strength: float) -> Colour:
    red, green, blue = (strength * channel + 1 - strength for channel in to_rgb(LIGHT["python"]))
    return red, green, blue
