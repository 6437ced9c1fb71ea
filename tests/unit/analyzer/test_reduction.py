from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.recording.tables import prefetched
from tachograph.analyzer.samples import groups
from tachograph.analyzer.samples.groups import Keys, Numbers, Totals
from tachograph.analyzer.samples.reduction import Reduction
from tachograph.analyzer.samples.stream import Stream
from tachograph.analyzer.samples.weights import share_ticks, whole_ticks
from unit.analyzer.recordings import Builder


@pytest.mark.parametrize("block", [1, 7, 10**6])
@pytest.mark.parametrize("size", [10, 1000, 1 << 40])
def test_numbers_against_a_dictionary(monkeypatch: pytest.MonkeyPatch, block: int, size: int) -> None:
    """In the order in which keys first come; the table grows, and few slots make for many collisions."""
    monkeypatch.setattr(groups, "_BLOCK", block)
    random = np.random.default_rng(size)
    subject, expected = Numbers(), dict[int, int]()
    for rows in (0, 1, 50, 500, 500):
        keys = random.integers(0, size, rows)
        numbers = [expected.setdefault(key, len(expected)) for key in keys.tolist()]
        assert subject.of(keys).tolist() == numbers
    assert subject.keys.tolist() == list(expected)
    assert len(subject) == len(expected)


@pytest.mark.parametrize("sizes", [(7, 3, 256), (1 << 31, 1 << 31, 256), (1 << 31, 1 << 40, 1 << 20)])
def test_combinations_of_columns_are_told_apart(sizes: tuple[int, ...]) -> None:
    """However many there might be: those of the last are packed in two steps or three."""
    random = np.random.default_rng(1)
    values = [np.concatenate([random.integers(0, size, 20), [size - 1, 0, size - 1]]) for size in sizes]
    columns = {f"c{place}": random.choice(each, 2000) for place, each in enumerate(values)}
    columns["c2"] = columns["c2"].astype(np.uint8) if sizes[2] == 256 else columns["c2"]
    subject, expected = Keys({f"c{place}": size for place, size in enumerate(sizes)}), dict[tuple[int, ...], int]()
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    numbers = [expected.setdefault(row, len(expected)) for row in rows]
    assert subject.of(columns).tolist() == numbers
    found = subject.columns()
    assert list(zip(*(found[name].tolist() for name in columns), strict=True)) == list(expected)
    assert subject.columns(since=len(subject) - 1)["c0"].tolist() == [list(expected)[-1][0]]


def test_totals_of_few_and_of_many_numbers() -> None:
    random = np.random.default_rng(1)
    subject, counts, sums = Totals(("a", "b")), np.zeros(5000), np.zeros(5000)
    for rows, size in ((4000, 1000), (10, 5000), (0, 5000), (4000, 5000)):
        number, a = random.integers(0, size, rows), random.integers(0, 1000, rows).astype(np.float64)
        np.add.at(counts, number, 1)
        np.add.at(sums, number, a)
        subject.add(number, size, {"a": a, "b": None})
    assert subject["count"].tolist() == counts.tolist()
    assert subject["a"].tolist() == sums.tolist()
    assert not subject["b"].any()


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
