"""Intervals over recordings hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from tachograph.analyzer.statistics.ratios import difference, ratios


def fleet(chance: np.random.Generator, units: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Recordings of very different length, in which the share of a line differs from one to the next."""
    weights = chance.lognormal(3.0, 0.7, units)
    shares = chance.beta(share * 8, (1 - share) * 8, units)
    return (shares * weights)[None, :], weights


@pytest.mark.broad
@pytest.mark.parametrize("units", [10, 30])
def test_95_of_100_intervals_hold_the_truth(units: int) -> None:
    chance = np.random.default_rng(7)
    fleets = [fleet(chance, units) for _ in range(600)]
    found = [ratios(amounts, weights) for amounts, weights in fleets]
    held = [bool(each.low[0] <= 0.2 <= each.high[0]) for each in found]
    assert 0.93 <= np.mean(held) <= 0.975
    # Not by being endless: two standard errors each way would be 4 long.
    lengths = [float((each.high[0] - each.low[0]) / each.error[0]) for each in found]
    assert np.median(lengths) < 6.5


def test_of_few_recordings_nothing_is_known() -> None:
    found = ratios(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([10.0, 10.0, 10.0, 10.0]))
    assert found.value[0] == 0.25
    assert np.isnan(found.low[0])
    assert np.isnan(ratios(np.zeros((1, 0)), np.zeros(0)).value[0])


def test_a_line_that_few_recordings_have_has_an_interval_that_says_so() -> None:
    amounts = np.zeros((2, 40))
    amounts[0, 3] = 50.0
    amounts[1] = 10.0
    found = ratios(amounts, np.full(40, 100.0))
    assert found.value.tolist() == [0.0125, 0.1]
    assert found.low[0] == 0.0
    assert 0.03 < found.high[0] < 1.0
    assert found.low[1] == pytest.approx(0.1) == found.high[1]


@pytest.mark.broad
def test_p_values_of_equal_groups_are_even() -> None:
    chance = np.random.default_rng(3)
    p = []
    for _ in range(400):
        base, new = (ratios(*fleet(chance, 15), draws=9) for _ in range(2))
        p.append(float(difference(base, new).p[0]))
    assert 0.03 <= np.mean(np.array(p) < 0.05) <= 0.07


def test_a_difference_is_found() -> None:
    chance = np.random.default_rng(4)
    base, new = ratios(*fleet(chance, 40, 0.1)), ratios(*fleet(chance, 40, 0.3))
    found = difference(base, new)
    assert found.p[0] < 1e-4
    low, high = found.interval(0.05)
    assert 0 < low[0] < 0.2 < high[0]


def test_an_interval_is_no_shorter_than_students_t_of_the_logarithm() -> None:
    """Of few recordings the draws alone are too short: 93.6 of 100 intervals of ten recordings held the truth."""
    amounts, weights = fleet(np.random.default_rng(11), 8)
    found = ratios(amounts, weights)
    factor = np.exp(2.364624 * found.error[0] / found.value[0])  # of seven degrees of freedom
    assert found.low[0] <= found.value[0] / factor * (1 + 1e-6)
    assert found.high[0] >= found.value[0] * factor * (1 - 1e-6)
