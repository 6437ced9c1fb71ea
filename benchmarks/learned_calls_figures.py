"""Figures 1 and 2 of the paper on Paikana, from what learned_calls.py measured.

    python benchmarks/learned_calls_figures.py results/learned_calls.json FOLDER

learned_calls.py draws them beside its results; this draws them again without measuring.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any

import click
import matplotlib as mpl

mpl.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

TIMES, SHARES = "learned_calls_time.png", "learned_calls_shares.png"
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#6b7280", "#999933", "#882255")
"""Okabe and Ito's, and two that go with them."""


def draw(found: dict[str, Any], folder: Path) -> list[Path]:
    """Writes both figures into ``folder``; returns their files."""
    settings: dict[Any, Any] = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    written = []
    with mpl.rc_context(settings):
        for name, figure in ((TIMES, times(found)), (SHARES, shares(found))):
            written.append(folder / name)
            figure.savefig(written[-1], dpi=160, bbox_inches="tight", metadata={"Software": None})
    return written


def times(found: dict[str, Any]) -> Figure:
    """Figure 1: CPU time over that of the bare program, of each set of processes, and the median."""
    ratios: dict[str, list[float]] = found["cost"]
    axes = _axes(len(ratios))
    axes.barh(list(ratios), [median(each) for each in ratios.values()], color=COLOURS[1])
    for row, each in enumerate(ratios.values()):
        axes.plot(each, [row] * len(each), "o", color=COLOURS[0], markersize=3)
        axes.annotate(f" {median(each):.3f}", (max(each), row), va="center")
    axes.axvline(1, color=COLOURS[6], linewidth=0.8)
    axes.set_xlabel("CPU time, bare = 1 (dots: sets of processes)")
    axes.invert_yaxis()
    return _figure(axes)


def shares(found: dict[str, Any]) -> Figure:
    """Figure 2: what each profiler says of the functions' own time, and how far that is from the truth."""
    told: dict[str, dict[str, float]] = {"truth": found["truth"]}
    for run in found["runs"]:
        if run["said"]:
            told[run["name"]] = run["said"]
        if run["corrected"]:
            told["cProfile, corrected"] = run["corrected"]
    axes = _axes(len(told))
    ends = [0.0] * len(told)
    for number, function in enumerate(found["truth"]):
        values = [said[function] for said in told.values()]
        axes.barh(list(told), values, left=ends, label=function, color=COLOURS[number % len(COLOURS)])
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    for row, name in enumerate(told):
        divergence = found["summary"].get(name, {}).get("divergence")
        if divergence is not None:
            axes.annotate(f" {divergence:.4f}", (100, row), va="center")
    axes.set_xlabel("own time, % (right: KL divergence from the truth)")
    axes.set_xlim(0, 112)
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.15), ncol=3, frameon=False)
    return _figure(axes)


def _axes(rows: int) -> Axes:
    return Figure(figsize=(7, 0.8 + 0.32 * rows)).subplots()


def _figure(axes: Axes) -> Figure:
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return figure


@click.command()
@click.argument("results", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
def main(results: Path, folder: Path) -> None:
    """Draw the figures of RESULTS into FOLDER."""
    for path in draw(json.loads(results.read_text(encoding="utf-8")), folder):
        print(path)


if __name__ == "__main__":
    main()
