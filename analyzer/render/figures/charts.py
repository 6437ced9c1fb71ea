"""The bar charts and timelines of a report: lines, threads, GPUs, memory, copies, and the differences of a diff.

Lines and differences are bars with their intervals; a line's bar is divided into Python, native and kernel. Memory is
the footprint over time, with the allocation sites that hold the most stacked under it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ...report_data.difference import BY_NAME, OPEN, DiffResult
from ...report_data.head import PART_NAMES
from ...report_data.numbers import percent, seconds, size
from ...report_data.report_data import Part, ReportData
from ...report_data.series import CPU
from ...report_data.where_memory import process_where_rows
from .figure_style import (
    FAINT,
    GPU,
    INK,
    LIGHT,
    MEMORY,
    RULE,
    SITES,
    SOFT,
    WASH,
    WIDTH,
    clipped,
    heading,
    new_figure,
    place_label,
    save_all,
    short_path,
)

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
            axes.barh(place, share, 0.62, left=left, color=LIGHT[part], label=PART_NAMES[part])
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
    """The width of the axes in characters of source text, in 7.5 points of DejaVu Sans Mono (0.602 em)."""
    labels = max(map(len, names)) * 8 * 0.602 / 72 + 0.25
    return (WIDTH - labels) * 72 / (7.5 * 0.602)


def _source(row: object) -> str:
    source = row.source  # type: ignore[attr-defined]
    return source.strip() if isinstance(source, str) else ""


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
            label = PART_NAMES[name] if name not in drawn else None
            axes.stairs(top, edges, baseline=bottom, fill=True, color=LIGHT[name], linewidth=0, label=label)
            drawn.add(name)
            bottom = top
    raw_names = part.frame["name"].head(count).tolist()
    names = [clipped(name if isinstance(name, str) else "unnamed", 24) for name in raw_names]
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


MAX_DEVICES = 4
GB = 1e9


def draw_gpu(data: ReportData) -> Figure | None:
    """The figure, of the GPUs that the program used; None if GPUs were not read, or told nothing."""
    gpu, totals = data.profile.gpu, data.profile.totals
    if gpu is None or gpu.timeline.empty:
        return None
    figure, axes = new_figure(3.2)
    memory = axes.twinx()
    used = gpu.devices[gpu.devices["used"]] if gpu.devices["used"].any() else gpu.devices
    for place, device in enumerate(used["device"].head(MAX_DEVICES)):
        mine = gpu.timeline[gpu.timeline["device"] == device]
        busy, held = mine[mine["busy_share"].notna()], mine[mine["memory_bytes"].notna()]
        axes.fill_between(
            busy["time_s"],
            busy["busy_share"] * 100,
            step="pre",
            color=GPU,
            alpha=0.75 / (1 + place),
            linewidth=0,
            label="GPU busy" if len(used) == 1 else f"GPU {device} busy",
        )
        memory.plot(
            held["time_s"], held["memory_bytes"] / GB, color=MEMORY, linewidth=1.3, label="memory in use, right"
        )
    start, end = data.bins.start_s, data.bins.end_s
    axes.set_xlim(start, end)
    axes.set_ylim(0, 100)
    memory.set_ylim(0)
    axes.set_xlabel("seconds")
    axes.set_ylabel("% of the time")
    memory.set_ylabel("GB")
    memory.tick_params(colors=INK)
    handles = [axes.get_legend_handles_labels(), memory.get_legend_handles_labels()]
    lines, labels = handles[0][0] + handles[1][0][:1], handles[0][1] + handles[1][1][:1]
    figure.legend(lines, labels, loc="outside lower left", ncols=3, prop={"size": 7.5})
    busy_text = "?" if totals.gpu_share is None else f"{percent(totals.gpu_share) or '0'} % busy"
    peak = "" if totals.gpu_peak_bytes is None else f", {size(round(totals.gpu_peak_bytes))} of its memory at most"
    heading(axes, "What the GPU did", f"{busy_text}{peak}")
    return figure


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


WHERE = {
    "live_bytes": "live blocks",
    "kept_bytes": "free, kept by allocators",
    "file_bytes": "pages of files",
    "shared_bytes": "shared memory",
    "other_bytes": "other",
}
MAX_BARS = 12


def draw_where(data: ReportData) -> Figure | None:
    """What is resident, by what holds it: over time of one process, of several at each one's last reading."""
    rows = process_where_rows(data.profile)
    memory = data.profile.memory
    if memory is None or memory.where is None or not rows:
        return None
    colours = [*SITES[: len(WHERE) - 1], RULE]
    timeline = memory.where.timeline
    if len(rows) == 1 and len(timeline) > 1:
        figure, axes = new_figure(3.6)
        parts = [np.nan_to_num(timeline[name]) / MB for name in WHERE]
        axes.stackplot(timeline["time_s"], *parts, colors=colours, labels=list(WHERE.values()), linewidth=0)
        axes.plot(timeline["time_s"], timeline["resident_bytes"] / MB, color=INK, linewidth=1.3, label="resident")
        axes.set_xlabel("seconds")
        axes.set_ylabel("MB")
        axes.set_ylim(0)
    else:
        rows = rows[:MAX_BARS]
        figure, axes = new_figure(1.3 + 0.42 * len(rows))
        place, left = np.arange(len(rows))[::-1], np.zeros(len(rows))
        for (name, label), colour in zip(WHERE.items(), colours, strict=True):
            size_ = np.array([row[name] or 0.0 for row in rows]) / MB
            axes.barh(place, size_, 0.62, left=left, color=colour, label=label)
            left += size_
        axes.set_yticks(place, [clipped(f"{row['name'] or '?'} ({row['pid']})", 28) for row in rows])
        axes.set_xlabel("MB")
    figure.legend(loc="outside lower left", ncols=3)
    heading(axes, "Where the memory is", f"{size(round(memory.where.whole.resident_bytes))} resident")
    return figure


