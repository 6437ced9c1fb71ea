"""Flame graphs (icicles) of the CPU time, and of what was held at the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from ...recording.call_tree import NOTHING
from ...recording.native_names import native_label, short_library, short_name
from ...recording.text import printable
from ...report_data.flame_tree import FOLDED, LABEL
from ...report_data.head import PART_NAMES
from ...report_data.headline import UNKNOWN_CODE
from ...report_data.numbers import seconds, size
from ...report_data.report_data import ReportData
from ...report_data.series import CPU
from .figure_style import FAINT, INK, LIGHT, PAPER, SOFT, WASH, heading, new_figure, short_path

MIN_WIDTH = 0.0015
MAX_DEPTH = 36
"""Deeper calls are left out: a figure has to fit on a slide."""

STRIP = 0.16
"""Height of the strip that says whose time a box holds, in rows."""

MIN_STEM = 3
"""Common callers that are worth folding."""

STEM_SHARE = 0.995
"""A frame of the stem passes on at least this part of what it has."""

PEAK = "live_at_peak_bytes"

Box = tuple[int, float, float, int]
"""Node, left, width (parts of the whole), level."""

Colour = tuple[float, float, float]

ROW = 0.165
CHARACTER = 0.0063
"""Width of a character as a part of the figure's width."""


@dataclass(frozen=True)
class _Shown:
    """The content of a flame graph: title, amount as text, and the value of each node by part."""

    title: str
    amount: str
    parts: dict[str, NDArray[np.float64]]
    hue: str
    """The part whose colour the boxes have."""


def draw_flame(data: ReportData) -> Figure | None:
    """The flame graph of the CPU time; None without CPU time."""
    series = data.flame_series.own
    parts = {part: series[part].sum(axis=1, dtype=np.float64) for part in CPU if part in series}
    spent = sum(float(values.sum()) for values in parts.values())
    return _draw(data, _Shown("Where CPU time is spent", f"{seconds(spent / 1e9)} CPU", parts, "python"))


def draw_live(data: ReportData) -> Figure | None:
    """The flame graph of what was held when the footprint was highest; None if memory was not recorded."""
    held, memory = data.flame_held.get(PEAK), data.profile.memory
    if held is None or memory is None:
        return None
    amount = f"{size(round(held.sum()))} at the peak, after {seconds(memory.peak_s)}"
    return _draw(data, _Shown("Who holds the memory", amount, {"memory": held}, "memory"))


def _draw(data: ReportData, shown: _Shown) -> Figure | None:
    """The figure; None if there is nothing to show."""
    parts = np.stack([*shown.parts.values(), np.zeros(len(data.flame.parent))])[: max(1, len(shown.parts))]
    boxes = layout(data.flame.parent, parts.sum(axis=0))
    if not boxes:
        return None
    below = _with_calls(data.flame.parent, parts)
    boxes, stem = fold_stem(data.flame.parent, boxes)
    deepest = max(level for _, _, _, level in boxes) + 1
    depth = min(MAX_DEPTH, deepest)
    figure, axes = new_figure(0.9 + ROW * depth)
    rectangles, colours = [], []
    strips, hues = [], []
    for node, left, width, level in boxes:
        if level >= MAX_DEPTH:
            continue
        name, colour, ink = box_look(data, int(data.flame.function[node]), LIGHT[shown.hue])
        if stem and node == stem[0]:
            last = box_look(data, int(data.flame.function[stem[-1]]), LIGHT[shown.hue])[0]
            name = f"{len(stem)} frames, from {name} to {last}"
        rectangles.append(Rectangle((left, level), width, 0.92))
        colours.append(colour)
        reached = left
        if len(shown.parts) > 1:
            for part, amount in zip(shown.parts, below[:, node] / (below[:, node].sum() or 1.0), strict=True):
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
    common = f", {len(stem)} common frames in one box" if stem else ""
    cut = f", {deepest - depth} deeper levels left out" if deepest > depth else ""
    heading(axes, shown.title, f"{shown.amount}; callers above what they call{common}{cut}")
    used = [part for part, values in shown.parts.items() if values.any()]
    if len(shown.parts) > 1:
        handles = [Rectangle((0, 0), 1, 1, facecolor=LIGHT[part], label=PART_NAMES[part]) for part in used]
        figure.legend(handles=handles, loc="outside lower right", ncols=len(used))
    return figure


def fold_stem(parent: NDArray[np.int64], boxes: list[Box]) -> tuple[list[Box], list[int]]:
    """The boxes with the callers that all of them have in common put into one; and the nodes that it stands for.

    Those are the frames from the widest root on, each of which does nothing but call the next one. Fewer than
    ``MIN_STEM`` stay as they are.
    """
    width = {node: wide for node, _, wide, _ in boxes}
    called: dict[int, list[int]] = {}
    for node in width:
        called.setdefault(int(parent[node]), []).append(node)
    node = max(called[NOTHING], key=lambda each: width[each])
    stem = []
    while len(called.get(node, [])) == 1 and width[called[node][0]] >= STEM_SHARE * width[node]:
        stem.append(node)
        node = called[node][0]
    if len(stem) < MIN_STEM:
        return boxes, []
    inside, below = set(stem[1:]), {node}
    for each, _, _, _ in sorted(boxes, key=lambda box: box[3]):
        if int(parent[each]) in below:
            below.add(each)
    less = len(stem) - 1
    return [
        (each, left, wide, level - less if each in below else level)
        for each, left, wide, level in boxes
        if each not in inside
    ], stem


def layout(parent: NDArray[np.int64], own: NDArray[np.float64]) -> list[Box]:
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
    boxes: list[Box] = []
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


def box_look(data: ReportData, function: int, hue: str) -> tuple[str, Colour, str]:
    """Name, colour and ink of a box; code out of scope is paler."""
    if function >= len(data.tree.function_names):
        functions, number = data.flame_paths.functions, function - len(data.tree.function_names)
        return (
            short_name(native_label(functions.names[number], short_library(functions.paths[number]))),
            _tint(LIGHT["native"], 0.34),
            INK,
        )
    if function >= 0:
        inside = bool(data.in_scope[function])
        name = printable(data.tree.function_names[function])
        if name == "<module>":  # modules have all one name: their file tells them apart
            name += f" {short_path(printable(data.tree.paths[data.tree.function_files[function]]))}"
        return name, _tint(hue, 0.34 if inside else 0.12), INK if inside else SOFT
    if function == FOLDED:
        return "(small functions)", to_rgb(WASH), FAINT
    return data.labels[LABEL - function] if function <= LABEL else UNKNOWN_CODE, to_rgb(WASH), FAINT


def _tint(hue: str, strength: float) -> Colour:
    red, green, blue = (strength * channel + 1 - strength for channel in to_rgb(hue))
    return red, green, blue
