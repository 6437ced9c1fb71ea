"""Numbers and durations of calls: recorded ones added up, and estimates for the time in which nothing was watched.

The recorded calls (tables ``calls`` and ``call_times``) are exact. The drawn intervals tell about the rest of the time.
The time of the program is cut into strata, and in each a moment is drawn; a function that is not watched then is
watched from there on, for a length that was settled before. So an interval's pace (calls by CPU time of the process,
less the time that watching itself took) has the mean pace at unwatched moments as its mean, whatever the program does;
it stands for the length of its stratum over the probability that the function took part. The mean of the paces,
weighted by what they stand for, times the CPU time that was not watched, is the number of unrecorded calls (the ratio
estimate of Sarndal, Swensson and Wretman, Model Assisted Survey Sampling, 1992, sections 5.7 and 5.6 for its variance).
Every period that has drawn intervals of its own is estimated by itself, as strata are (Cochran, Sampling Techniques,
1977, chapter 5).

A ratio of few samples is biased, and its variance is too small. Where nearly all that is known of a period's calls
comes from a few samples (calls that come in bursts), the periods of a function are therefore estimated together, as
Cochran does where strata are small (section 6.11). Such a sum is skewed: the samples that would have shown more are
those that are missing, and the variance is then too small as well. So intervals reach up as far as those of a sum of
rare events of different weights do (Fay and Feuer, Confidence intervals for directly standardized rates, Statistics in
Medicine 16, 1997): the quantile of a gamma distribution with one event more.

The ratio of all calls to the whole length of the intervals would be wrong where the pace changes: the length of an
interval follows from the pace before it. A rate by the clock on the wall would be that of the moments at which the
program has a processor.

``mean_times`` gives mean times of calls, their standard deviation, and the error of the means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids, numbers

from ...recording.call_tree import NOTHING, CallTree
from ...recording.opened import Recording
from ...recording.time_window import Window
from ...statistics.distributions import gamma_factor, t_quantile
from ...statistics.grouped_sums import summed
from ...statistics.intervals import CONFIDENCE, Z95

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

DIGITS, EIGHTHS = 64, 8
BUCKETS = DIGITS * EIGHTHS
"""Of histograms: the number of binary digits of a time in ns, more than any recorder writes, times the eighths of a
power of two. Recordings of versions before 1.5 have whole powers of two, each in the place of its first eighth."""

_SUMS = (
    *("watched_ns", "cpu_ns", "watched_cpu_ns", "calls", "ended", "total_ns", "total_squared"),
    *("own_begun", "own_ended", "own_ns", "own_squared"),
    *("intervals", "drawn_ns", "drawn_calls", "drawn_cost_calls", "drawn_chance"),
    *("drawn_calls_squared", "drawn_calls_ns", "drawn_ns_squared"),
    *("counted_ns", "counted_cpu_ns", "counted_calls"),
)
_MOST = ("longest_ns", "own_longest_ns")
_ROWS = ("time_ns", "since_ns", "process", "stack")


@dataclass(frozen=True)
class Histogram:
    """Numbers of calls: one entry for each period and bucket that is not empty, in every array."""

    period: Ids
    bucket: Ids
    calls: Floats


@dataclass(frozen=True)
class CallFacts:
    """Periods of observation, one entry for each in every array; ``group`` says which belong to one function.

    ``process`` and ``function`` are by group. ``span_ns`` is the length of a period, ``sums`` and ``longest`` have the
    columns of the table by name. ``counts`` says where all calls of the process were counted in windows (``counted_ns``
    is not null), ``eighths`` whether buckets of ``times`` and ``own_times`` are eighths of powers of two.
    """

    group: Ids
    process: Ids
    function: Ids
    span_ns: Floats
    sums: dict[str, Floats]
    longest: dict[str, Floats]
    counts: NDArray[np.bool_]
    times: Histogram
    own_times: Histogram
    eighths: bool
    yardsticks: CallFacts | None = None
    """Of events that are known exactly and were counted in windows as well: calls of functions that were watched all
    the time, and writes to dictionaries, which have no function."""

    def by_group(self, values: Floats) -> Floats:
        """Sums over the periods of each group."""
        return summed(self.group, values, len(self.function))


def read_call_facts(
    recording: Recording, tree: CallTree, window: Window, processes: NDArray[np.bool_] | None
) -> CallFacts | None:
    """The periods that ended in the window, of ``processes`` (None: all); None if no calls were recorded.

    Errors:
        FormatError: the recording is damaged.
    """
    if recording.rows("calls") == 0:
        return None
    rows = _read(recording, "calls", (*_ROWS, *_SUMS, *_MOST))
    function = _functions(rows, tree)
    process = ids(rows.column("process"))
    kept = window.contains(ids(rows.column("time_ns")))
    if processes is not None:
        kept &= processes[process]
    of_functions = kept & (function != NOTHING)
    span = _span(rows)
    exact = kept & (ids(rows.column("counted_ns")) > 0) & (_sound(rows, "watched_ns") >= span)
    facts = _facts(rows.filter(pa.array(of_functions)), process[of_functions], function[of_functions], recording)
    return replace(facts, yardsticks=_facts(rows.filter(pa.array(exact)), process[exact], function[exact], None))


def _span(rows: pa.Table) -> Floats:
    ends = ids(rows.column("time_ns")).astype(np.float64)
    return np.maximum(ends - ids(rows.column("since_ns")).astype(np.float64), 0.0)


def _facts(rows: pa.Table, process: Ids, function: Ids, recording: Recording | None) -> CallFacts:
    """The facts of such rows, with their histograms if there is a ``recording``."""
    groups, group = np.unique(np.stack([process, function], axis=1), axis=0, return_inverse=True)
    none = Histogram(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    times, own_times, eighths = _histograms(recording, rows) if recording else (none, none, False)
    return CallFacts(
        group=group.reshape(-1).astype(np.int64),
        process=groups[:, 0],
        function=groups[:, 1],
        span_ns=_span(rows),
        sums={name: _sound(rows, name) for name in _SUMS},
        longest={name: _sound(rows, name) for name in _MOST},
        counts=ids(rows.column("counted_ns")) > 0,
        times=times,
        own_times=own_times,
        eighths=eighths,
    )


def _read(recording: Recording, name: str, columns: Sequence[str]) -> pa.Table:
    schema = recording.specification.tables[name].schema
    schema = pa.schema([schema.field(column) for column in columns])
    return pa.Table.from_batches(recording.batches(name, columns), schema=schema)


def _functions(rows: pa.Table, tree: CallTree) -> Ids:
    """The function of each row, NOTHING where it could not be stored."""
    return np.append(tree.function, NOTHING)[ids(rows.column("stack"))]


def _sound(rows: pa.Table, name: str) -> Floats:
    """A column as floating point; invalid numbers are 0: the file may come from anywhere."""
    values = numbers(rows.column(name)).astype(np.float64)
    return np.where(np.isfinite(values) & (values >= 0), values, 0.0)


def _histograms(recording: Recording, rows: pa.Table) -> tuple[Histogram, Histogram, bool]:
    """The histograms of inclusive times and of own ones; and whether their buckets are eighths of powers of two."""
    times = _read(recording, "call_times", ("time_ns", "process", "stack", "own", "bucket", "eighth", "calls"))
    names = ("process", "stack", "time_ns")
    periods = [(ids(rows.column(name))) for name in names]
    owners = [(ids(times.column(name))) for name in names]
    place = _place(periods, owners)
    eighths = times.column("eighth").null_count < times.num_rows
    eighth = np.clip(_sound(times, "eighth").astype(np.int64) - 1, 0, EIGHTHS - 1)
    bucket = np.minimum(ids(times.column("bucket")), DIGITS - 1) * EIGHTHS + eighth
    own = numbers(times.column("own")).astype(np.bool_)
    calls = _sound(times, "calls")
    total, of_own = (
        Histogram(place[mine], bucket[mine], calls[mine])
        for mine in ((~own) & (place != NOTHING), own & (place != NOTHING))
    )
    return total, of_own, eighths


def _place(periods: Sequence[Ids], owners: Sequence[Ids]) -> Ids:
    """The period that each histogram's row belongs to, NOTHING if there is none."""
    count = len(periods[0])
    both = np.stack([np.concatenate(pair) for pair in zip(periods, owners, strict=True)], axis=1)
    _, key = np.unique(both, axis=0, return_inverse=True)
    key = key.reshape(-1)
    first = np.full(int(key.max(initial=-1)) + 1, NOTHING, np.int64)
    first[key[:count][::-1]] = np.arange(count - 1, -1, -1)
    return first[key[count:]]


