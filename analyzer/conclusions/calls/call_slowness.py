"""What calls took longer because they were watched, on CPython 3.11.

While a window is open there, the interpreter runs each of its instructions the slow way: a function that does nothing
but Python takes up to twice its time, one that is in C code hardly more. Windows are a few parts of a hundred of the
time, and samples are taken all the time. So the time of a function is known from samples without that, and how often
it was called is known: what its calls took in windows is brought to the time that its samples tell. Calls that are
longer than windows are never seen to end; their mean is what samples tell.

Of few samples little is learned. The slowdowns of functions are therefore taken to be like one another (a gamma
distribution around that of all functions together), and samples to come by chance (Poisson): the mean of what is then
likely after the samples were seen has both (Gelman and others, Bayesian Data Analysis, 2013, section 2.6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...recording.call_tree import CallTree
from ...recording.opened import Recording
from ...recording.tree import NOTHING
from ...samples.nodes import NodeSums
from .call_estimates import Z95, CallEstimates
from .call_facts import BUCKETS, CallFacts, Floats, Ids, added

LIKE_SAMPLES = 10.0
"""That functions are like one another counts as much as so many samples of each."""
FEWEST_CALLS = 20.0
"""Of fewer calls the one that goes on would count for much: the mean is not that of samples then."""
SLOWED = "3.11."
"""Versions on which all functions are watched in windows."""
FIELDS = {
    "": ("ended", "total_ns", "total_squared", "longest_ns"),
    "own_": ("own_ended", "own_ns", "own_squared", "own_longest_ns"),
}
"""Columns about times: whole and own ones."""


@dataclass(frozen=True)
class SampledTimes:
    """By function of the call tree, in ns: CPU time and waiting, its own and with all that it called.

    ``sample_ns`` is the CPU time that a sample stands for.
    """

    own: Floats
    whole: Floats
    sample_ns: float


def sampled_times(recording: Recording, tree: CallTree, sums: NodeSums) -> SampledTimes | None:
    """What samples tell; None if no process was slowed while calls were watched, or there are no samples."""
    versions = [text for text in recording.table("processes").column("python_version").to_pylist() if text]
    samples, cpu = (float(sums.nodes[:, sums.column(name)].sum()) for name in ("samples", "cpu_ns"))
    if not versions or not all(text.startswith(SLOWED) for text in versions) or samples <= 0 or cpu <= 0:
        return None
    time = sums.nodes[:, [sums.column(name) for name in ("cpu_ns", "wait_ns", "cpu_wait_ns")]].sum(axis=1)
    known = tree.function != NOTHING
    count = len(tree.function_names)
    own, whole = (
        added(tree.function[known], values[known], count) for values in (time, tree.below(time[:, None])[:, 0])
    )
    return SampledTimes(own, whole, cpu / samples)


@dataclass(frozen=True)
class Slowness:
    """By function that was called, of its whole and its own times ("" and "own_").

    ``factor`` is what they are to be multiplied by, ``error`` the part of a mean that it may be off (95 %), ``mean_s``
    the mean that samples tell, NaN where they are few.
    """

    factor: dict[str, Floats]
    error: dict[str, Floats]
    mean_s: dict[str, Floats]


def slowness(facts: CallFacts, estimates: CallEstimates, function: Ids, called: Ids, sampled: SampledTimes) -> Slowness:
    """``function`` is by group of the facts, its place in ``called``, the functions' numbers in the call tree."""
    count = len(called)
    period = function[facts.group]
    calls = added(function, np.nan_to_num(estimates.calls), count)
    spread = np.sqrt(added(function, np.nan_to_num(estimates.high - estimates.low) ** 2, count)) / 2
    factor, error, mean_s = {}, {}, {}
    for prefix, true in (("", sampled.whole[called]), ("own_", sampled.own[called])):
        ended, total, _, _ = FIELDS[prefix]
        number, time = (added(period, facts.sums[name] * estimates.weight, count) for name in (ended, total))
        with np.errstate(divide="ignore", invalid="ignore"):
            watched = np.where(number > 0, calls * time / number, 0.0)
            usual = float(true[watched > 0].sum() / watched.sum()) if watched.sum() > 0 else 1.0
            usual = usual if usual > 0 else 1.0
            seen, expected = true / sampled.sample_ns, watched / sampled.sample_ns
            factor[prefix] = np.where(watched > 0, (LIKE_SAMPLES + seen) / (LIKE_SAMPLES / usual + expected), 1.0)
            told = seen / (LIKE_SAMPLES + seen)
            by_calls = np.where(calls > 0, told * spread / calls, 0.0)
            mean_s[prefix] = np.where((calls >= FEWEST_CALLS) & (seen >= LIKE_SAMPLES), true / calls / 1e9, np.nan)
        error[prefix] = np.hypot(Z95 / np.sqrt(LIKE_SAMPLES + seen), by_calls)
    return Slowness(factor, error, mean_s)


def without_slowness(facts: CallFacts, slow: Slowness, function: Ids) -> CallFacts:
    """The facts with times as they are while nothing is watched."""
    period = function[facts.group]
    sums, longest = dict(facts.sums), dict(facts.longest)
    times = {"": facts.times, "own_": facts.own_times}
    for prefix, (_, total, squared, most) in FIELDS.items():
        factor = slow.factor[prefix][period]
        sums[total] = sums[total] * factor
        sums[squared] = sums[squared] * factor**2
        longest[most] = longest[most] * factor
        times[prefix] = shifted(times[prefix], factor)
    return replace(facts, sums=sums, longest=longest, times=times[""], own_times=times["own_"])


def with_samples(means: dict[str, Floats], prefix: str, slow: Slowness) -> dict[str, Floats]:
    """Means (``mean_s``, ``mean_s_low``, ``mean_s_high``) with what samples tell of them.

    The intervals are wider, as the slowness may be off. A mean that is not known, since calls were longer than windows,
    is that of the samples.
    """
    mean = np.where(np.isnan(means["mean_s"]), slow.mean_s[prefix], means["mean_s"])
    more = mean * slow.error[prefix]
    below, above = (
        np.where(np.isnan(means["mean_s"]), 0.0, np.abs(means["mean_s"] - means[f"mean_s_{end}"]))
        for end in ("low", "high")
    )
    return {
        **means,
        "mean_s": mean,
        "mean_s_low": np.maximum(mean - np.hypot(below, more), 0.0),
        "mean_s_high": mean + np.hypot(above, more),
    }


def shifted(histogram: Floats, factor: Floats) -> Floats:
    """Calls by bucket (powers of two) after their times were multiplied by ``factor``, one for each row.

    The calls of a bucket go to the two that it then lies in. Times of 0 stay.
    """
    found = np.zeros_like(histogram)
    found[:, 0] = histogram[:, 0]
    steps = np.log2(np.maximum(factor, 2.0**-BUCKETS))
    lower = np.floor(steps)
    row, bucket = np.nonzero(histogram[:, 1:])
    bucket = bucket + 1
    part = (steps - lower)[row]
    for offset, share in ((0, 1 - part), (1, part)):
        place = np.clip(bucket + lower[row].astype(np.int64) + offset, 1, BUCKETS - 1)
        np.add.at(found, (row, place), histogram[row, bucket] * share)
    return found
