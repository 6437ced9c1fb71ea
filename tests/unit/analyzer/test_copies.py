"""Copy volume by site and thread: exact sums, estimates, windows, what was not sampled."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tachograph.analyzer import Profile
from unit.analyzer.recordings import Builder, table

KB, MB = 1000, 1_000_000
MEAN = 1 << 20


def stacks(builder: Builder, count: int) -> list[int]:
    code = builder.code(builder.file("/srv/a.py"))
    return [builder.stack((code, line)) for line in range(count)]


def test_large_copies_are_exact(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = stacks(builder, 2)
    worker = builder.thread("worker")
    builder.copy(one, 30 * MB, 100, mean=MEAN)
    builder.copy(two, 50 * MB, 200, mean=MEAN, thread=worker)
    builder.copy(one, 20 * MB, 6000, mean=MEAN)
    answer = profile()
    columns = ("line", "copied_bytes", "copy_mb_per_s", "copy_samples", "total_copied_bytes")
    assert table(answer.lines.sort_values("line"), *columns) == [
        (1, 50 * MB, 5.0, 2, 50 * MB),
        (2, 50 * MB, 5.0, 1, 50 * MB),
    ]
    assert answer.lines["copied_bytes_low"].tolist() == pytest.approx(answer.lines["copied_bytes"].tolist(), rel=1e-6)
    assert (answer.totals.copied_bytes, answer.totals.copy_mb_per_s, answer.totals.copy_samples) == (100 * MB, 10.0, 3)
    assert table(answer.threads, "name", "copied_bytes") == [("MainThread", 50 * MB), ("worker", 50 * MB)]
    assert table(profile(thread="worker").lines, "line", "copied_bytes") == [(2, 50 * MB)]
    assert table(profile(end_s=5).lines.sort_values("line"), "copied_bytes") == [(30 * MB,), (50 * MB,)]
    assert answer.memory is not None  # a recording of copies is one of memory too


def test_small_copies_are_scaled_to_what_the_thread_copied(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = stacks(builder, 1)
    for number in range(50):
        # Every sampled copy of 64 KB stands for 1.08 MB; the thread knows that it has copied 2 MB since the last.
        builder.copy(one, 64 * KB, number * 10, mean=MEAN, bytes=2 * MB)
    builder.copy(None, 0, 9000, mean=0, bytes=3 * MB, stack_state=5)
    answer = profile()
    assert table(answer.lines, "line", "copied_bytes", "copy_samples") == [(1, 103 * MB, 50)]
    assert answer.totals.copied_bytes == 103 * MB
    # All of it is that line's, whatever was drawn.
    assert answer.lines["copied_bytes_high"].iloc[0] == 103 * MB


def test_copies_without_a_sampled_stack_are_not_lost(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.cpu(stacks(builder, 1)[0])
    builder.copy(None, 0, 9000, mean=0, bytes=300 * KB, stack_state=5)
    answer = profile()
    assert ("<not sampled>", 300 * KB) in table(answer.lines, "function", "copied_bytes")
    assert answer.totals.copied_bytes == 300 * KB
    assert table(answer.threads, "copied_bytes") == [(300 * KB,)]


def test_two_sites_of_one_thread(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A thread that copies 64 KB here and 192 KB there in turn, sampled as the recorder does."""
    places = stacks(builder, 2)
    random = np.random.default_rng(11)
    since, truth, countdown = 0, [0, 0], random.exponential(MEAN)
    for number in range(20_000):
        size = (64 * KB, 192 * KB)[number % 2]
        truth[number % 2] += size
        since += size
        countdown -= size
        if countdown < 0:
            builder.copy(places[number % 2], size, number / 2, mean=MEAN, bytes=since)
            since, countdown = 0, random.exponential(MEAN)
    builder.copy(None, 0, 9999.5, mean=0, bytes=since, stack_state=5)
    answer = profile()
    found = answer.lines.sort_values("line").head(2)
    samples = found["copy_samples"].sum()
    for copied, low, high, exact in zip(
        found["copied_bytes"], found["copied_bytes_low"], found["copied_bytes_high"], truth, strict=True
    ):
        assert copied == pytest.approx(exact, rel=4 / math.sqrt(samples))
        assert low <= exact <= high
    assert answer.totals.copied_bytes == pytest.approx(sum(truth))