FEWEST_INTERVALS = 3
"""Fewest drawn intervals for an interval of confidence."""
FEWEST_TELLING = 6.0
"""Fewest effective samples for a period to be estimated by itself."""
NO_EVENTS = -math.log(0.025)
COST_DEVIATION = 0.4
"""What watching takes in a program is known to within this part of it (a standard deviation): the way into the recorder
is measured once, in a loop, and taken to be slowed in the program as much as the recorder's own code is. With
tests/oracle/programs/known_rates.py it took 0.89 times what was counted, with a deviation of 0.5 that holds what was
drawn as well, in 6 runs on CPython 3.12 and a busy machine. Recordings of earlier writers counted 1.2 times the loop's,
and it took 1.16 to 1.53 times that."""


COUNTING_DEVIATION = 0.25
"""The same where calls are counted: an event of a counted call is little more than what the interpreter does to come to
it, and that is measured by the way in which calls are made, alone and amid other work. In eight programs on a busy
machine it was 0.9 to 1.45 times what was counted; more in calls that are hundreds deep."""
UNLIKE = 0.1
"""By how much (a standard deviation) what counting a function takes is unlike what counting took in the windows that
the yardstick is of, if these are others. Of functions that are called in all windows alike, and a yardstick that is in
all of them alike, that is nothing: what the whole window lost is known."""
MOST_COST = 0.9
"""The part of a window that counting is taken to have had at most."""
TOO_WIDE = 4.0
"""A number is not told whose interval spans more than this factor: the interval is what is known."""


