from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.recording.long_reads import prefetched
from tachograph.analyzer.samples import accumulate
from tachograph.analyzer.samples.accumulate import Accumulator
from tachograph.analyzer.samples.reduction import Reduction
from tachograph.analyzer.samples.stream import Stream
from tachograph.analyzer.samples.weights import share_ticks, whole_ticks
from unit.analyzer.recordings import Builder


@pytest.mark.parametrize("limit", [10**6, 700, 0])
def test_accumulator_against_a_dictionary(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(accumulate, "MAX_DENSE", limit)
    random = np.random.default_rng(1)
    subject = Accumulator(100, 50, ("a", "b"))
    expected: dict[tuple[int, int], tuple[int, float]] = {}
    for _ in range(10):
        place, cell = random.integers(0, 100, 500), random.choice([0, 3, 7, 8, 20, 21, 49], 500).astype(np.uint16)
        a = random.integers(0, 1000, 500).astype(np.float64)
        for key in zip(place.tolist(), cell.tolist(), a.tolist(), strict=True):
            count, total = expected.get(key[:2], (0, 0.0))
            expected[key[:2]] = (count + 1, total + key[2])
        subject.add(place, cell, (a, None))
    places, cells, sums = subject.sums()
    found = {
        (place, cell): (count, total)
        for place, cell, count, total in zip(places, cells, sums["count"], sums["a"], strict=True)
    }
    assert found == expected
    assert not sums["b"].any()


def test_batches_do_not_matter(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    builder.sampler = builder.rows["processes"][0]["sampler"] = "signal"
    builder.thread("worker")
    code = builder.code(builder.file("/srv/a.py"))
    for tick in range(50):
        for thread in range(1 + tick % 2):
            stack = builder.stack((code, (tick + thread) % 7))
            values = {"time_ns": 10**12 + tick, "thread": thread, "origin": 2 + thread, "system_ns": None}
            builder.cpu(stack, 10 + tick, native_frame=None, **values)
    builder.write()

    def reduced() -> Any:
        with Recording(builder.path) as recording:
            stream = Stream(recording)
            reduction = Reduction(stream)
            stream.feed(reduction)
            frame = reduction.facts().cpu.pandas()
        return frame.sort_values(list(frame.columns[:7])).round(3).to_dict("records")

    whole = reduced()
    for rows in (1, 2, 7):
        monkeypatch.setattr("tachograph.analyzer.samples.stream.BATCH_ROWS", rows)
        assert reduced() == whole


def test_ticks_are_not_torn_apart() -> None:
    batches = [
        pa.record_batch({"time_ns": pa.array(times, pa.int64())}) for times in ([1, 1, 2], [2], [2, 2], [], [2, 3])
    ]
    found = [batch.column("time_ns").to_pylist() for batch in whole_ticks(batches)]
    assert [time for times in found for time in times] == [1, 1, 2, 2, 2, 2, 2, 3]
    assert [len(set(times)) for times in found] == [1, 1, 1]


def test_shares_of_ticks() -> None:
    times, processes = np.array([5, 5, 6, 5]), np.array([0, 0, 0, 1])
    weight, delay = share_ticks(times, processes, np.array([30.0, 30.0, 8.0, 50.0]), 10)
    assert weight.tolist() == [15.0, 15.0, 8.0, 50.0]
    assert delay.tolist() == [10.0, 10.0, 0.0, 40.0]


def test_reading_ahead_keeps_order_and_errors() -> None:
    def numbers() -> Iterator[int]:
        yield from range(5)
        raise KeyError("at the end")

    found = prefetched(numbers())
    assert [next(found) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError, match="at the end"):
        next(found)
    assert list(prefetched([])) == []
