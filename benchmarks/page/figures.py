"""The figures of the page: each a function of the results, or nothing where there are none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cpu_accuracy
import delay_simulation
import line_accuracy
import memory_accuracy
import native_share
from harness.arms import BARE, BARE_AGAIN, CPU_ONLY, FULL
from harness.report import missing
from page.contests import MINE
from page.results import Results

INK, SOFT, MINE_COLOUR, OTHER = "#1f2430", "#6b7280", "#0072b2", "#b8bec8"
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#6b7280", "#1f2430", "#999933", "#882255")
"""Okabe and Ito's, and a few that go with them."""
GROWN = ("#6b7280", "#56b4e9", "#0072b2", "#009e73", "#cc79a7", "#d55e00", "#e69f00", "#1f2430")
"""The same, beginning with that of the noise and tachograph's."""
TIMES = (1, 1.5, 2, 3, 5, 10, 20, 50, 100)


def draw_all(results: Results, folder: Path) -> dict[str, str]:
    """Writes the figures as PNG; benchmark -> file name."""
    return {name: file for name in FIGURES if (file := draw(name, results, folder)) is not None}


def draw(name: str, results: Results, folder: Path) -> str | None:
    """Writes the figure of a benchmark as PNG; its file name, None if it has no figure or no results."""
    settings: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK}
    with mpl.rc_context(settings):
        figure = FIGURES[name](results) if name in FIGURES else None
        if figure is None:
            return None
        figure.savefig(folder / f"{name}.png", dpi=160, bbox_inches="tight", metadata={"Software": None})
    return f"{name}.png"


def overhead(results: Results) -> Figure | None:
    """Median and worst slowdown of each arm."""
    found = results.summary("overhead")
    if found is None:
        return None
    over = {arm: each["in_program"] for arm, each in found["over_programs"].items() if "in_program" in each}
    over = {arm: each for arm, each in over.items() if arm != BARE_AGAIN}
    order = sorted(over, key=lambda arm: over[arm]["median"], reverse=True)
    order = [arm for arm in found["over_programs"] if arm not in over and arm != BARE_AGAIN] + order
    most = max(each["worst"] for each in over.values())
    figure, axes = _new(1.2 + 0.3 * len(order))
    for place, arm in enumerate(order):
        colour = MINE_COLOUR if arm in MINE else OTHER
        lacking = missing(found, arm)
        if arm not in over:
            axes.annotate(f"  {lacking}", (1.0, place), color=SOFT, va="center", fontsize=8)
            continue
        low, high = over[arm]["median"], over[arm]["worst"]
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot(low, place, "o", color=colour)
        axes.plot(high, place, "|", color=colour, markersize=10)
        note = f"  {low:.3f} to {high:.3f}" if high < 2 else f"  {low:.2f} to {high:.1f}"
        axes.annotate(f"{note}; {lacking}" if lacking else note, (high, place), color=SOFT, va="center", fontsize=8)
    axes.axvline(1.0, color=SOFT, linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(0.95 * min(1.0, *(each["median"] for each in over.values())), 3 * most)
    axes.set_ylim(-0.6, len(order) - 0.4)
    ticks = [tick for tick in TIMES if tick < 3 * most]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(order)), [_title(arm) for arm in order])
    axes.set_xlabel("times the bare program (dot: median of the ten programs, bar: worst)")
    axes.set_title("What recording costs", loc="left", fontweight="bold")
    return figure


def _title(arm: str) -> str:
    return f"tachograph, {arm}" if arm in (CPU_ONLY, FULL) else arm


def bias(results: Results) -> Figure | None:
    """Reported minus true share of the calling function."""
    known, profilers = results.known("cpu_accuracy"), results.profilers("cpu_accuracy")
    truth = cpu_accuracy.truth(known)
    lines = {name: cpu_accuracy.errors(known, name) for name in profilers}
    title, y = "Function bias: reported minus true", "percentage points"
    return _lines(truth, lines, title, "true share of the calling function, %", y)


def lines(results: Results) -> Figure | None:
    """Percent of the time that each profiler puts on the wrong line."""
    known = results.known("line_accuracy")
    found = {name: line_accuracy.errors(known, name) for name in results.profilers("line_accuracy")}
    wrong = sorted(((value, name) for name, value in found.items() if value is not None), reverse=True)
    if not wrong:
        return None
    figure, axes = _new(1.0 + 0.28 * len(wrong))
    for place, (value, name) in enumerate(wrong):
        axes.barh(place, value, 0.6, color=MINE_COLOUR if name in MINE else OTHER)
        axes.annotate(f" {value:.1f}", (value, place), color=SOFT, va="center", fontsize=8)
    axes.set_yticks(range(len(wrong)), [name for _, name in wrong])
    axes.set_xlabel("% of the CPU time")
    axes.set_title("Time on the wrong line", loc="left", fontweight="bold")
    return figure