@dataclass(frozen=True)
class CallEstimates:
    """Estimated calls by group of ``CallFacts``; NaN is unknown. ``weight``, by period: calls per timed call.

    ``exact`` are those that were watched, or counted, all the time.
    """

    calls: Floats
    low: Floats
    high: Floats
    weight: Floats
    exact: NDArray[np.bool_]


def estimate_calls(facts: CallFacts) -> CallEstimates:
    """Estimates the calls of every group."""
    sums = _seen(facts)
    unseen = np.where(facts.span_ns > sums["watched_ns"], np.maximum(sums["cpu_ns"] - sums["watched_cpu_ns"], 0.0), 0.0)
    by = {name: facts.by_group(values) for name, values in sums.items()}
    alone = (sums["intervals"] >= FEWEST_INTERVALS) & ~_sparse(facts, unseen)[facts.group]
    beyond = _beyond(facts, unseen, alone, _rate(by))
    of_cost = np.where(alone, _of_cost(sums), _of_cost(by)[facts.group])
    more, deviation = _corrected(facts, of_cost, _unevenness(by)[facts.group])
    uncorrected = facts.by_group(beyond)
    beyond = more * beyond
    expected = facts.by_group(beyond)
    by_chance = _ratio(expected, uncorrected) * _by_chance(facts, by, unseen, alone)
    cost = facts.by_group(deviation * beyond)
    chance = np.hypot(by_chance, Z95 * np.sqrt(np.nan_to_num(expected)))
    below = expected - np.hypot(chance, Z95 * cost)
    above = expected + np.hypot(np.fmax(chance, _reach_up(expected, chance / Z95)), Z95 * cost)
    whole = facts.by_group(np.maximum(facts.span_ns - sums["watched_ns"], 0.0)) <= 0
    counted = by["calls"]
    few = by["intervals"] < FEWEST_INTERVALS
    none = by["drawn_calls"] <= 0
    above = np.where(none, _reach_of_none(by, facts.by_group(unseen)), above)
    by_windows = facts.by_group(facts.counts.astype(np.float64)) > 0
    # Calls come in bursts: windows without any say nothing of those between them.
    above = np.where(none & by_windows, np.nan, above)
    calls = np.where(whole, counted, counted + expected)
    low = np.where(whole | few | np.isnan(below), counted, counted + np.maximum(below, 0.0))
    high = np.where(whole, counted, np.where(few, np.nan, counted + above))
    calls = np.where(by_windows & ~(high <= TOO_WIDE * low), np.nan, calls)
    return CallEstimates(calls, low, high, weight=_weights(facts.sums["calls"], sums["calls"], beyond), exact=whole)


