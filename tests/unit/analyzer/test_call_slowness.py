"""Calls that took longer because they were watched (CPython 3.11): their times are brought to what samples tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer.conclusions.calls.call_slowness import shifted

from .recordings import MS, Builder
from .test_calls import a_function, drawn, functions, period, times

US = 1000
SAMPLE_MS = 10


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho", python_version="3.11.7")


def slowed(
    builder: Builder, name: str, *, samples: int, watched_us: float, counts: list[int] | None = None, ended: float = 1.0
) -> int:
    """A function with so many samples, whose calls took so long in windows: 0.2 s of ten are windows.

    Its calls in each of 20 windows of 10 ms, of which the part ``ended`` was seen to end; without: 20 in each, which
    stands for some 20,000 calls in all.
    """
    stack = a_function(builder, name)
    for _ in range(samples):
        builder.cpu(stack, SAMPLE_MS)
    counts = counts or [20] * 20
    calls = sum(counts)
    done = round(calls * ended)
    total = round(done * watched_us * US)
    own = {"own_begun": calls, "own_ended": done, "own_ns": total, "own_longest_ns": round(watched_us * US)}
    row = period(
        builder, stack, 10, 10, calls=calls, ended=done, total_ns=total, longest_ns=round(watched_us * US),
        watched_ns=200 * MS, **own, **drawn((count, 0.01) for count in counts),
    )  # fmt: skip
    times(builder, row, {round(watched_us * US).bit_length(): done})
    return stack


def test_times_are_those_that_samples_tell(builder: Builder) -> None:
    slowed(builder, "python", samples=400, watched_us=400)  # 4 s of 20,000 calls
    slowed(builder, "c", samples=600, watched_us=300)  # as long as it was when it was watched
    rows = functions(builder)
    for name, true in (("python", 200e-6), ("c", 300e-6)):
        row = rows[name]
        for prefix in ("call", "own_call"):
            assert row[f"{prefix}_mean_s"] == pytest.approx(true, rel=0.03)
            assert row[f"{prefix}_mean_s_low"] < true < row[f"{prefix}_mean_s_high"]
            assert row[f"{prefix}_max_s"] == pytest.approx(true, rel=0.03)
        assert 0.5 * true < row["call_p50_s"] <= row["call_max_s"]
        assert sum(calls for _, calls in row["call_times"]) == pytest.approx(20_000, rel=0.01)


def test_other_versions_are_left_alone(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "run.tacho", python_version="3.13.0")
    slowed(builder, "python", samples=400, watched_us=400)
    assert functions(builder)["python"]["call_mean_s"] == pytest.approx(400e-6)


def test_a_function_without_samples_is_taken_to_be_like_the_others(builder: Builder) -> None:
    slowed(builder, "often", samples=400, watched_us=400)
    slowed(builder, "rare", samples=0, watched_us=0.4)
    row = functions(builder)["rare"]
    assert row["call_mean_s"] == pytest.approx(0.2e-6, rel=0.05)
    assert row["call_mean_s_low"] < 0.1e-6
    assert row["call_mean_s_high"] > 0.3e-6


def test_calls_that_are_longer_than_windows_have_a_mean(builder: Builder) -> None:
    slowed(builder, "long", samples=400, watched_us=100, counts=[1] * 20, ended=0.0)  # 4 s of 1,000 calls
    slowed(builder, "hardly sampled", samples=3, watched_us=100, counts=[1] * 20, ended=0.0)
    rows = functions(builder)
    assert rows["long"]["own_call_mean_s"] == pytest.approx(4e-3, rel=0.03)
    assert rows["long"]["own_call_mean_s_low"] < 3.5e-3 < 5e-3 < rows["long"]["own_call_mean_s_high"]
    assert rows["long"]["own_call_p50_s"] is None
    assert rows["hardly sampled"]["own_call_mean_s"] is None


def test_of_a_function_that_is_called_once_no_mean_is_told_before_it_ends(builder: Builder) -> None:
    stack = a_function(builder, "main")
    for _ in range(100):
        builder.cpu(stack, SAMPLE_MS)
    period(builder, stack, 10, 10, calls=1)
    assert functions(builder)["main"]["call_mean_s"] is None


def test_calls_within_others_count_for_both(builder: Builder) -> None:
    """The whole time of a function has that of what it called; of a recursive one each call has its own."""
    outer, inner = a_function(builder, "outer"), a_function(builder, "inner")
    codes = [builder.rows["stacks"][stack]["code"] for stack in (outer, inner)]
    deep = builder.stack((codes[0], None), (codes[1], None), (codes[1], None))
    for _ in range(400):
        builder.cpu(deep, SAMPLE_MS)
    for stack, calls, true_us in ((outer, 20, 200), (inner, 40, 200)):
        seen = 20 * calls
        period(
            builder, stack, 10, 10, calls=seen, ended=seen, total_ns=2 * seen * true_us * US, longest_ns=400 * US,
            watched_ns=200 * MS, **drawn([(calls, 0.01)] * 20),
        )  # fmt: skip
    rows = functions(builder)
    assert rows["outer"]["call_mean_s"] == pytest.approx(200e-6, rel=0.03)
    assert rows["inner"]["call_mean_s"] == pytest.approx(200e-6, rel=0.03)


def test_intervals_of_means_hold_the_truth(builder: Builder) -> None:
    """Functions that are slowed by 1.2 to 2 times, sampled by chance, called by chance."""
    chance = np.random.default_rng(11)
    truths: dict[str, float] = {}
    for number in range(300):
        true_us = float(chance.uniform(50, 500))
        per_window = 0.01 / (true_us * 1e-6) * float(chance.uniform(0.005, 0.2))
        whole_s = per_window * 1000 * true_us * 1e-6
        slowed(
            builder, f"f{number}", samples=int(chance.poisson(whole_s * 1000 / SAMPLE_MS)),
            watched_us=true_us * float(chance.uniform(1.2, 2.0)), counts=chance.poisson(per_window, 20).tolist() or [0],
        )  # fmt: skip
        truths[f"f{number}"] = true_us * 1e-6
    rows: dict[str, dict[str, Any]] = functions(builder)
    known = [name for name in truths if rows[name]["call_mean_s_low"] is not None]
    inside = sum(rows[name]["call_mean_s_low"] <= truths[name] <= rows[name]["call_mean_s_high"] for name in known)
    assert len(known) > 250
    assert 0.93 * len(known) <= inside


@pytest.mark.parametrize("factor", [0.25, 0.3, 0.5, 0.7, 1.0, 1.3])
def test_histograms_move_and_lose_nothing(factor: float) -> None:
    histogram = np.zeros((1, 64))
    histogram[0, [0, 1, 5, 20, 63]] = (3, 5, 7, 11, 13)
    moved = shifted(histogram, np.array([factor]))
    assert moved.sum() == pytest.approx(39)
    assert moved[0, 0] == 3
    mean = (moved[0, 15:24] * np.arange(15, 24)).sum() / 11
    assert mean == pytest.approx(20 + np.log2(factor))
