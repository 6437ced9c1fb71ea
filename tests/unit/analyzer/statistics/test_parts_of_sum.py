"""Intervals of copied bytes by line hold the truth as often as they say, simulated as the recorder samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tachograph.analyzer.conclusions.copies import GROUP_ROWS, estimates
from tachograph.analyzer.statistics.distributions import beta_quantile
from tachograph.analyzer.statistics.grouped_sums import summed
from tachograph.analyzer.statistics.intervals import Z95, parts_of_sum

MEAN = 1000.0
RUNS = 400
Lines = NDArray[np.int64]
Order = Callable[[np.random.Generator, Lines], Lines]


def sampled(random: np.random.Generator, sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """The copies that hold a point: there is one in each stretch of MEAN bytes."""
    ends = np.cumsum(sizes)
    points = MEAN * (np.arange(int(ends[-1] / MEAN) + 2) - random.random())
    points += MEAN * random.random(len(points))
    return np.unique(np.searchsorted(ends, points[(points > 0) & (points < ends[-1])]))


def independent_mean(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of independent samples that have a copy with the same chance (native/shim/memory/thinning.cpp)."""
    part = size / MEAN
    missed = np.where(part <= 1, 1 - part * (1 - part**2 / 6), np.maximum(2 - part, 0.0) ** 3 / 6)
    return np.where(missed > 0, size / -np.log(np.maximum(missed, 1e-300)), 1.0)


def interval(
    random: np.random.Generator, sizes: NDArray[np.float64], line: Lines, lines: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Estimates of the bytes of each line, with the ends of their intervals."""
    rows = sampled(random, sizes)
    exact = np.diff(np.cumsum(sizes)[rows], prepend=0.0)
    exact[-1] += sizes[rows[-1] + 1 :].sum()
    group = np.minimum(np.arange(len(rows)) // GROUP_ROWS, max(len(rows) // GROUP_ROWS - 1, 0))
    owed = summed(group, exact, int(group[-1]) + 1)
    rest, variance = estimates(sizes[rows], independent_mean(sizes[rows]), group, owed)
    certain, beyond, spread = (summed(line[rows], values, lines) for values in (sizes[rows], rest, variance))
    low, high = parts_of_sum(beyond, spread, (float(beyond.sum()), float(spread.sum())))
    return certain + beyond, certain + low, certain + high


def shuffled(random: np.random.Generator, line: Lines) -> Lines:
    return random.permutation(line)


def by_turns(_: np.random.Generator, line: Lines) -> Lines:
    return line.reshape(-1, len(line) // (line[-1] + 1)).T.ravel()


@pytest.mark.parametrize(
    ("sizes", "rounds", "order"),
    [
        ([100.0] * 3, 50, shuffled),
        ([100.0] * 5, 300, shuffled),
        ([50.0] * 20, 60, shuffled),
        ([10.0, 100.0, 1000.0], 200, shuffled),
        ([20.0, 500.0], 100, shuffled),
        ([300.0, 3000.0], 60, shuffled),
        ([1200.0] * 4, 100, shuffled),
        ([512.0] * 3, 200, by_turns),
        ([1000.0] * 2, 200, by_turns),
        ([10.0, 100.0, 1500.0], 100, by_turns),
    ],
)
def test_intervals_hold_the_truth(sizes: list[float], rounds: int, order: Order) -> None:
    """At least 95 of 100 lines that have a sample, half of the misses to each side.

    Of a line that is worth one sample only, the low end is too high more often: those without one are not asked.
    """
    random, lines = np.random.default_rng(4), len(sizes)
    asked = below = above = 0
    for _ in range(RUNS):
        line = order(random, np.repeat(np.arange(lines), rounds))
        size = np.array(sizes)[line]
        found, low, high = interval(random, size, line, lines)
        truth = summed(line, size, lines)
        there = found > 0
        asked += int(np.count_nonzero(there))
        below += int(np.count_nonzero(there & (truth < low - 1)))
        above += int(np.count_nonzero(there & (truth > high + 1)))
    chance = 3 * np.sqrt(0.025 * 0.975 / asked)
    assert above <= (0.025 + chance) * asked
    assert below <= (0.025 + chance) * asked if min(sizes) * rounds >= 2 * MEAN else below <= 0.05 * asked
    # Not wide either: lines that are worth ten samples have no more than five standard deviations of as many.
    many = truth >= 10 * MEAN
    assert np.all((high - low)[many] <= 5 * np.sqrt(truth * max(MEAN, *sizes))[many])


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    # Clopper and Pearson's bounds: a of a + b - 1 for the low ones, a - 1 of a + b - 1 for the high ones.
    [(1.0, 10.0, 0.00253, 0.30850), (10.0, 1.0, 0.69150, 0.99747), (5.0, 6.0, 0.18709, 0.73762)],
)
def test_quantiles_of_the_beta_distribution(a: float, b: float, low: float, high: float) -> None:
    shapes = np.array([a]), np.array([b])
    assert beta_quantile(*shapes, -Z95)[0] == pytest.approx(low, abs=0.004)
    assert beta_quantile(*shapes, Z95)[0] == pytest.approx(high, abs=0.004)
