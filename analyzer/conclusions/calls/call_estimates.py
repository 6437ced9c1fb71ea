"""How often functions were called, estimated from the intervals in which they were watched.

What was seen is exact. Of the rest of the time the drawn intervals tell. The time of the program is cut into strata,
and in each a moment is drawn; a function that is not watched then is watched from there on, for a length that was
settled before. So an interval's pace (calls by CPU time of the process, less the time that watching itself took) has
the mean pace at unwatched moments as its mean, whatever the program does; it stands for the length of its stratum over
the probability that the function took part. The mean of the paces, weighted by what they stand for, times the CPU time
that was not watched, is the number of calls that were not seen (the ratio estimate of Sarndal, Swensson and Wretman,
Model Assisted Survey Sampling, 1992, sections 5.7 and 5.6 for its variance). Every period that has drawn intervals of
its own is estimated by itself, as strata are (Cochran, Sampling Techniques, 1977, chapter 5).

A ratio of few samples is off on average, and its variance tells too little. Where nearly all that is known of a
period's calls comes from a few samples (calls that come in bursts), the periods of a function are therefore estimated
together, as Cochran does where strata are small (section 6.11). Such a sum is skewed: the samples that would have told
of more are those that are missing, and the variance is then too small as well. So intervals reach up as far as those of
a sum of rare events of different weights do (Fay and Feuer, Confidence intervals for directly standardized rates,
Statistics in Medicine 16, 1997): the quantile of a gamma distribution with one event more.

The ratio of all calls to the whole length of the intervals would be wrong where the pace changes: how long an interval
is follows from the pace before it. A rate by the clock on the wall would be that of the moments at which the program
has a processor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .call_facts import CallFacts, Floats

Z95 = 1.959963984540054
FEWEST_INTERVALS = 3
"""Drawn intervals without which nothing is said of how far an estimate may be off."""
FEWEST_TELLING = 6.0
"""Samples, as many as if each told of as many calls, without which a period is not estimated by itself."""
COST_DEVIATION = 0.4
"""What watching takes in a program is known to within this part of it (a standard deviation): the way into the recorder
is measured once, in a loop, and taken to be slowed in the program as much as the recorder's own code is. With
tests/oracle/programs/known_rates.py it took 0.89 times what was counted, with a deviation of 0.5 that holds what was
drawn as well, in 6 runs on CPython 3.12 and a busy machine. Recordings of earlier writers counted 1.2 times the loop's,
and it took 1.16 to 1.53 times that."""


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
    alone = (sums["intervals"] >= FEWEST_INTERVALS) & ~_sparse(facts, unseen)[facts.group]
    beyond = _beyond(facts, unseen, alone, _rate(by))
    expected = facts.by_group(beyond)
    by_chance = _by_chance(facts, by, unseen, alone)
    cost = facts.by_group(COST_DEVIATION * np.where(alone, _of_cost(sums), _of_cost(by)[facts.group]) * beyond)
    chance = np.hypot(by_chance, Z95 * np.sqrt(np.nan_to_num(expected)))
    below = expected - np.hypot(chance, Z95 * cost)
    above = expected + np.hypot(np.fmax(chance, _reach_up(expected, chance / Z95)), Z95 * cost)
    whole = facts.by_group(np.maximum(facts.span_ns - sums["watched_ns"], 0.0)) <= 0
    seen = by["calls"]
    few = by["intervals"] < FEWEST_INTERVALS
    return CallEstimates(
        calls=np.where(whole, seen, seen + expected),
        low=np.where(whole | few | np.isnan(below), seen, seen + np.maximum(below, 0.0)),
        high=np.where(whole, seen, np.where(few, np.nan, seen + above)),
        weight=_weights(sums["calls"], beyond),
    )


def _rate(sums: dict[str, Floats]) -> Floats:
    """Calls per ns of CPU time that was not watched."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums["drawn_ns"] > 0, sums["drawn_calls"] / sums["drawn_ns"], np.nan)


def _sparse(facts: CallFacts, unseen: Floats) -> NDArray[np.bool_]:
    """Groups with most of their unseen time in periods of whose calls too few samples tell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # As many samples as if all told of as many calls (Kish, Survey Sampling, 1965, 11.2).
        telling = np.nan_to_num(facts.sums["drawn_calls"] ** 2 / facts.sums["drawn_calls_squared"], posinf=0.0)
    called = np.where(telling > 0, unseen, 0.0)
    return facts.by_group(np.where(telling < FEWEST_TELLING, called, 0.0)) > 0.5 * facts.by_group(called)


def _reach_up(expected: Floats, deviation: Floats) -> Floats:
    """How far up a 95 % interval reaches where the sum is one of rare events (Fay and Feuer 1997).

    The quantile of the gamma distribution is Wilson and Hilferty's.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        events = (expected / deviation) ** 2
        more = events + 1
        high = expected * more / events * (1 - 1 / (9 * more) + Z95 / (3 * np.sqrt(more))) ** 3
    return np.where(np.isfinite(high), high - expected, 0.0)


def _of_cost(sums: dict[str, Floats]) -> Floats:
    """How many times as much a rate is off as what watching took is off."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums["drawn_calls"] > 0, sums["drawn_cost_calls"] / sums["drawn_calls"], 0.0)


def _beyond(facts: CallFacts, unseen: Floats, alone: NDArray[np.bool_], rate: Floats) -> Floats:
    """Calls that are expected in the unseen part of each period: at its own rate where it has drawn intervals."""
    own = _rate(facts.sums)
    best = np.where(alone & ~np.isnan(own), own, rate[facts.group])
    return np.where(unseen > 0, unseen * best, 0.0)


def _by_chance(facts: CallFacts, by: dict[str, Floats], unseen: Floats, alone: NDArray[np.bool_]) -> Floats:
    """How far the calls of each group may be off since intervals were drawn, at 95 %.

    Periods that are estimated by themselves are off by chance each for itself, all others of a group together. The
    degrees of freedom of the sum are Satterthwaite's.
    """
    own, own_freedom = _variance(facts.sums)
    own = np.where(alone, own * unseen**2, 0.0)
    rest, rest_freedom = _variance(by)
    others = facts.by_group(np.where(alone, 0.0, unseen))
    rest = np.where(others > 0, rest * others**2, 0.0)
    variance = facts.by_group(own) + rest
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variance**2 / (facts.by_group(own**2 / own_freedom) + rest**2 / rest_freedom)
    return student(np.where(np.isfinite(freedom), freedom, np.inf)) * np.sqrt(variance)


def _variance(sums: dict[str, Floats]) -> tuple[Floats, Floats]:
    """Of the rate, at least that of calls that come by chance; and its degrees of freedom."""
    length = sums["drawn_ns"]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = sums["drawn_calls"] / length
        squares = sums["drawn_calls_squared"] - 2 * rate * sums["drawn_calls_ns"] + rate**2 * sums["drawn_ns_squared"]
        # As many intervals that all stand for as much tell as much (Kish, Survey Sampling, 1965, 11.2).
        count = np.minimum(length**2 / sums["drawn_ns_squared"], sums["intervals"])
        freedom = np.where(np.isfinite(count), np.maximum(count - 1, 1.0), 1.0)
        clusters = np.maximum(squares, 0.0) * (freedom + 1) / freedom / length**2
        variance = np.maximum(clusters, sums["drawn_chance"] / length**2)
    return np.where(np.isfinite(variance), variance, 0.0), freedom


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
