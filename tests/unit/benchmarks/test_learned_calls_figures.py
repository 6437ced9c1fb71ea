"""Figures 1 and 2 of the paper on Paikana, from results written by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib")

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from learned_calls_figures import SHARES, TIMES, draw, shares, times

TRUE = {"parse": 75.0, "split": 25.0}
SAID = {"parse": 60.0, "split": 40.0}


def run(number: int, name: str, elapsed_s: float | None, said: dict[str, float] | None) -> dict[str, Any]:
    return {"round": number, "name": name, "elapsed_s": elapsed_s, "said": said, "corrected": None}


FOUND = {
    "truth": TRUE,
    "runs": [
        run(0, "bare", 2.0, None),
        run(0, "--calls", 2.2, SAID),
        run(1, "--calls", 1.3, SAID),
        run(1, "bare", 1.0, None),
        run(1, "cProfile", None, None),
    ],
    "summary": {"--calls": {"divergence": 0.05}},
}


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_times_are_ratios_within_a_round() -> None:
    (axes,) = times(FOUND).axes
    (bar,) = bars(axes)
    assert bar.get_width() == pytest.approx(1.2)
    assert sorted(np.asarray(axes.lines[0].get_xdata()).tolist()) == pytest.approx([1.1, 1.3])


def test_each_profiler_has_a_bar_of_the_whole() -> None:
    (axes,) = shares(FOUND).axes
    ends: dict[float, float] = {}
    for bar in bars(axes):
        ends[bar.get_y()] = ends.get(bar.get_y(), 0.0) + bar.get_width()
    assert list(ends.values()) == [100.0, 100.0]
    assert [text.get_text() for text in axes.texts] == [" 0.0500"]


def test_both_figures_are_written(tmp_path: Path) -> None:
    assert draw(FOUND, tmp_path) == [tmp_path / TIMES, tmp_path / SHARES]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / TIMES, tmp_path / SHARES))
