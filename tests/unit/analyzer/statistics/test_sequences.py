"""Confidence sequences hold at every number of observations at once."""

import numpy as np
import pytest

from tachograph.analyzer.statistics.sequences import FEWEST, evidence, mean_sequence

REPEATS = 2000
LONGEST = 60


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("effect", [0.0, 0.5, 4.0])
def test_the_truth_is_missed_no_more_often_than_stated_at_any_time(alpha: float, effect: float) -> None:
    chance = np.random.default_rng(20261127)
    values = chance.normal(effect, 1.0, (LONGEST, REPEATS))
    missed = np.zeros(REPEATS, np.bool_)
    for count in range(FEWEST, LONGEST + 1):
        found = mean_sequence(values[:count], np.full(REPEATS, alpha))
        missed |= (found.low > effect) | (found.high < effect)
    assert missed.mean() < alpha + 3 * np.sqrt(alpha * (1 - alpha) / REPEATS)
    # A sequence that never misses would be no evidence that it is one.
    assert missed.mean() > alpha / 20


def test_an_interval_that_is_looked_at_again_and_again_would_miss_it() -> None:
    """What the sequence is for: Student's interval, at each look, misses a fifth."""
    chance = np.random.default_rng(1)
    values = chance.normal(0.0, 1.0, (LONGEST, REPEATS))
    missed = np.zeros(REPEATS, np.bool_)
    for count in range(10, LONGEST + 1):
        t = values[:count].mean(axis=0) / values[:count].std(axis=0, ddof=1) * np.sqrt(count)
        missed |= np.abs(t) > 2.26
    assert missed.mean() > 0.12


def test_it_finds_an_effect_soon_and_gets_narrower() -> None:
    chance = np.random.default_rng(2)
    values = chance.normal(1.0, 1.0, (200, 500))
    reach = []
    for count in (10, 50, 200):
        found = mean_sequence(values[:count], np.full(500, 0.05))
        reach.append(float(np.median(found.high - found.low)) / 2)
    assert reach[0] < 1.6
    assert reach[1] < 0.6
    assert reach[2] < 0.3
    assert ((mean_sequence(values[:50], np.full(500, 0.05)).low > 0).mean()) > 0.99


def test_scale_and_place_do_not_matter() -> None:
    values = np.random.default_rng(3).normal(2.0, 3.0, (12, 1))
    plain = mean_sequence(values, np.array([0.05]))
    moved = mean_sequence(values * 1e6 + 5.0, np.array([0.05]))
    assert moved.low == pytest.approx(plain.low * 1e6 + 5.0)
    assert moved.high == pytest.approx(plain.high * 1e6 + 5.0)


def test_what_is_known_of_few_and_of_equal_observations() -> None:
    few = mean_sequence(np.array([[1.0], [2.0]]), np.array([0.05]))
    assert (few.mean[0], few.low[0], few.high[0]) == (1.5, -np.inf, np.inf)
    equal = mean_sequence(np.full((3, 2), 7.0), np.array([0.05, 0.0]))
    assert equal.low.tolist() == [7.0, -np.inf]
    assert equal.high.tolist() == [7.0, np.inf]
    assert mean_sequence(np.zeros((0, 1)), np.array([0.05])).high.tolist() == [np.inf]


def test_a_level_of_nothing_gives_no_interval() -> None:
    values = np.random.default_rng(4).normal(0.0, 1.0, (20, 1))
    found = mean_sequence(values, np.array([0.0]))
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)


def test_evidence_exceeds_a_threshold_exactly_where_the_interval_excludes_nothing() -> None:
    values = np.random.default_rng(4).normal(1.0, 1.0, (20, 200))
    found = mean_sequence(values, np.full(200, 0.02))
    excluded = (found.low > 0) | (found.high < 0)
    assert 20 < excluded.sum() < 180
    assert (excluded == (evidence(values) > np.log(1 / 0.02))).all()


def test_evidence_of_few_and_of_equal_observations() -> None:
    assert evidence(np.array([[9.0], [9.1]])).tolist() == [0.0]
    nothing, certain = evidence(np.array([[0.0, 1.0]] * 3)).tolist()
    assert nothing < 0
    assert certain == np.inf
