"""Spans, from the spool to the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.spool_builder import SegmentBuilder, control, write_spool
from tachograph.format import (
    SpoolDirectory,
    assemble,
    load_specification,
    open_container,
    read_segment,
    write_part,
    write_recording,
)

SPEC = load_specification()
START = 1_000_000_000
PREFIX = f"4242-{START}"


def spool_of(path: Path, *segments: SegmentBuilder) -> SpoolDirectory:
    write_spool(path, [segment.to_bytes() for segment in segments], control(seq=len(segments) - 1), PREFIX)
    return SpoolDirectory(path)


def rows(spool: SpoolDirectory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assemble(spool, SPEC).table("spans").to_pylist()
    return found


def test_children_are_written_first_and_come_second(tmp_path: Path) -> None:
    segment = SegmentBuilder(start_ns=START)
    segment.thread_start(0, 4242, START, main=True)
    segment.thread_start(7, 4250, START)
    segment.span(1, START + 20, START + 30, "batch", '{"n": 3}', parent=0)
    segment.span(2, START + 20, START + 20, "naïve 😀", parent=1)
    segment.span(0, START + 10, START + 40, "epoch")
    segment.span(3, START + 5, START + 50, "other", thread=7)
    assert rows(spool_of(tmp_path, segment)) == [
        {"span": 0, "parent": None, "process": 0, "thread": 1, "name": "other", "fields": None}
        | {"start_ns": START + 5, "end_ns": START + 50},
        {"span": 1, "parent": None, "process": 0, "thread": 0, "name": "epoch", "fields": None}
        | {"start_ns": START + 10, "end_ns": START + 40},
        {"span": 2, "parent": 1, "process": 0, "thread": 0, "name": "batch", "fields": '{"n": 3}'}
        | {"start_ns": START + 20, "end_ns": START + 30},
        {"span": 3, "parent": 2, "process": 0, "thread": 0, "name": "naïve 😀", "fields": None}
        | {"start_ns": START + 20, "end_ns": START + 20},
    ]


def test_what_was_lost_or_damaged(tmp_path: Path) -> None:
    segment = SegmentBuilder(start_ns=START)
    segment.span(5, START + 20, START + 30, "the program was killed before its parent ended", parent=4)
    segment.span(6, START + 30, START + 20, "ends before it begins")
    segment.span(7, START + 10, START + 15, "before its parent", parent=5)
    segment.span(8, START + 40, START + 50, "its thread is not defined", thread=9)
    segment.span(8, START + 60, START + 70, "the same number again")
    assembled = assemble(spool_of(tmp_path, segment), SPEC)
    found = assembled.table("spans").to_pylist()
    assert [(row["name"], row["parent"]) for row in found] == [
        ("before its parent", None),
        ("the program was killed before its parent ended", None),
        ("its thread is not defined", None),
    ]
    assert assembled.table("threads").num_rows == 2
    assert {entry["loss"]: entry["count"] for entry in assembled.quality} == {"records_torn": 1, "references_lost": 2}


def test_a_text_longer_than_its_record_is_no_span(tmp_path: Path) -> None:
    segment = SegmentBuilder(start_ns=START)
    segment.span(0, START, START + 1, "name")
    segment.data[64 + 40] = 200  # the length of the fields
    assert rows(spool_of(tmp_path, segment)) == []


def test_a_part_keeps_them(tmp_path: Path) -> None:
    first, second = (SegmentBuilder(seq, start_ns=START) for seq in (0, 1))
    first.span(1, START + 20, START + 30, "inner", parent=0)
    second.span(0, START + 10, START + 40, "outer")
    spool = spool_of(tmp_path, first, second)
    expected = rows(spool)
    assert [row["name"] for row in expected] == ["outer", "inner"]
    write_part(spool, PREFIX, [read_segment(first.to_bytes())])
    (tmp_path / f"{PREFIX}.000000.seg").unlink()
    assert rows(spool) == expected


def test_a_recording_without_spans_has_no_table(tmp_path: Path) -> None:
    segment = SegmentBuilder(start_ns=START)
    segment.thread_start(0, 4242, START, main=True)
    assembled = assemble(spool_of(tmp_path / "spool", segment), SPEC)
    assert "spans" not in write_recording(assembled, tmp_path, "a uuid")
    assert not (tmp_path / "spans.parquet").exists()
    assert SPEC.recorded("spans", {}, "1.1")  # so it has none, rather than unknown ones
    assert not SPEC.recorded("spans", {}, "1.0")  # spans could not be recorded then


def test_written_and_read_back(tmp_path: Path) -> None:
    segment = SegmentBuilder(start_ns=START)
    segment.span(0, START + 10, START + 40, "epoch", '{"n": 3}')
    assembled = assemble(spool_of(tmp_path / "spool", segment), SPEC)
    written = write_recording(assembled, tmp_path, "a uuid")
    assert written["spans"]["rows"] == 1
    (tmp_path / "manifest.json").write_text("{}")
    with open_container(tmp_path) as container, container.parquet("spans.parquet") as file:
        assert file.read().to_pylist() == assembled.table("spans").to_pylist()


def test_rows_say_in_which_span_they_were(tmp_path: Path) -> None:
    """In any kind of rows; a span that did not end is none, and so is the number 0 of older recorders."""
    segment = SegmentBuilder(start_ns=START)
    segment.thread_start(0, 4242, START, main=True)
    segment.meta("spans_followed", "1")
    for time_ns, number in enumerate((2, 1, 0, 9), START + 10):
        segment.cpu(time_ns, span=number)
        segment.wait(time_ns, time_ns + 1, span=number)
        segment.block(time_ns, number, native=(0, 0), thread=0, span=number)
        segment.copy(time_ns, 10, 10, span=number)
        segment.awaiting(time_ns, START, tasks=1, span=number)
    segment.cpu(START + 20)
    segment.span(2, START + 5, START + 30, "inner", parent=1)
    segment.span(1, START + 2, START + 40, "outer")
    segment.span(0, START + 1, START + 2, "of an older recorder")
    spool = spool_of(tmp_path, segment)
    found = assemble(spool, SPEC)
    names = [row["name"] for row in found.table("spans").to_pylist()]
    assert names == ["of an older recorder", "outer", "inner"]
    for table in ("waits", "allocations", "copies", "awaits"):
        assert found.table(table).column("span").to_pylist() == [2, 1, None, None], table
    assert found.table("cpu").column("span").to_pylist() == [2, 1, None, None, None]
    assert found.table("processes").column("spans_followed").to_pylist() == [True]
    write_part(spool, PREFIX, [read_segment((tmp_path / f"{PREFIX}.000000.seg").read_bytes())])
    (tmp_path / f"{PREFIX}.000000.seg").unlink()
    assert assemble(SpoolDirectory(tmp_path), SPEC).table("cpu").equals(found.table("cpu"))
