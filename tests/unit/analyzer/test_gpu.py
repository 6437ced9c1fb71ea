"""GPUs joined to stacks by time: hand-made recordings whose answers can be worked out on paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.conclusions.gpu.readings import (
    Busy,
    Held,
    busy_of,
    busy_or_idle,
    read_readings,
    together,
    with_edges,
)
from tachograph.analyzer.profile.profile import Profile
from unit.analyzer.recordings import MS, START, Builder

GIB = 1 << 30
Answer = Callable[..., Profile]


def between(busy: Busy, *spans: tuple[int, int]) -> list[tuple[float, float]]:
    start, end = (np.array(ends, np.int64) for ends in zip(*spans, strict=True))
    return list(zip(*(values.tolist() for values in busy.between(start, end)), strict=True))


def ns(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_shares_over_time() -> None:
    busy = busy_of(ns(100, 250), ns(200, 300), np.array([1.0, 0.5]))
    assert between(busy, (0, 100), (100, 200), (150, 275), (200, 250), (0, 1000), (400, 500)) == [
        (0, 0), (100, 100), (62.5, 75), (0, 0), (125, 150), (0, 0),
    ]  # fmt: skip
    overlapping = busy_of(ns(100, 150), ns(200, 300), np.array([1.0, 0.0]))
    assert between(overlapping, (100, 300)) == [(100, 200)]
    idle = busy_or_idle(ns(100), ns(200), np.array([0.5]), 0, 1000)
    assert between(idle, (0, 1000), (100, 200), (900, 1100)) == [(50, 1000), (50, 100), (0, 100)]
    assert between(together([busy, idle]), (100, 200)) == [(150, 200)]
    assert between(together([]), (100, 200)) == [(0, 0)]


def spans(length: int, *shares: float) -> tuple[Any, Any, Any]:
    edges = np.arange(len(shares) + 1, dtype=np.int64) * length
    return edges[:-1], edges[1:], np.array(shares)


def test_a_step_within_a_span_is_put_where_it_was() -> None:
    """A GPU that is busy from 250 to 550, as a driver tells it by the hundred."""
    told = spans(100, 0, 0, 0.5, 1, 1, 0.5, 0)
    phases = [(0, 250), (250, 550), (550, 700)]
    assert between(busy_of(*told), *phases) == [(25, 250), (250, 300), (25, 150)]
    busy = busy_of(*with_edges(*told))
    assert between(busy, *phases) == [(0, 250), (300, 300), (0, 150)]
    assert between(busy, (0, 700), (200, 300), (500, 600)) == [(300, 700), (50, 100), (50, 100)]


def test_spans_that_are_no_step_are_left_whole() -> None:
    alone, even = spans(100, 0, 0.5, 0), spans(100, 1, 0.5, 0.5, 0.5, 1)
    for start, end, share in (alone, even, spans(100, 0.5, 1), spans(100, 0.5), spans(100)):
        found = with_edges(start, end, share)
        assert [values.tolist() for values in found] == [start.tolist(), end.tolist(), share.tolist()]
    # Nothing is known of the time before the second: it has no neighbour there.
    start, end, share = ns(0, 150, 200), ns(100, 200, 300), np.array([0, 0.5, 1])
    assert [values.tolist() for values in with_edges(start, end, share)] == [
        [0, 150, 200],
        [100, 200, 300],
        [0, 0.5, 1],
    ]


@pytest.mark.parametrize("seed", range(20))
def test_edges_leave_every_span_s_sum(seed: int) -> None:
    told = spans(1_000_000, *np.random.default_rng(seed).integers(0, 101, 60) / 100)
    whole, parted = (
        between(busy, *zip(*map(np.ndarray.tolist, told[:2]), strict=True))
        for busy in (busy_of(*spans) for spans in (told, with_edges(*told)))
    )
    assert np.allclose(whole, parted, atol=2)


def test_memory_over_time() -> None:
    held = Held(ns(100, 200, 300), np.array([1.0, 5.0, 2.0]))
    assert np.nan_to_num(held.at(ns(50, 100, 199, 200, 300, 301)), nan=-1).tolist() == [-1, 1, 1, 5, 2, -1]
    found = held.most(ns(0, 110, 110, 250, 210, 310), ns(90, 190, 250, 290, 400, 400))
    assert np.nan_to_num(found, nan=-1).tolist() == [-1, 1, 5, 5, 5, -1]


def test_times_are_exact_where_some_are_missing(builder: Builder) -> None:
    """Also those that floating point has no room for."""
    builder.gpu(1, 50)
    for odd in ((1 << 63) - 1, (1 << 53) + 1):
        builder.gpu(2, 50, since_ns=odd)
    with Recording(builder.write()) as recording:
        readings = read_readings(recording)
        assert readings is not None
        assert readings.rows["since_ns"].dropna().tolist() == [(1 << 63) - 1, (1 << 53) + 1]


def lines(answer: Profile) -> dict[int, tuple[float, float, float]]:
    """By line its own GPU seconds, its share, and its share with everything that it called."""
    frame = answer.lines[answer.lines["line"].notna()]
    values = frame[["gpu_s", "gpu_share", "total_gpu_share"]].to_numpy(float).round(6)
    return {int(line): (own, share, total) for line, (own, share, total) in zip(frame["line"], values, strict=True)}


def test_running_and_waiting_both_count(builder: Builder, profile: Answer) -> None:
    """Line 3 calls line 1 (computes from 0 to 1 s, GPU idle) and line 2 (waits from 1 to 3 s, GPU at 80 %)."""
    code = builder.code(builder.file("/srv/a.py"))
    compute, wait = builder.stack((code, 2), (code, 0)), builder.stack((code, 2), (code, 1))
    for sample in range(100):
        builder.cpu(compute, time_ns=START + (sample + 1) * 10 * MS)
    builder.wait(wait, 1000, 3000, target=5)
    builder.cpu(compute, time_ns=START + 9000 * MS)  # long after the last reading
    builder.gpu(1000, 0, 0)
    builder.gpu(3000, 80, 1000)
    builder.gpu(500, None, memory_bytes=GIB, power_mw=50_000)
    builder.gpu(2000, None, memory_bytes=3 * GIB, power_mw=150_000)
    builder.gpu(3100, None, memory_bytes=GIB)
    answer = profile()
    found = lines(answer)
    assert {line: found[line] for line in (1, 2)} == {1: (0, 0, 0), 2: (1.6, 0.8, 0.8)}
    assert np.isnan(found[3][:2]).all()  # it was never the line itself
    assert found[3][2] == 0.533333
    assert answer.totals.gpu_s == pytest.approx(1.6)
    assert answer.totals.gpu_share == pytest.approx(1.6 / 3)
    assert answer.totals.gpu_peak_bytes == 3 * GIB
    by_line = answer.lines.set_index("line")
    assert by_line["gpu_peak_bytes"][2] == 3 * GIB
    assert by_line["gpu_peak_bytes"][1] == GIB
    assert answer.totals.gpu_wait_s == pytest.approx(2.0)
    assert answer.gpu is not None
    (device,) = answer.gpu.devices.to_dict("records")
    assert (device["busy_share"], device["peak_bytes"], device["power_w"], device["used"]) == (
        pytest.approx(1.6 / 3), 3 * GIB, 100.0, False,
    )  # fmt: skip
    # In the window of the wait alone there is nothing else.
    assert profile(start_s=1.005, end_s=3.0).totals.gpu_share == pytest.approx(0.8)
    # In half of the wait there is half of it.
    assert profile(start_s=2.0, end_s=4.0).totals.gpu_s == pytest.approx(0.8)


def test_without_samples_readings_stand_for_the_time_before_them(builder: Builder, profile: Answer) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.wait(stack, 0, 1000)
    for ms, busy in ((0, 100), (500, 40), (1000, 60), (9000, 100)):  # the last is too far away
        builder.gpu(ms, busy)
    assert profile().totals.gpu_share == pytest.approx(0.5)


def test_unknown_is_not_nothing(builder: Builder, profile: Answer) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.wait(stack, 0, 1000)
    builder.gpu(500, None, memory_bytes=7)
    answer = profile()
    assert (answer.totals.gpu_s, answer.totals.gpu_share) == (None, None)
    assert answer.lines["gpu_share"].isna().all()


def test_where_no_gpu_was_read(builder: Builder, profile: Answer) -> None:
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
    answer = profile()
    assert answer.gpu is None
    assert answer.totals.gpu_share is None
    assert answer.lines["total_gpu_share"].isna().all()


def test_other_processes_use_is_not_ours(builder: Builder, profile: Answer) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.wait(stack, 0, 2000)
    builder.gpu(0, None, memory_bytes=9, users=2)
    builder.gpu(1000, 90, 0)
    builder.gpu(2000, 90, 1000)
    builder.gpu(2000, None, memory_bytes=9, users=2)
    builder.gpu(1000, None, process=0, memory_bytes=4)
    builder.gpu(1000, 30, 0, process=0)  # and idle from then on
    answer = profile()
    assert answer.totals.gpu_share == pytest.approx(0.15)
    assert answer.totals.gpu_peak_bytes == 4
    assert answer.gpu is not None
    assert answer.gpu.shared
    assert any("other processes used the GPU" in note for note in answer.quality.notes)


def test_each_process_has_its_own_gpu(builder: Builder, profile: Answer) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    process, thread = builder.process(200, 0, 1000)
    builder.wait(stack, 0, 1000)
    builder.wait(stack, 0, 1000, thread=thread)
    builder.gpu(0, None, users=1)
    builder._add("gpu_devices", index=1)
    for device, owner, busy in ((0, 0, 100), (1, process, 20)):
        builder.gpu(1000, busy, 0, device=device)
        builder.gpu(1000, None, device=device, process=owner, memory_bytes=5)
    answer = profile()
    assert answer.totals.gpu_s == pytest.approx(1.2)
    assert answer.totals.gpu_share == pytest.approx(0.6)
    assert answer.totals.gpu_peak_bytes == 10
    assert not answer.quality.notes or not any("GPU" in note for note in answer.quality.notes)
    assert profile(processes=("200",)).totals.gpu_share == pytest.approx(0.2)


def test_other_threads_only_where_they_are_asked_for(builder: Builder, profile: Answer) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    worker = builder.thread("worker")
    builder.wait(builder.stack((code, 0)), 0, 1000)
    builder.wait(builder.stack((code, 1)), 1000, 2000, thread=worker)
    builder.gpu(1000, 10, 0)
    builder.gpu(2000, 70, 1000)
    assert profile().totals.gpu_share == pytest.approx(0.1)
    assert profile(thread="worker").totals.gpu_share == pytest.approx(0.7)


def test_absurd_percentages_are_unknown(builder: Builder) -> None:
    builder.gpu(10, 101, 0)
    with Recording(builder.write()) as recording:
        readings = read_readings(recording)
    assert readings is not None
    assert readings.rows["busy_percent"].isna().all()