def _ratio(values: Floats, by: Floats) -> Floats:
    """Values by others; 1 where that is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = values / by
    return np.where(np.isfinite(ratio), ratio, 1.0)


def _corrected(facts: CallFacts, of_cost: Floats, unevenness: Floats) -> tuple[Floats, Floats]:
    """The factor of the expected calls of each period, and the deviation that is left, as a part of them.

    The part p of the windows was taken to have been the counting; it was k times that, by the process's yardstick.
    ``unevenness``, by period: how unlike each other the windows are in calls of its function.
    """
    part = of_cost / (1 + of_cost)
    scale, deviation = np.ones(len(part)), np.full(len(part), COST_DEVIATION)
    process = facts.process[facts.group]
    scale[facts.counts], deviation[facts.counts] = 1.0, COUNTING_DEVIATION
    for number, (k, off, uneven) in cost_scales(facts.yardsticks).items():
        mine = facts.counts & (process == number)
        unlike = UNLIKE * np.minimum(np.hypot(unevenness[mine], uneven), 1.0)
        scale[mine], deviation[mine] = k, np.hypot(off, unlike)
    left = 1 - np.minimum(scale * part, MOST_COST)
    return (1 - part) / left, deviation * part / left


def _unevenness(sums: dict[str, Floats]) -> Floats:
    """The deviation of the samples' calls from those of the mean pace, as a part of them, by group; at most 1.

    That of calls that come by chance is not in it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        of_chance = sums["drawn_chance"] / sums["drawn_calls"] ** 2
        variance = _variance(sums)[0] * (sums["drawn_ns"] / sums["drawn_calls"]) ** 2 - of_chance
        count = np.minimum(sums["drawn_ns"] ** 2 / sums["drawn_ns_squared"], sums["intervals"])
        unevenness = np.sqrt(np.maximum(variance, 0.0) * count)
    return np.where(np.isfinite(unevenness), np.minimum(unevenness, 1.0), 1.0)


