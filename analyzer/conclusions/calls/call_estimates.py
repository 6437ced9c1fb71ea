"""How often functions were called, estimated from the intervals in which they were watched.

What was seen is exact. Of the rest of the time the drawn intervals tell: they were begun at random and their lengths
were settled in advance. The rate is their ratio of calls to CPU time of the process (Cochran, Sampling Techniques,
1977, chapter 6), less the time that watching itself took, and the variance of a ratio over clusters gives the interval.
A rate by the clock on the wall would be that of the moments at which the program has a processor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .call_facts import CallFacts, Floats

Z95 = 1.959963984540054
FEWEST_INTERVALS = 3
"""Drawn intervals without which nothing is said of how far an estimate may be off."""
COST_DEVIATION = 0.4
"""What watching takes in a program is known to within this part of it (a standard deviation): it is measured once, on
an idle path. With tests/oracle/programs/known_rates.py on CPython 3.12 it took 1.16 to 1.53 times that in 28 runs on a
busy machine, with a deviation of 0.4 in the first 13 and 0.6 to 0.8 in all."""
MOST_COST = 0.9
"""The part of a drawn interval that watching is taken to have had at most."""


@dataclass(frozen=True)
class CallEstimates:
    """By group of ``CallFacts``; NaN is unknown. ``weight`` is by period: calls that one seen call stands for."""

    calls: Floats
    low: Floats
    high: Floats
    weight: Floats


def estimate_calls(facts: CallFacts) -> CallEstimates:
    """Estimates the calls of every group."""
    sums = facts.sums
    unseen = np.where(facts.span_ns > sums["watched_ns"], np.maximum(sums["cpu_ns"] - sums["watched_cpu_ns"], 0.0), 0.0)
    by = {name: facts.by_group(values) for name, values in sums.items()}
    unseen_ns = facts.by_group(unseen)
    gaps = facts.by_group(np.maximum(facts.span_ns - sums["watched_ns"], 0.0))
    rate = _rate(by)
    error = _standard_error(by, rate)
    beyond = _beyond(facts, unseen, rate)
    expected = facts.by_group(beyond)
    whole = gaps <= 0
    intervals = _equal_intervals(by)
    by_chance = student(intervals - 1) * np.sqrt((error * unseen_ns) ** 2 + np.nan_to_num(expected))
    spread = np.hypot(by_chance, Z95 * expected * _cost_error(by))
    below, above = expected - spread, expected + spread
    seen = by["calls"]
    few = intervals < FEWEST_INTERVALS
    return CallEstimates(
        calls=np.where(whole, seen, seen + expected),
        low=np.where(whole | few | np.isnan(below), seen, seen + np.maximum(below, 0.0)),
        high=np.where(whole, seen, np.where(few, np.nan, seen + above)),
        weight=_weights(sums["calls"], beyond),
    )


def _length(by: dict[str, Floats]) -> Floats:
    """CPU time in drawn intervals, in ns, less what watching took: the program did not go on meanwhile."""
    return by["drawn_ns"] - np.minimum(by["drawn_cost_ns"], MOST_COST * by["drawn_ns"])


def _cost_error(by: dict[str, Floats]) -> Floats:
    """What a rate may be off for not knowing what watching took, as a part of it: a standard deviation."""
    length = _length(by)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(length > 0, COST_DEVIATION * by["drawn_cost_ns"] / length, 0.0)


def _rate(by: dict[str, Floats]) -> Floats:
    """Calls per ns of CPU time in drawn intervals."""
    length = _length(by)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(length > 0, by["drawn_calls"] / length, np.nan)


def _equal_intervals(by: dict[str, Floats]) -> Floats:
    """As many intervals of one length as tell as much as the drawn ones do (Kish, Survey Sampling, 1965, 11.2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = by["drawn_ns"] ** 2 / by["watched_squared"]
    return np.where(np.isfinite(equal), np.minimum(equal, by["intervals"]), by["intervals"])


def _standard_error(by: dict[str, Floats], rate: Floats) -> Floats:
    """Of the rate; at least that of a Poisson count."""
    count, length = by["intervals"], by["drawn_ns"]
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = by["drawn_calls"] / length
        squares = by["calls_squared"] - 2 * raw * by["calls_watched"] + raw**2 * by["watched_squared"]
        clusters = np.maximum(squares, 0.0) * count / np.maximum(count - 1, 1) / length**2
        return np.sqrt(np.maximum(clusters, by["drawn_calls"] / length**2)) * np.where(raw > 0, rate / raw, 1.0)


def _beyond(facts: CallFacts, unseen: Floats, rate: Floats) -> Floats:
    """Calls that are expected in the unseen part of each period: at its own rate where it has drawn intervals."""
    own = _rate(facts.sums)
    best = np.where((facts.sums["intervals"] >= FEWEST_INTERVALS) & ~np.isnan(own), own, rate[facts.group])
    return np.where(unseen > 0, unseen * best, 0.0)


def _weights(seen: Floats, beyond: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((seen > 0) & ~np.isnan(beyond), 1 + beyond / seen, 1.0)


def student(freedom: Floats) -> Floats:
    """Quantiles of Student's t for two-sided 95 % intervals (Abramowitz and Stegun, 26.7.5); freedom of 2 or more."""
    n, z = np.maximum(freedom, 1.0), Z95
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return np.asarray(z + first / n + second / n**2 + third / n**3, np.float64)
