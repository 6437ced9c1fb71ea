"""Figures 1 and 2 of the paper on Paikana, from results written by hand."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need matplotlib")

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from learned_calls_figures import SHARES, TIMES, draw, shares, times

TRUE = {"parse": 75.0, "split": 25.0}
SAID = {"parse": 60.0, "split": 40.0}


FOUND = {
    "truth": TRUE,
    "cost": {"--calls": [1.1, 1.2, 1.3]},
    "runs": [
        {"round": 0, "name": "--calls", "said": SAID, "corrected": None},
        {"round": 0, "name": "cProfile", "said": None, "corrected": None},
    ],
    "summary": {"--calls": {"divergence": 0.05}},
}


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_times_have_their_median_and_a_dot_for_each_set() -> None:
    (axes,) = times(FOUND).axes
    (bar,) = bars(axes)
    assert bar.get_width() == pytest.approx(1.2)
    assert sorted(np.asarray(axes.lines[0].get_xdata()).tolist()) == [1.1, 1.2, 1.3]


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
