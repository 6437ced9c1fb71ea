"""Threshold and rate, counted from rows made by hand."""

import pyarrow as pa

from sampling_rate import count
from tachograph.format import load_specification

EVENTS = [value.name for value in load_specification().enums["memory_event"]]


def memory(*rows: tuple[str, int, int]) -> pa.Table:
    """A table of events, bytes allocated by the C allocator, and bytes freed by one of Python's domains."""
    event, allocated, freed = zip(*rows, strict=True)
    columns = {
        "event": pa.array([EVENTS.index(name) for name in event], pa.uint8()),
        "native_allocated_bytes": pa.array(allocated, pa.int64()),
        "obj_freed_bytes": pa.array(freed, pa.int64()),
    }
    return pa.table(columns)


def test_what_was_held_before_is_not_counted_and_all_else_is() -> None:
    counts = count(memory(("start", 5000, 0), ("threshold", 130, 30), ("end", 200, 240)), "x", threshold_bytes=100)
    assert (counts.moved_bytes, counts.rate_samples) == (600, 6.0)
    assert (counts.threshold_samples, counts.ratio, counts.rows) == (1, 6.0, 3)


def test_rows_written_for_another_reason_have_their_part_of_the_way_to_the_threshold() -> None:
    rows = [("tick", 60, 0), ("tick", 60, 0), ("tick", 0, 60), ("threshold", 0, 100), ("tick", 50, 0)]
    # 60, 120: one; -60, -160: two; then 50.
    assert count(memory(*rows), "x", threshold_bytes=100).threshold_samples == 2


def test_crossings_that_share_a_row_count_and_none_has_no_ratio() -> None:
    assert count(memory(("threshold", 150, 0)), "x", threshold_bytes=100, merged=3).threshold_samples == 4
    assert count(memory(("end", 500, 500)), "x", threshold_bytes=100).ratio is None