def cost_scales(yardsticks: CallFacts | None) -> dict[int, tuple[float, float, float]]:
    """Cost of counting by process: a multiple of the measured one, its deviation, and how uneven the yardstick is.

    A yardstick's events outside of the windows are known. That they are estimated as others is what counting took
    wrongly measured, and chance: the error of the estimate. The yardstick of each process that tells most is combined
    with what is known without it, by their variances (Deville and Sarndal, Calibration Estimators in Survey Sampling,
    Journal of the American Statistical Association 87, 1992, make estimates agree with totals that are known).
    """
    if yardsticks is None or len(yardsticks.function) == 0:
        return {}
    exact = yardsticks.by_group(yardsticks.sums["calls"] - yardsticks.sums["counted_calls"])
    facts = replace(
        yardsticks, sums={**yardsticks.sums, "watched_ns": np.zeros(len(yardsticks.group))}, yardsticks=None
    )
    sums = _seen(facts)
    unseen = np.maximum(sums["cpu_ns"] - sums["watched_cpu_ns"], 0.0)
    by = {name: facts.by_group(values) for name, values in sums.items()}
    alone = (sums["intervals"] >= FEWEST_INTERVALS) & ~_sparse(facts, unseen)[facts.group]
    beyond = np.nan_to_num(_beyond(facts, unseen, alone, _rate(by)))
    expected = facts.by_group(beyond)
    of_cost = _ratio(facts.by_group(np.where(alone, _of_cost(sums), _of_cost(by)[facts.group]) * beyond), expected)
    deviation = np.hypot(_by_chance(facts, by, unseen, alone) / Z95, np.sqrt(expected))
    unevenness = _unevenness(by)
    scales: dict[int, tuple[float, float, float]] = {}
    for group in np.flatnonzero((expected > 0) & (exact > 0) & (of_cost > 0) & (_telling(by) >= FEWEST_TELLING)):
        part = float(of_cost[group] / (1 + of_cost[group]))
        ratio = float(expected[group] / exact[group])
        # Windows that missed most of the events differ as little as they have few: by chance they would have had all.
        off = (1 - part) / part * max(ratio, 1.0) * float(deviation[group] / expected[group])
        scale = (1 - (1 - part) * ratio) / part
        process = int(facts.process[group])
        if process not in scales or off < scales[process][1]:
            scales[process] = (scale, off, float(unevenness[group]))
    return {process: (*_with_prior(scale, off), uneven) for process, (scale, off, uneven) in scales.items()}


def _with_prior(scale: float, off: float) -> tuple[float, float]:
    """Both measures of what counting takes, by their variances.

    Where they differ by more than both deviations explain, something else is off, and the deviation of the mean is that
    much larger (Birge, Physical Review 40, 1932).
    """
    both = math.hypot(COUNTING_DEVIATION, off)
    weight = (COUNTING_DEVIATION / both) ** 2
    birge = max(abs(scale - 1) / both, 1.0)
    return 1 + weight * (scale - 1), birge * COUNTING_DEVIATION * off / both


def _seen(facts: CallFacts) -> dict[str, Floats]:
    """The sums, with what was counted in place of what was watched, unless the function was watched all the time."""
    sums = facts.sums
    counted = facts.counts & (sums["watched_ns"] < facts.span_ns)
    pairs = (("calls", "counted_calls"), ("watched_ns", "counted_ns"), ("watched_cpu_ns", "counted_cpu_ns"))
    return {**sums, **{name: np.where(counted, sums[of_windows], sums[name]) for name, of_windows in pairs}}


def _reach_of_none(sums: dict[str, Floats], unseen: Floats) -> Floats:
    """Upper reach of the interval where no drawn interval had a call: so many calls may have gone unrecorded.

    Of a Poisson process that had no event, fewer than NO_EVENTS were to be expected, at 97.5 %. What was seen outside
    of drawn intervals is no sample, and tells that the pace may be as high.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            sums["watched_cpu_ns"] > 0, unseen * (sums["calls"] + NO_EVENTS) / sums["watched_cpu_ns"], np.nan
        )


def _rate(sums: dict[str, Floats]) -> Floats:
    """Calls per ns of CPU time that was not watched."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums["drawn_ns"] > 0, sums["drawn_calls"] / sums["drawn_ns"], np.nan)


def _telling(sums: dict[str, Floats]) -> Floats:
    """As many samples as if all told of as many calls (Kish, Survey Sampling, 1965, 11.2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(sums["drawn_calls"] ** 2 / sums["drawn_calls_squared"], posinf=0.0)


def _sparse(facts: CallFacts, unseen: Floats) -> NDArray[np.bool_]:
    """Groups with most of their unwatched time in periods with too few samples of calls."""
    telling = _telling(facts.sums)
    called = np.where(telling > 0, unseen, 0.0)
    return facts.by_group(np.where(telling < FEWEST_TELLING, called, 0.0)) > 0.5 * facts.by_group(called)


def _reach_up(expected: Floats, deviation: Floats) -> Floats:
    """Upper reach of a 95 % interval where the sum is one of rare events (Fay and Feuer 1997)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        events = (expected / deviation) ** 2
        more = events + 1
        high = expected * more / events * gamma_factor(more, Z95)
    return np.where(np.isfinite(high), high - expected, 0.0)


