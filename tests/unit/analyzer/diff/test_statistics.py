"""Intervals, p-values and verdicts against what they promise, by simulation with fixed seeds and by known values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tachograph.analyzer.diff.evidence import Amounts, Evidence
from tachograph.analyzer.statistics.distributions import (
    adjusted_alpha,
    gamma_factor,
    normal_quantile,
    normal_two_sided,
    t_quantile,
    t_two_sided,
)

UNIT = 0.01


def counts(rng: np.random.Generator, runs: int, rates: np.ndarray, spread: float = 0.0) -> Amounts:
    """Runs of a program whose rows have ``rates`` samples on average, and differ between runs by ``spread``."""
    factor = rng.lognormal(-spread * spread / 2, spread, (runs, len(rates)))
    seen = rng.poisson(rates * factor, (runs, len(rates)))
    return Amounts((seen * UNIT).astype(np.float64), np.full((runs, 1), UNIT))


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (10, 2.22814), (1e6, 1.95996), (math.inf, 1.95996)],
)
def test_t_quantiles_are_those_of_the_tables(freedom: float, expected: float) -> None:
    assert t_quantile(0.05, np.array([freedom]))[0] == pytest.approx(expected, rel=1e-5)
    if math.isfinite(freedom):
        assert t_two_sided(np.array([expected]), np.array([freedom]))[0] == pytest.approx(0.05, rel=1e-4)


def test_t_quantiles_of_one_degree_of_freedom_are_those_of_the_tables() -> None:
    """Abramowitz and Stegun, table 26.10: for 50 %, 20 %, 10 %, 5 %, 2 %, 1 % and 0.1 % on both sides together."""
    published = {0.5: 1.000, 0.2: 3.078, 0.1: 6.314, 0.05: 12.706, 0.02: 31.821, 0.01: 63.657, 0.001: 636.619}
    for alpha, expected in published.items():
        assert t_quantile(alpha, np.ones(1))[0] == pytest.approx(expected, abs=0.0006), alpha


def test_unknown_degrees_of_freedom_have_no_quantile() -> None:
    quantile = t_quantile(0.05, np.array([math.nan, 1.0, math.inf]))
    assert math.isnan(quantile[0])
    assert quantile[1:] == pytest.approx([12.7062, 1.95996], rel=1e-5)


@pytest.mark.parametrize(
    ("shape", "low", "high"), [(1.0, 0.0253, 3.689), (5.0, 1.623, 10.242), (10.0, 4.795, 17.085), (50.0, 37.11, 64.78)]
)
def test_gamma_quantiles_are_those_of_the_tables_of_chi_squared(shape: float, low: float, high: float) -> None:
    """Half of the chi-squared quantiles with twice as many degrees of freedom; within 1 % but near 0."""
    assert shape * gamma_factor(np.array([shape]), 1.959964)[0] == pytest.approx(high, rel=0.01)
    assert shape * gamma_factor(np.array([shape]), -1.959964)[0] == pytest.approx(low, rel=0.01, abs=0.02)


@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-3, 1e-7, 1e-30])
def test_t_is_beyond_its_quantile_with_the_probability_that_was_asked_for(alpha: float) -> None:
    freedom = np.array([0.5, 1.0, 1.3, 2.0, 4.9, 30.0, 1e3, 1e6, 0.5])
    quantile = t_quantile(alpha, freedom)
    assert t_two_sided(quantile, freedom) == pytest.approx(alpha, rel=1e-6)
    assert quantile[0] == quantile[-1]


def test_t_with_one_degree_of_freedom_is_cauchy() -> None:
    t = np.array([0.0, 0.1, 1.0, 50.0, 1e6])
    assert t_two_sided(t, np.ones(5)) == pytest.approx([1 - 2 * math.atan(value) / math.pi for value in t], rel=1e-9)


def test_normal() -> None:
    assert normal_quantile(0.05) == pytest.approx(1.959963984540054)
    assert normal_two_sided(np.array([1.959963984540054, -3.0])) == pytest.approx([0.05, 0.0026997961])


@pytest.mark.parametrize("rate", [5, 20, 200, 5000])
@pytest.mark.parametrize("change", [1.0, 1.3, 4.0])
def test_one_run_a_side_covers_the_truth(rate: float, change: float) -> None:
    rng = np.random.default_rng(1)
    base, new = (counts(rng, 1, np.full(20_000, each)) for each in (rate, rate * change))
    evidence = Evidence(base, new, spread=0.0)
    interval, relative = evidence.interval(0.05), evidence.relative(0.05)
    truth = rate * (change - 1) * UNIT
    assert 0.94 <= np.mean((interval.low <= truth) & (truth <= interval.high)) <= 0.975
    known = ~np.isnan(relative.low)
    covered = (relative.low <= change - 1) & (change - 1 <= relative.high)
    assert 0.94 <= np.mean(covered[known]) <= 0.975


def test_interval_p_value_and_ratio_tell_the_same() -> None:
    rng = np.random.default_rng(2)
    rates = np.exp(rng.uniform(0, 7, 5000))
    for runs in (1, 3):
        evidence = Evidence(counts(rng, runs, rates), counts(rng, runs, rates * 1.2))
        interval, relative = evidence.interval(0.01), evidence.relative(0.01)
        excluded = (interval.low > 0) | (interval.high < 0)
        assert np.mean(excluded == (evidence.p_values() < 0.01)) > 0.999
        assert np.mean((relative.low > 0) == (interval.low > 0)) > 0.999
        assert excluded.any()


@pytest.mark.broad
@pytest.mark.parametrize("spread", [0.0, 0.05])
@pytest.mark.parametrize(("base_runs", "new_runs"), [(2, 2), (3, 3), (5, 5), (1, 3)])
@pytest.mark.parametrize("rows", [1, 40])
def test_no_change_is_rarely_taken_for_one(base_runs: int, new_runs: int, rows: int, spread: float) -> None:
    rng = np.random.default_rng(3)
    wrong = []
    for _ in range(600 // rows + 20):
        rates = np.exp(rng.uniform(1, 7, rows))
        evidence = Evidence(counts(rng, base_runs, rates, spread), counts(rng, new_runs, rates, spread))
        wrong.append(np.mean(evidence.p_values() < 0.05))
    assert np.mean(wrong) < 0.065


def test_the_spread_between_runs_counts_not_only_samples() -> None:
    """Runs that differ by 20 % tell nothing about 15 %, however many samples they have."""
    base = Amounts(np.array([[0.8], [1.0], [1.2]]) * 100, np.full((3, 1), 1e-4))
    new = Amounts(np.array([[0.95], [1.15], [1.35]]) * 100, np.full((3, 1), 1e-4))
    assert Evidence(base, new).p_values()[0] > 0.3
    steady = Amounts(np.array([[0.99], [1.0], [1.01]]) * 100, np.full((3, 1), 1e-4))
    slower = Amounts(np.array([[1.14], [1.15], [1.16]]) * 100, np.full((3, 1), 1e-4))
    assert Evidence(steady, slower).p_values()[0] < 0.001


def test_few_samples_that_are_equal_in_all_runs_prove_nothing() -> None:
    base, new = (Amounts(np.full((3, 1), value * UNIT), np.full((3, 1), UNIT)) for value in (0.0, 1.0))
    assert Evidence(base, new).p_values()[0] > 0.05


@pytest.mark.broad
@pytest.mark.parametrize("runs", [1, 3, 5])
def test_verdicts_find_real_changes_and_few_wrong_ones(runs: int) -> None:
    rng = np.random.default_rng(4)
    shares, found = [], []
    for _ in range(60):
        rates = np.exp(rng.uniform(2, 6, 60))
        change = np.ones(60)
        change[:10] = 3
        evidence = Evidence(counts(rng, runs, rates, 0.02), counts(rng, runs, rates * change, 0.02), spread=0.02)
        p = evidence.p_values()
        verdicts = p <= adjusted_alpha(p, 0.05)
        shares.append(verdicts[10:].sum() / max(1, verdicts.sum()))
        found.append(verdicts[:10].mean())
    assert np.mean(shares) < 0.06
    assert np.mean(found) > 0.75


def test_an_assumed_spread_widens_what_one_run_tells() -> None:
    base, new = (Amounts(np.array([[value]]), np.array([[1e-4]])) for value in (100.0, 102.0))
    assert Evidence(base, new, spread=0.0).p_values()[0] < 0.001
    assert Evidence(base, new, spread=0.02).p_values()[0] > 0.3


def test_given_intervals_are_used() -> None:
    base = Amounts(np.array([[10.0]]), np.array([[0.0]]), np.array([[1.0]]), np.array([[2.0]]))
    new = Amounts(np.array([[14.0]]), np.array([[0.0]]), np.array([[2.0]]), np.array([[3.0]]))
    interval = Evidence(base, new, spread=0.0).interval(0.05)
    assert interval.low[0] == pytest.approx(4 - math.hypot(2, 2))
    assert interval.high[0] == pytest.approx(4 + math.hypot(3, 1))


def test_from_nothing_a_ratio_is_infinite_and_unknown_stays_unknown() -> None:
    base = Amounts(np.array([[0.0, 0.0, np.nan]]), np.array([[UNIT]]))
    new = Amounts(np.array([[1.0, 0.0, 1.0]]), np.array([[UNIT]]))
    evidence = Evidence(base, new)
    assert np.isinf(evidence.relative(0.05).value[0])
    assert np.isnan(evidence.relative(0.05).value[1:]).all()
    assert evidence.p_values()[0] < 1e-6
    assert evidence.p_values()[1] == pytest.approx(1.0)
    assert np.isnan(evidence.p_values()[2])


def test_false_discovery() -> None:
    p = np.array([0.001, 0.02, 0.03, 0.5, np.nan])
    # Benjamini and Hochberg: the third is at most 3/4 of 0.05.
    assert adjusted_alpha(p, 0.05) == pytest.approx(0.0375)
    assert adjusted_alpha(np.array([0.04, 0.9]), 0.05) == pytest.approx(0.025)
    assert adjusted_alpha(np.array([np.nan]), 0.05) == 0.05


@pytest.mark.parametrize("runs", [1, 3])
def test_p_values_of_some_rows_are_those_of_all(runs: int) -> None:
    random = np.random.default_rng(7)
    base, new = (counts(random, runs, np.full(50, 40.0)) for _ in range(2))
    rows = np.arange(50) % 3 == 0
    some = Evidence(base, new).p_values(rows)
    assert np.isnan(some[~rows]).all()
    np.testing.assert_array_equal(some[rows], Evidence(base, new).p_values()[rows])
