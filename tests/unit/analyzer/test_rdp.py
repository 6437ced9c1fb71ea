"""Curves of few points."""

from __future__ import annotations

import numpy as np
import pytest

from tachograph.analyzer.conclusions.memory.curves import simplify


def off(x: np.ndarray, y: np.ndarray, kept: np.ndarray) -> float:
    """How far the reduced curve is from the whole one at most, as a part of its height."""
    return float(np.abs(np.interp(x, x[kept], y[kept]) - y).max() / (y.max() - y.min()))


def test_corners_are_kept_and_straight_lines_are_not() -> None:
    x = np.arange(1000.0)
    y = np.interp(x, [0, 200, 201, 500, 999], [0, 10, 90, 90, 0])
    kept = simplify(x, y, 6)
    assert {0, 200, 201, 500, 999} <= set(kept.tolist())
    assert off(x, y, kept) < 1e-9


@pytest.mark.parametrize("points", [4, 10, 100])
@pytest.mark.parametrize("length", [1, 2, 3, 99, 101, 1999, 2001, 50_000])
def test_never_too_many_and_always_the_extremes(points: int, length: int) -> None:
    random = np.random.default_rng(length)
    x, y = np.sort(random.random(length)) * 1e18, np.cumsum(random.normal(size=length))
    kept = simplify(x, y, points)
    assert len(kept) <= max(points, 1)
    assert (np.diff(kept) > 0).all()
    assert {0, length - 1} <= set(kept.tolist())
    assert y[kept].max() == y.max()
    assert y[kept].min() == y.min()


def test_more_points_are_nearer() -> None:
    x = np.linspace(0, 20, 1500)
    y = np.sin(x) * x
    distances = [off(x, y, simplify(x, y, points)) for points in (5, 10, 20, 50, 100)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.005


def test_a_flat_curve_is_two_points() -> None:
    x = np.arange(500.0)
    assert set(simplify(x, np.full(500, 3.0), 100).tolist()) == {0, 499}


def test_equal_times() -> None:
    x = np.zeros(300)
    y = np.arange(300.0)
    assert simplify(x, y, 10)[[0, -1]].tolist() == [0, 299]