def top_sites(lines: Part) -> tuple[NDArray[np.float64], list[str]]:
    """Bytes held at each edge of a bin by the lines that hold the most, and the names of these lines."""
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


MOST_COPYING = 10
MB, GB = 1e6, 1e9
LEAST = 0.005
"""Lines with less than this part of the longest bar have none that can be seen."""


def draw_copies(data: ReportData) -> Figure | None:
    """The figure; None if copies were not recorded, or there were none."""
    frame = data.profile.lines
    if "copied_bytes" not in frame:
        return None
    frame = frame[frame["copied_bytes"] > LEAST * frame["copied_bytes"].max()]
    frame = frame.sort_values("copied_bytes", ascending=False).head(MOST_COPYING)
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


TOP_DIFFERENCES = 14
MORE, LESS = "#c8601a", LIGHT["python"]


def draw_diff(result: DiffResult, metric: str = "cpu") -> Figure | None:
    """The figure of one metric; None if a side does not know it, or nothing differs."""
    if not result.functions.compared(metric):
        return None
    frame = result.functions.metric(metric)
    frame = frame[frame["difference"].fillna(0.0) != 0].head(TOP_DIFFERENCES)
    if frame.empty:
        return None
    definition = BY_NAME[metric]
    scale, unit = (
        (100.0, "percentage points") if result.shares else (1.0, "s") if definition.unit == "s" else (1e-6, "MB")
    )
    figure, axes = new_figure(1.2 + 0.34 * len(frame))
    place = np.arange(len(frame))[::-1]
    difference, low, high = (scale * frame[name].to_numpy(np.float64) for name in ("difference", "low", "high"))
    sure = ~frame["verdict"].isin(OPEN).to_numpy()
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
    axes.set_xlabel(f"{definition.label}, difference in {unit}; thin lines are intervals, pale bars no evidence")
    heading(axes, f"What changed: {definition.label}, by function", _whole(result, metric))
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
