"""Calls of functions: how many there were, and how long they took, from rows whose truth is known."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer.conclusions.calls.call_columns import quantiles
from tachograph.analyzer.conclusions.calls.call_estimates import BUCKETS, EIGHTHS, mean_times
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.profile.question import Question
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.report_data.numbers import short_count, short_time

from .recordings import MS, START, Builder

SECOND = 1000 * MS


def period(builder: Builder, stack: int, second: float, length: float, **values: Any) -> dict[str, Any]:
    """A row of ``calls``, watched all the time unless ``values`` say otherwise."""
    end = START + round(second * SECOND)
    row: dict[str, Any] = dict.fromkeys(
        (
            *("calls", "ended", "total_ns", "longest_ns", "own_begun", "own_ended", "own_ns", "own_longest_ns"),
            *("intervals", "drawn_ns"),
        ),
        0,
    )
    sums = ("calls", "cost_calls", "chance", "calls_squared", "calls_ns", "ns_squared")
    row |= dict.fromkeys(("total_squared", "own_squared", *(f"drawn_{name}" for name in sums)), 0.0)
    row |= {"time_ns": end, "since_ns": end - round(length * SECOND), "process": 0, "stack": stack}
    row |= {"watched_ns": round(length * SECOND), **values}
    row = {"cpu_ns": max(round(length * SECOND), 0), "watched_cpu_ns": row["watched_ns"]} | row
    builder.rows["calls"].append(row)
    return row


def times(builder: Builder, row: dict[str, Any], buckets: dict[int, int], *, own: bool = False) -> None:
    for bucket, calls in buckets.items():
        key = {name: row[name] for name in ("time_ns", "process", "stack")}
        builder.rows["call_times"].append({**key, "own": own, "bucket": bucket, "calls": calls})


STANDS_NS = 31_250_000.0
"""What each drawn interval stands for."""


def drawn(intervals: Iterable[tuple[int, float]], cost: float = 0) -> dict[str, Any]:
    """The sums over intervals of (calls, seconds); watching took ``cost`` seconds of each."""
    found = list(intervals)
    by_call = [STANDS_NS / ((seconds - cost) * SECOND) for _, seconds in found]
    calls = [each * count for each, (count, _) in zip(by_call, found, strict=True)]
    return {
        "intervals": len(found),
        "drawn_ns": round(STANDS_NS * len(found)),
        "drawn_calls": sum(calls),
        "drawn_cost_calls": sum(
            value * cost / (seconds - cost) for value, (_, seconds) in zip(calls, found, strict=True)
        ),
        "drawn_chance": sum(each**2 * count for each, (count, _) in zip(by_call, found, strict=True)),
        "drawn_calls_squared": sum(value**2 for value in calls),
        "drawn_calls_ns": sum(calls) * STANDS_NS,
        "drawn_ns_squared": len(found) * STANDS_NS**2,
    }


def functions(builder: Builder, **question: Any) -> dict[str, dict[str, Any]]:
    if not builder.path.exists():
        builder.write()
    with Recording.open(builder.path) as recording:
        text = "".join(pieces(document(build_profile(recording, Question(**question)))))
    return {row["function"]: row for row in json.loads(text)["functions"] if row["language"] == "python"}


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho")


def a_function(builder: Builder, name: str) -> int:
    file = 0 if builder.rows["files"] else builder.file("/app/work.py")
    return builder.stack((builder.code(file, name, len(builder.rows["codes"]) + 1), None))


def test_a_function_that_was_watched_all_the_time_is_exact(builder: Builder) -> None:
    stack = a_function(builder, "rare")
    first = period(builder, stack, 1, 1, calls=7, ended=7, total_ns=70_000_000, longest_ns=30_000_000)
    times(builder, first, {24: 6, 25: 1})
    period(builder, stack, 3, 2, calls=1, ended=1, total_ns=10_000_000, longest_ns=10_000_000)
    row = functions(builder)["rare"]
    assert (row["calls"], row["calls_low"], row["calls_high"], row["watched_s"]) == (8, 8, 8, 3.0)
    assert row["call_mean_s"] == pytest.approx(0.01)
    assert row["call_max_s"] == 0.03
    assert 2**23 / 1e9 <= row["call_p50_s"] < 2**24 / 1e9
    # It was sampled nowhere, and is there all the same.
    assert (row["samples"], row["cpu_s"], row["file"]) == (0, 0.0, "/app/work.py")


def test_what_was_not_watched_is_estimated_with_an_interval(builder: Builder) -> None:
    chance = np.random.default_rng(5)
    inside = 0
    for number in range(200):
        stack = a_function(builder, f"often{number}")
        rate, length = 40_000.0, 0.002
        counts = chance.poisson(rate * length, 30)
        seen = {"calls": int(counts.sum()), "watched_ns": round(30 * length * SECOND)}
        period(builder, stack, 10, 10, **seen, **drawn((int(count), length) for count in counts))
    for name, row in functions(builder).items():
        assert name.startswith("often")
        assert row["calls"] == pytest.approx(400_000, rel=0.1)
        inside += row["calls_low"] <= 400_000 <= row["calls_high"]
    assert 180 <= inside <= 200


@pytest.mark.parametrize("rate", [1.0, 10.0, 40.0])
def test_where_hardly_an_interval_has_a_call_the_truth_is_held_all_the_same(builder: Builder, rate: float) -> None:
    """Thirty intervals of 2 ms have few calls at such rates, and often none: that is no exact count of nothing."""
    chance = np.random.default_rng(7)
    inside, length = 0, 0.002
    for number in range(300):
        stack = a_function(builder, f"seldom{number}")
        counts = chance.poisson(rate * length, 30)
        seen = {"calls": int(counts.sum()), "watched_ns": round(30 * length * SECOND)}
        period(builder, stack, 10, 10, **seen, **drawn((int(count), length) for count in counts))
    for row in functions(builder).values():
        assert row["calls_high"] > row["calls"]
        inside += row["calls_low"] <= 10 * rate <= row["calls_high"]
    assert inside >= 0.95 * 300


def test_what_was_seen_outside_of_drawn_intervals_is_no_exact_count(builder: Builder) -> None:
    stack = a_function(builder, "elsewhere")
    period(builder, stack, 10, 10, calls=5000, watched_ns=SECOND, **drawn([(0, 0.002)] * 30))
    row = functions(builder)["elsewhere"]
    assert (row["calls"], row["calls_low"]) == (5000, 5000)
    assert row["calls_high"] >= 50_000


def test_intervals_of_calls_in_bursts_are_wide(builder: Builder) -> None:
    bursts = [(0, 0.002)] * 20 + [(800, 0.002)] * 5
    stack = a_function(builder, "bursts")
    period(builder, stack, 10, 10, calls=4000, watched_ns=50 * MS, **drawn(bursts))
    row = functions(builder)["bursts"]
    assert row["calls_low"] < 0.5 * row["calls"]
    assert row["calls_high"] > 1.5 * row["calls"]


def test_each_phase_counts_by_its_own_rate(builder: Builder) -> None:
    stack = a_function(builder, "phases")
    for end, rate, time_ns in ((10, 1000, 100_000), (20, 10_000, 1000)):
        counts = [(rate // 100, 0.01)] * 20
        seen = 20 * rate // 100
        row = period(
            builder, stack, end, 10, calls=seen, ended=seen, total_ns=seen * time_ns, longest_ns=time_ns,
            watched_ns=200 * MS, **drawn(counts),
        )  # fmt: skip
        times(builder, row, {time_ns.bit_length(): seen})
    row = functions(builder)["phases"]
    assert row["calls"] == pytest.approx(110_000)
    # Not the mean of what was seen, but of what there was.
    assert row["call_mean_s"] == pytest.approx((10_000 * 1e-4 + 100_000 * 1e-6) / 110_000)
    assert row["call_p50_s"] <= 1e-6 <= row["call_p99_s"]
    histogram = dict(map(tuple, row["call_times"]))
    assert histogram == pytest.approx({2**17 / 1e9: 10_000, 2**10 / 1e9: 100_000})


def test_what_watching_took_is_no_time_of_the_program(builder: Builder) -> None:
    stack = a_function(builder, "often")
    sums = drawn([(100, 0.002)] * 10, cost=0.001)
    period(builder, stack, 10, 10, calls=1000, watched_ns=20 * MS, **sums)
    row = functions(builder)["often"]
    assert row["calls"] == pytest.approx(1000 + 9.98 * 1000 / 0.01)
    # How much it took is known to within two fifths.
    assert row["calls_low"] < 0.5 * row["calls"]
    assert row["calls_high"] > 1.5 * row["calls"]


def test_what_is_unknown_is_null(builder: Builder) -> None:
    few, running, cut = (a_function(builder, name) for name in ("few", "running", "cut"))
    period(builder, few, 10, 10, calls=128, ended=128, total_ns=1280, longest_ns=20, watched_ns=MS)
    period(builder, running, 10, 10, calls=2, ended=1, total_ns=5, longest_ns=5)
    last = period(builder, cut, 10, 10, calls=10, ended=8, total_ns=800, longest_ns=127)
    times(builder, last, {7: 8})
    rows = functions(builder)
    assert (rows["few"]["calls"], rows["few"]["calls_low"], rows["few"]["calls_high"]) == (None, 128, None)
    # The longest calls have not ended: no mean, and no quantile that they may be.
    assert (rows["running"]["call_mean_s"], rows["running"]["call_max_s"]) == (None, 5e-9)
    assert rows["cut"]["call_mean_s"] is None
    assert rows["cut"]["call_p50_s"] < 128e-9
    assert rows["cut"]["call_p90_s"] is rows["cut"]["call_p99_s"] is None
    assert rows["cut"]["own_call_mean_s"] is None


def test_no_call_takes_no_time(builder: Builder) -> None:
    """Nothing was left of these calls without what watching them took: how long they are is unknown, and not 0."""
    short, caller = a_function(builder, "short"), a_function(builder, "caller")
    period(builder, short, 10, 10, calls=1000, ended=1000, longest_ns=20)
    held = {"own_begun": 10, "own_ended": 10, "own_longest_ns": 30}
    period(builder, caller, 10, 10, calls=10, ended=10, total_ns=9000, longest_ns=1000, **held)
    rows = functions(builder)
    assert {rows["short"][f"call_mean_s{end}"] for end in ("", "_low", "_high")} == {None}
    assert (rows["caller"]["call_mean_s"], rows["caller"]["own_call_mean_s"]) == (pytest.approx(900e-9), None)


def test_without_calls_all_columns_are_null(builder: Builder) -> None:
    builder.cpu(a_function(builder, "sampled"))
    row = functions(builder)["sampled"]
    assert {row[name] for name in ("calls", "calls_low", "calls_high", "watched_s", "call_p50_s")} == {None}
    assert row["call_times"] is None


def test_threads_and_windows(builder: Builder) -> None:
    stack = a_function(builder, "often")
    builder.cpu(stack)
    period(builder, stack, 1, 1, calls=5)
    period(builder, stack, 3, 2, calls=6)
    assert functions(builder, end_s=2.0)["often"]["calls"] == 5
    assert functions(builder, thread="main")["often"]["calls"] is None


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_within_a_bucket_of_the_truth(seed: int) -> None:
    chance = np.random.default_rng(seed)
    heavy = np.floor(100 * chance.pareto(1.2, 10_000)).astype(np.int64)
    two = np.where(chance.random(10_000) < 0.3, 900, 40_000)
    for sample in (heavy, two, np.full(10_000, 77)):
        histogram = np.zeros((1, BUCKETS))
        np.add.at(histogram[0], [int(value).bit_length() * EIGHTHS for value in sample], 1)
        calls, most = np.array([10_000.0]), np.array([float(sample.max())])
        for part in (0.5, 0.9, 0.99):
            (found,) = quantiles(histogram, calls, most, part, eighths=False)
            true = int(np.sort(sample)[math.ceil(part * 10_000) - 1])
            low, high = (0, 0) if true == 0 else (2 ** (true.bit_length() - 1), 2 ** true.bit_length())
            assert low * (1 - 1e-9) <= found * 1e9 <= high * (1 + 1e-9)


@pytest.mark.parametrize("part", [0.5, 0.9, 0.99])
def test_quantiles_of_eighths_are_near_the_truth(builder: Builder, part: float) -> None:
    """Times that are uniform between 50 and 150 us: the bucket of a power of two had 186 us for the 90 %."""
    stack = a_function(builder, "even")
    sample = np.random.default_rng(3).uniform(50_000, 150_000, 100_000).astype(np.int64)
    row = period(
        builder, stack, 10, 10, calls=100_000, ended=100_000, total_ns=int(sample.sum()), longest_ns=int(sample.max())
    )
    for time_ns in sample.tolist():
        key = {name: row[name] for name in ("time_ns", "process", "stack")}
        bucket = time_ns.bit_length()
        eighth = (time_ns >> (bucket - 4)) - 7
        builder.rows["call_times"].append({**key, "own": False, "bucket": bucket, "eighth": eighth, "calls": 1})
    (found,) = (value for name, value in functions(builder)["even"].items() if name == f"call_p{part * 100:.0f}_s")
    assert found * 1e9 == pytest.approx(np.quantile(sample, part), rel=0.05)


def test_counted_calls_are_in_place_of_watched_ones(builder: Builder) -> None:
    """Of 10 s one was counted, in windows that had 1,000 calls; what is timed besides tells nothing of the number."""
    often, always, rare = (a_function(builder, name) for name in ("often", "always", "rare"))
    windows = {"counted_ns": SECOND, "counted_cpu_ns": SECOND} | drawn([(100, 0.1)] * 10)
    period(builder, often, 10, 10, calls=77, watched_ns=MS, counted_calls=1000, **windows)
    whole = {"counted_ns": 10 * SECOND, "counted_cpu_ns": 10 * SECOND, "counted_calls": 5000}
    timed = {"calls": 10, "ended": 10, "total_ns": 10_000, "total_squared": 2e7, "longest_ns": 2000}
    period(builder, always, 10, 10, **timed, watched_ns=MS, **whole)
    period(builder, rare, 10, 10, calls=3, counted_calls=0, **(windows | drawn([(0, 0.1)] * 10)))
    rows = functions(builder)
    assert rows["often"]["calls"] == pytest.approx(1000 + 9 * 1000)
    assert (rows["always"]["calls"], rows["always"]["calls_low"], rows["always"]["calls_high"]) == (5000, 5000, 5000)
    # All calls were counted, and ten of them timed.
    assert rows["always"]["call_mean_s_low"] < 0.9e-6
    assert (rows["rare"]["calls"], rows["rare"]["calls_high"]) == (3, 3)


def a_costly_program(builder: Builder, writes: int, counted: int, **of_row: Any) -> dict[str, Any]:
    """The row of a function whose windows were to one half counting, beside rows of writes to dictionaries.

    Of 10 s of CPU time 1 s was in windows, which had ``counted`` of all ``writes``.
    """
    often = a_function(builder, "often")
    windows = {"counted_ns": SECOND, "counted_cpu_ns": SECOND}
    period(builder, often, 10, 10, watched_ns=0, counted_calls=1000, **windows, **drawn([(100, 0.1)] * 10, cost=0.05))
    in_windows = windows | drawn([(counted // 10, 0.1)] * 10, cost=0.05)
    row = period(builder, often, 10, 10, calls=writes, counted_calls=counted, **in_windows)
    row |= {"stack": None, **of_row}
    return functions(builder)["often"]


def test_what_counting_takes_is_what_makes_writes_to_dictionaries_agree(builder: Builder) -> None:
    """10,000 of 150,000 writes were in the windows: so these had a fifteenth of the program, and counting took 0.36 of
    them; it was thought to take one half, by which there would have been 190,000 writes."""
    row = a_costly_program(builder, writes=150_000, counted=10_000)
    assert row["calls"] == pytest.approx(15_000, rel=0.02)
    assert (row["calls_high"] - row["calls_low"]) / 2 < 0.25 * row["calls"]


def test_so_do_calls_of_functions_that_are_watched_all_the_time(builder: Builder) -> None:
    row = a_costly_program(builder, writes=150_000, counted=10_000, stack=a_function(builder, "always"))
    assert row["calls"] == pytest.approx(15_000, rel=0.02)


def test_where_writes_and_what_was_measured_do_not_agree_intervals_are_wider(tmp_path: Path) -> None:
    """By 2,200 writes counting took next to nothing, by 3,800 what was measured."""
    reach = []
    for writes in (2200, 3800):
        builder = Builder(tmp_path / str(writes))
        row = a_costly_program(builder, writes=writes, counted=200)
        reach.append((row["calls_high"] - row["calls_low"]) / row["calls"])
    assert reach[0] > 1.1 * reach[1]


def test_few_writes_to_dictionaries_tell_little_of_what_counting_takes(builder: Builder) -> None:
    row = a_costly_program(builder, writes=150, counted=10)
    assert row["calls"] == pytest.approx(18_500, rel=0.03)
    assert (row["calls_high"] - row["calls_low"]) / 2 > 0.35 * row["calls"]


def test_what_was_numbered_for_a_part_of_the_time_is_no_yardstick(builder: Builder) -> None:
    row = a_costly_program(builder, writes=150_000, counted=10_000, watched_ns=9 * SECOND)
    assert row["calls"] == pytest.approx(19_000)


def test_a_number_that_is_known_to_within_a_factor_only_is_null(builder: Builder) -> None:
    stack = a_function(builder, "bursts")
    windows = {"counted_ns": SECOND, "counted_cpu_ns": SECOND, "counted_calls": 500}
    period(builder, stack, 10, 10, watched_ns=0, **windows, **drawn([(0, 0.1)] * 9 + [(500, 0.1)]))
    row = functions(builder)["bursts"]
    assert row["calls"] is None
    assert row["calls_low"] <= 5000 <= row["calls_high"]


def test_windows_without_a_call_give_no_upper_end(builder: Builder) -> None:
    """A function that has thousands of calls at the start of a program is seen in no window after that."""
    stack = a_function(builder, "at first")
    windows = {"counted_ns": SECOND, "counted_cpu_ns": SECOND, "counted_calls": 5}
    period(builder, stack, 10, 10, watched_ns=0, **windows, **drawn([(0, 0.1)] * 10))
    row = functions(builder)["at first"]
    assert (row["calls"], row["calls_low"], row["calls_high"]) == (None, 5, None)


def test_rows_that_cannot_be_are_no_error(builder: Builder) -> None:
    stack = a_function(builder, "odd")
    odd = {"total_squared": math.nan, "drawn_calls_squared": math.inf, "drawn_calls": -5.0}
    period(builder, stack, 1, -3, calls=5, intervals=4, watched_ns=0, **odd)
    row = functions(builder)["odd"]
    assert json.dumps(row["calls"]) == "5.0"


def test_short_numbers() -> None:
    assert [short_time(value) for value in (0.0, 41e-9, 1.26e-6, 0.25, 3.14, math.nan)] == [
        *("0ns", "41ns", "1.3µs", "250ms", "3.1s", "?"),
    ]
    assert [short_count(value) for value in (0, 812, 12_345, 1_260_000, 35e9)] == ["0", "812", "12.3k", "1.3M", "35.0G"]


def test_the_mean_of_two_calls_has_the_interval_of_one_degree_of_freedom() -> None:
    """Student's t is 12.706 there (any table): calls of 100 s and 200 s have a mean of 150 s +- 12.706 * 50 s."""
    one = np.ones(1)
    found = mean_times(
        np.zeros(1, np.int64),
        1,
        one,
        2 * one,
        300e9 * one,
        (100e9**2 + 200e9**2) * one,
        begun=2 * one,
        exact=np.array([False]),
    )
    assert found["mean_s"][0] == pytest.approx(150.0)
    assert found["mean_s_low"][0] == 0.0
    assert found["mean_s_high"][0] == pytest.approx(150.0 + 12.7062 * 50, rel=1e-4)