def _of_cost(sums: dict[str, Floats]) -> Floats:
    """Relative error of a rate, as a multiple of the relative error of the cost of watching."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums["drawn_calls"] > 0, sums["drawn_cost_calls"] / sums["drawn_calls"], 0.0)


def _beyond(facts: CallFacts, unseen: Floats, alone: NDArray[np.bool_], rate: Floats) -> Floats:
    """Calls that are expected in the unseen part of each period: at its own rate where it has drawn intervals."""
    own = _rate(facts.sums)
    best = np.where(alone & ~np.isnan(own), own, rate[facts.group])
    return np.where(unseen > 0, unseen * best, 0.0)


def _by_chance(facts: CallFacts, by: dict[str, Floats], unseen: Floats, alone: NDArray[np.bool_]) -> Floats:
    """Error of the calls of each group because intervals were drawn at random, at 95 %.

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
    return _student(np.where(np.isfinite(freedom), freedom, np.inf)) * np.sqrt(variance)


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


def _weights(timed: Floats, seen: Floats, beyond: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((timed > 0) & (seen > 0) & ~np.isnan(beyond), (seen + beyond) / timed, 1.0)


def _student(freedom: Floats) -> Floats:
    """The t of two-sided 95 % intervals; a variance has one degree of freedom at least, whatever its samples weigh."""
    return t_quantile(1 - CONFIDENCE, np.maximum(freedom, 1.0))


UNENDED = 0.01
"""If more than this part of the calls have no recorded end, the mean is unknown: the longest are missing."""
FEWEST_PERIODS = 4
"""Fewest periods whose differences say something about the variance."""


def mean_times(
    function: Ids,
    count: int,
    weight: Floats,
    ended: Floats,
    total_ns: Floats,
    squared: Floats,
    *,
    begun: Floats,
    exact: NDArray[np.bool_],
) -> dict[str, Floats]:
    """mean_s, mean_s_low, mean_s_high and sd_s of each of ``count`` functions; NaN is unknown.

    ``function`` to ``squared`` are by period: its function, what one seen call stands for, and the sums of the calls
    that ended. ``begun`` is by function, weighted likewise. Where ``exact``, all calls were seen to
    begin and to end. Else the interval has the larger of two variances: that of the calls, as if each had been drawn
    by itself, and that among the periods, since calls that follow one another are alike.
    """

    def whole(values: Floats) -> Floats:
        return summed(function, values, count)

    number = whole(weight * ended)
    with np.errstate(divide="ignore", invalid="ignore"):
        # No call takes no time at all: what watching was taken to cost is all that there was.
        usable = (number > 0) & (begun - number <= UNENDED * begun) & (whole(total_ns) > 0)
        mean = np.where(usable, whole(weight * total_ns) / number, np.nan)
        variance = np.maximum(whole(weight * squared) / number - mean**2, 0.0)
        drawn = number**2 / whole(weight**2 * ended)
        error = variance / np.maximum(drawn - 1, 1e-9)
        periods = whole(np.where(ended > 0, 1.0, 0.0))
        off = weight * (total_ns - mean[function] * ended)
        among = whole(np.nan_to_num(off) ** 2) * periods / np.maximum(periods - 1, 1) / number**2
    some = periods >= FEWEST_PERIODS
    several = some & (among > error)
    reach = _student(np.where(several, periods, drawn) - 1) * np.sqrt(np.where(several, among, error))
    reach = np.where(exact, 0.0, np.where(drawn > 1, reach, np.nan))
    return {
        "mean_s": mean / 1e9,
        "mean_s_low": np.maximum(mean - reach, 0.0) / 1e9,
        "mean_s_high": (mean + reach) / 1e9,
        "sd_s": np.where(usable & (number > 1), np.sqrt(variance), np.nan) / 1e9,
    }