def scaling(results: Results) -> Figure | None:
    """Slowdown of the programs that are large in one way, each way a panel."""
    found = results.summary("scaling")
    if found is None:
        return None
    arms = {arm: found["ratios"][arm]["in_program"] for arm in [BARE_AGAIN, *results.arms("scaling")]}
    groups: dict[str, dict[str, str]] = {}
    for program in found["sizes"][BARE]:
        number = next(word for word in program.split() if word.isdigit())
        groups.setdefault(program.replace(number, "...", 1), {})[program] = number
    figure = Figure(figsize=(8.0, 5.2))
    panels = figure.subplots(2, 2, sharey=True).flat
    for axes, (title, programs) in zip(panels, groups.items(), strict=False):
        for number, (arm, ratios) in enumerate(arms.items()):
            points = [(place, ratios[name]["median"]) for place, name in enumerate(programs) if name in ratios]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    ":" if arm == BARE_AGAIN else "o-",
                    markersize=3,
                    linewidth=2.4 if arm in MINE else 1.2,
                    color=SOFT if arm == BARE_AGAIN else GROWN[number % len(GROWN)],
                    label=_title(arm),
                )
        axes.set_xticks(range(len(programs)), list(programs.values()))
        axes.set_yscale("log")
        axes.set_yticks(TIMES, [f"{tick:g}" for tick in TIMES])
        axes.set_yticks([], minor=True)
        axes.set_title(title, fontsize=9)
    most = max(ratio["median"] for ratios in arms.values() for ratio in ratios.values())
    for axes in figure.axes:
        axes.set_ylim(0.8, max(2.0, 1.2 * most))
    for axes in figure.axes[::2]:
        axes.set_ylabel("times bare")
    figure.suptitle("As the program grows", x=0.06, ha="left", fontweight="bold")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="center left", bbox_to_anchor=(0.98, 0.5))
    figure.tight_layout()
    return figure


def native(results: Results) -> Figure | None:
    """Reported minus true native share."""
    known, profilers = results.known("native_share"), results.profilers("native_share")
    truth = native_share.truth(known)
    lines = {name: native_share.errors(known, name) for name in profilers}
    return _lines(truth, lines, "Native time: reported minus true", "native share, %", "percentage points")


def array(results: Results) -> Figure | None:
    """Error of an array's size, by the part that was touched."""
    known, profilers = results.known("memory_accuracy"), results.profilers("memory_accuracy")
    touched = {percent: float(percent) for percent in memory_accuracy.TOUCHED}
    lines = {name: memory_accuracy.errors(known, name) for name in profilers}
    figure = _lines(touched, lines, "Size of an array of 512 MB", "part that was touched, %", "error, %")
    if figure is not None:
        figure.axes[0].set_yscale("symlog", linthresh=0.1)
        figure.axes[0].yaxis.set_major_formatter("{x:+g}")
    return figure


def delay(results: Results) -> Figure | None:
    """Estimated over simulated time."""
    points = [delay_simulation.Point(**one) for one in results.figures("delay", "delay.json")]
    lines = {
        f"{part}, {phases} phases": {
            one.seconds: getattr(one, f"{part}_ratio") for one in points if one.phases == phases
        }
        for phases in ("long", "short")
        for part in ("python", "native")
    }
    seconds = {second: float(second) for second in delay_simulation.TIMES_S}
    title, y = "Native time from the delay of signals", "estimated / simulated"
    figure = _lines(seconds, lines, title, "simulated seconds", y) if points else None
    if figure is not None:
        figure.axes[0].set_xscale("log", base=2)
        figure.axes[0].set_xticks(list(seconds.values()), [f"{second:g}" for second in seconds])
    return figure


def _lines(
    places: dict[int, float],
    lines: dict[str, dict[int, float]],
    title: str,
    x: str,
    y: str,
) -> Figure | None:
    shown = {name: values for name, values in lines.items() if values}
    if not shown:
        return None
    figure, axes = _new(3.6)
    for number, (name, values) in enumerate(shown.items()):
        inside = [(places[share], value) for share, value in values.items() if share in places]
        width = 2.4 if name in MINE else 1.2
        axes.plot(
            *zip(*inside, strict=True),
            "o-",
            markersize=3,
            linewidth=width,
            color=COLOURS[number % len(COLOURS)],
            label=name,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _new(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.0, height))
    return figure, figure.subplots()


FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "overhead": overhead,
    "cpu_accuracy": bias,
    "line_accuracy": lines,
    "scaling": scaling,
    "native_share": native,
    "delay": delay,
    "memory_accuracy": array,
}
