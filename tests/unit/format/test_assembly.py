"""From a spool to tables: ids, lost references, modules, order of time."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from tachograph.format import (
    Assembled,
    FormatError,
    Manifest,
    NativePlace,
    SpoolDirectory,
    assemble,
    check_batch,
    check_depth,
    check_schema,
    load_specification,
    read_segment,
    write_part,
)
from tachograph.format.schema import MAX_STACK_DEPTH

SPEC = load_specification()


def of(*builders: SegmentBuilder) -> list[bytes]:
    return [builder.to_bytes() for builder in builders]


def assembled(path: Path, **callbacks: Any) -> Assembled:
    result = assemble(SpoolDirectory(path), SPEC, **callbacks)
    rows = {name: result.table(name).num_rows for name in SPEC.tables}
    for name, table in SPEC.tables.items():
        check_schema(table, result.table(name).schema, name)
        assert result.table(name).schema.equals(table.schema)
        result.table(name).validate(full=True)
        check_batch(table, result.table(name), rows, name)
    return result


def rows(result: Assembled, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.table(name).to_pylist()
    return found


def counts(result: Assembled) -> dict[str, int]:
    return {entry["loss"]: entry["count"] for entry in result.quality}


def test_empty_spool(tmp_path: Path) -> None:
    result = assembled(tmp_path)
    assert all(result.table(name).num_rows == 0 for name in SPEC.tables)
    assert (result.quality, result.clock, result.ended_ns, result.parameters) == ([], None, None, {})


def test_missing_spool_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot list"):
        assemble(SpoolDirectory(tmp_path / "nothing"), SPEC)


def test_lost_references_keep_their_rows(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.cpu(10, 5, 9)
    segment.stack(3, 2, 7, 4)  # neither the parent nor the code exists
    segment.cpu(20, 5, 3)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    assert counts(result) == {"references_lost": 4}
    assert rows(result, "threads")[0]["tid"] is None
    stacks = rows(result, "stacks")
    assert [(each["parent"], each["code"]) for each in stacks] == [(None, None), (0, None), (None, None)]
    assert stacks[1]["instruction"] == 4
    assert [each["stack"] for each in rows(result, "cpu")] == [2, 1]


def test_a_ring_of_parents_is_cut(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    for stack, parent in ((0, 1), (1, 2), (2, 0), (3, 3)):
        segment.stack(stack, parent, NONE, stack)
        segment.block(100, stack, stack=stack)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    assert len(rows(result, "stacks")) == 4
    assert counts(result) == {"references_lost": 2}


@pytest.mark.broad
@pytest.mark.parametrize("more", [0, 1, 2 * MAX_STACK_DEPTH])
def test_a_stack_without_end_loses_its_outermost_levels(tmp_path: Path, more: int) -> None:
    segment = SegmentBuilder(0, size=1 << 24)
    for stack in range(MAX_STACK_DEPTH + more):
        segment.stack(stack, stack - 1 if stack else NONE, NONE, stack)
    segment.cpu(10, 5, MAX_STACK_DEPTH + more - 1)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    check_depth(result.table("stacks"), "stacks")
    assert [each["parent"] for each in rows(result, "stacks")].count(None) == 1 + -(-more // MAX_STACK_DEPTH)
    assert result.table("stacks").num_rows == MAX_STACK_DEPTH + more


def test_stacks_that_no_row_refers_to_are_left_out(tmp_path: Path) -> None:
    """The callers of those that a row refers to are kept; of the others neither codes nor files are."""
    segment = SegmentBuilder(0)
    for code, (file, name) in enumerate((("a.py", "main"), ("a.py", "used"), ("b.py", "unused"))):
        segment.code(code, file, name, 1, b"t")
    segment.stack(0, NONE, 0, 2)
    segment.stack(1, 0, 2, 4)
    segment.stack(2, 0, 1, 6)
    segment.stack(3, 2, 2, 8)
    segment.block(100, 0, stack=2)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    assert [each["qualname"] for each in rows(result, "codes")] == ["main", "used"]
    assert [each["path"] for each in rows(result, "files")] == ["a.py"]
    assert [(each["parent"], each["instruction"]) for each in rows(result, "stacks")] == [(None, 2), (0, 6)]
    assert [each["stack"] for each in rows(result, "allocations")] == [1]
    assert counts(result) == {}


def test_deep_stacks_do_not_recurse(tmp_path: Path) -> None:
    segment = SegmentBuilder(0, size=1 << 20)
    depth = MAX_STACK_DEPTH
    for stack in range(depth):
        segment.stack(stack, stack + 1 if stack + 1 < depth else NONE, NONE, 0)
    segment.block(100, 0, stack=0)
    write_spool(tmp_path, of(segment), control())
    assert len(rows(assembled(tmp_path), "stacks")) == depth


def test_equal_codes_and_stacks_of_two_processes_are_one(tmp_path: Path) -> None:
    for pid, offset in ((10, 0), (11, 5)):
        segment = SegmentBuilder(0, pid, pid)
        segment.thread_start(0, pid, pid, main=True)
        segment.code(offset, "a.py", "f", 1, b"t")
        segment.code(offset + 1, "a.py", "g" if pid == 10 else "h", 2, b"t")
        segment.stack(offset, NONE, offset, 2)
        segment.stack(offset + 1, offset, offset + 1, 4)
        segment.cpu(pid * 100, 0, offset + 1)
        parent = 10 if pid == 11 else 1
        write_spool(tmp_path, of(segment), control(pid=pid, start_ns=pid, parent=parent, end_ns=5000), f"{pid}-{pid}")
    result = assembled(tmp_path, exit_statuses={10: 0, 11: -9})
    assert [each["qualname"] for each in rows(result, "codes")] == ["f", "g", "h"]
    assert [each["parent"] for each in rows(result, "stacks")] == [None, 0, 0]
    assert [each["stack"] for each in rows(result, "cpu")] == [1, 2]
    assert [each["thread"] for each in rows(result, "cpu")] == [0, 1]
    assert [(each["parent"], each["exit_status"]) for each in rows(result, "processes")] == [(None, 0), (0, -9)]
    assert len(rows(result, "files")) == 1


def test_module_of_the_time_of_the_row(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.thread_start(0, 1, 0, main=True)
    segment.module(0, "/lib/old.so", 0x1000, 0x2000, 0, time_ns=100)
    segment.module(1, "/lib/new.so", 0x1800, 0x3000, 0x500, time_ns=200)
    times, pcs = (50, 150, 250, 250, 260, 270, 280), (0x1900, 0x1900, 0x1900, 0x1100, 0x9999, 0, 0x1100)
    for time_ns, pc in zip(times, pcs, strict=True):
        segment.cpu(time_ns, 0, NONE, pc=pc)
    write_spool(tmp_path, of(segment), control())
    asked = []

    def resolve(path: str, offsets: list[int]) -> list[NativePlace]:
        asked.append(path)
        return [NativePlace(f"{path}:{offset:x}", "a.c", offset) for offset in offsets]

    result = assembled(tmp_path, resolve=resolve)
    frames = rows(result, "native_frames")
    names = [
        None if each["native_frame"] is None else frames[each["native_frame"]]["symbol"] for each in rows(result, "cpu")
    ]
    old, new = "/lib/old.so:900", "/lib/new.so:600"
    assert names == [old, old, new, "/lib/old.so:100", None, None, "/lib/old.so:100"]
    assert [(each["source"], each["line"]) for each in frames if each["symbol"] == new] == [("a.c", 0x600)]
    unknown = [each for each in frames if each["module"] is None]
    assert [each["offset"] for each in unknown] == [0x9999]
    assert sorted(asked) == ["/lib/new.so", "/lib/old.so"]


def test_sources_are_read_once_and_hashed(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    texts = {"a.py": "# -*- coding: latin-1 -*-\n'\u00e9'\n".encode("latin-1"), "b.py": b"\xff\xfe broken"}
    for code, path in enumerate(["a.py", "b.py", "c.py", "a.py", "unused.py"]):
        segment.code(code, path, f"f{code}", 1, None)
        if path != "unused.py":
            segment.stack(code, NONE, code, 0)
            segment.block(100, code, stack=code)
    write_spool(tmp_path, of(segment), control())
    asked = []

    def read_source(path: str, codes: object) -> bytes | None:
        asked.append(path)
        return texts.get(path)

    files = rows(assembled(tmp_path, read_source=read_source), "files")
    assert asked == ["a.py", "b.py", "c.py"]
    assert files[0]["source"] == "# -*- coding: latin-1 -*-\n'\u00e9'\n"
    assert len(files[0]["sha256"]) == 64
    assert (files[1]["source"], files[1]["size"]) == (None, 9)
    assert (files[2]["source"], files[2]["sha256"]) == (None, None)
    hashed = rows(assembled(tmp_path, read_source=read_source, store_sources=False), "files")
    assert hashed[0]["source"] is None
    assert hashed[0]["sha256"] == files[0]["sha256"]
    assert {file["disk_file"] for file in files} == {None}
    of_path = {"a.py": (1, 1), "b.py": (1, 1), "c.py": (2, 2)}
    same = rows(assembled(tmp_path, read_source=read_source, identify_file=of_path.get), "files")
    assert [file["disk_file"] for file in same] == [0, 0, None]


def test_nodes_of_tasks(tmp_path: Path) -> None:
    """Nodes that differ in the task alone are two; those of one name are one, of whatever process."""
    names = ("first", "zweiter ≠", "\U0001f9f5\ud800")
    for pid in (10, 11):
        segment = SegmentBuilder(0, pid, pid)
        segment.code(0, "a.py", "fetch", 1, None)
        segment.stack(9, NONE, 0, 2)
        for stack, name in enumerate(names):
            segment.task_stack(stack, 9, 0, 2, name)
            segment.block(100, stack, stack=stack)
        segment.add(21, struct.pack("<IIIiIBBBB", 3, 9, 0, 2, 1 << 30, 4, 0, 0, 0))  # longer than it is
        segment.add(21, struct.pack("<IIIiIBBBB", 4, 9, 0, 2, 1, 3, 0, 0, 0) + b"abc")  # of no width that there is
        write_spool(tmp_path, of(segment), control(pid=pid, start_ns=pid), f"{pid}-{pid}")
    result = assembled(tmp_path)
    assert [(each["parent"], each["task"]) for each in rows(result, "stacks")] == [
        (None, None),
        (0, "first"),
        (0, "zweiter ≠"),
        (0, "\U0001f9f5\\ud800"),
    ]
    assert counts(result) == {"records_torn": 2}, "of each process"


def time_ordered(tmp_path: Path, *, parts: bool) -> Assembled:
    """Two processes, five segments each, rows out of order inside and across segments."""
    for pid in (10, 11):
        segments = []
        for seq in range(5):
            segment = SegmentBuilder(seq, pid, pid)
            if seq == 0:
                segment.thread_start(0, pid, pid, main=True)
            for index in range(20):
                base = seq * 2000 + index * 100 + (-350 if index % 5 == 0 else 0)
                segment.cpu(base + pid, 0, NONE, pc=0x1000 + seq)
                segment.wait(base + pid, base + pid + 50, 0)
            segments.append(segment.to_bytes())
        write_spool(tmp_path, segments, control(pid=pid, start_ns=pid, seq=4), f"{pid}-{pid}")
        if parts:
            spool, prefix = SpoolDirectory(tmp_path), f"{pid}-{pid}"
            write_part(spool, prefix, [read_segment(segments[0]), read_segment(segments[1])])
            write_part(spool, prefix, [read_segment(segments[2])])
            for seq in range(3):
                (tmp_path / f"{prefix}.{seq:06}.seg").unlink()
    return assembled(tmp_path)


def test_rows_are_in_order_of_time_and_parts_change_nothing(tmp_path: Path) -> None:
    plain, parted = time_ordered(tmp_path / "a", parts=False), time_ordered(tmp_path / "b", parts=True)
    for name, column in (("cpu", "time_ns"), ("waits", "start_ns")):
        times = plain.table(name)[column].to_pylist()
        assert times == sorted(times)
        assert len(times) == 200
        assert parted.table(name).to_pylist() == plain.table(name).to_pylist()
    assert parted.quality == plain.quality == []
    for name in ("threads", "native_frames", "processes"):
        assert parted.table(name).equals(plain.table(name))


def test_damaged_parts_are_counted(tmp_path: Path) -> None:
    time_ordered(tmp_path, parts=True)
    parts = sorted((tmp_path / "parts").iterdir())
    (parts[0] / "cpu.parquet").write_bytes(b"PAR1 and then nothing")
    (parts[1] / "definitions.seg").unlink()
    (parts[2] / "waits.parquet").unlink()
    (parts[2] / "waits.parquet").symlink_to("/dev/zero")
    result = assembled(tmp_path)
    assert sum(entry["count"] for entry in result.quality if entry["loss"] == "segments_missing") == 3
    assert result.table("cpu").num_rows == 160


def test_a_part_that_lacks_values_is_counted(tmp_path: Path) -> None:
    """A field of a record always has a value: a file that says otherwise is damaged."""
    time_ordered(tmp_path, parts=True)
    part = min((tmp_path / "parts").iterdir()) / "cpu.parquet"
    table = pq.read_table(part)
    none = pa.nulls(table.num_rows, table.schema.field("stack").type)
    at = table.column_names.index("stack")
    pq.write_table(table.set_column(at, "stack", none), part)
    assert counts(assembled(tmp_path))["segments_missing"] == 1


def test_missing_and_unreadable_segments_are_counted(tmp_path: Path) -> None:
    segments = [SegmentBuilder(seq).to_bytes() for seq in range(6)]
    segments[1] = bytes(8192)
    segments[2] = b"garbage" * 100
    write_spool(tmp_path, segments, control(seq=4))
    (tmp_path / "4242-1000000000.000003.seg").unlink()
    (tmp_path / "4242-1000000000.000005.seg").write_bytes(bytes(8192))  # prepared, not begun
    assert counts(assembled(tmp_path)) == {"segments_missing": 3}


def test_the_numbers_of_segments_may_have_more_than_six_digits(tmp_path: Path) -> None:
    prefix = "4242-1000000000"
    for seq in (999_999, 1_000_000, 12_345_678):
        (tmp_path / f"{prefix}.{seq:06}.seg").write_bytes(SegmentBuilder(seq).to_bytes())
    (process,) = SpoolDirectory(tmp_path).processes()
    assert process.segments == [999_999, 1_000_000, 12_345_678]
    assert [process.segment(seq).seq for seq in process.segments] == process.segments
    write_part(SpoolDirectory(tmp_path), prefix, [process.segment(seq) for seq in process.segments[:2]])
    (part,) = SpoolDirectory(tmp_path).parts(prefix)
    assert (part.first, part.last) == (999_999, 1_000_000)


def test_without_a_control_file(tmp_path: Path) -> None:
    """It is read, and said that the process may have written more."""
    segment = SegmentBuilder(0)
    segment.thread_start(0, 1, 5, main=True)
    segment.cpu(10)
    write_spool(tmp_path, of(segment), None)
    (tmp_path / "4242-1000000000.ctl").write_bytes(b"not one")
    (tmp_path / "notes.txt").write_text("something else")
    result = assembled(tmp_path)
    process = rows(result, "processes")[0]
    assert (process["pid"], process["start_ns"], process["parent_pid"]) == (4242, 1_000_000_000, None)
    assert result.quality == [{"process": 0, "loss": "ends_uncopied", "count": 1}]
    assert result.ended_ns == 10


def test_write_part_wants_consecutive_segments(tmp_path: Path) -> None:
    segments = [read_segment(SegmentBuilder(seq).to_bytes()) for seq in (0, 2)]
    with pytest.raises(ValueError, match="not consecutive"):
        write_part(SpoolDirectory(tmp_path), "1-1", segments)
    path = write_part(SpoolDirectory(tmp_path), "1-1", segments[:1])
    assert path.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in path.iterdir()} == {0o600}
    assert pa.parquet.read_table(path / "cpu.parquet").num_rows == 0


def test_sampler_cost_and_clock(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.meta("sampler", "signal")
    segment.meta("interval_ns", "5000000")
    write_spool(tmp_path, of(segment), control(samples=3, ticks=4, end_ns=77))
    result = assembled(tmp_path)
    assert result.sampler_cost["helper_cpu_ns"] == 5_000_000
    assert result.sampler_cost["processes"][0]["wait_ticks"] == 4
    assert result.clock == {"monotonic_ns": 1_000_000_000, "utc_ns": 1_800_000_000_000_000_000}
    assert (result.ended_ns, result.parameters) == (77, {"sampler": "signal", "interval_ns": 5_000_000})


def test_a_segment_that_becomes_a_part_while_it_is_read(tmp_path: Path) -> None:
    from tachograph.format.spool.process_reader import read_process

    spool, prefix = SpoolDirectory(tmp_path), "4242-1000000000"
    segments = [SegmentBuilder(seq) for seq in range(2)]
    for segment in segments:
        segment.cpu(10 + segment.seq)
    write_spool(tmp_path, of(*segments), control(seq=1))
    (listed,) = spool.processes()
    write_part(spool, prefix, [listed.segment(0)])
    for removed in (False, True):  # before and after the recording command removed the segment
        if removed:
            listed.segment_path(0).unlink()
        facts, chunks = read_process(spool, listed, SPEC)
        assert sorted(chunk.first_ns for chunk in chunks["cpu"]) == [10, 11]
        assert facts.segments_missing == 0


def test_a_spool_of_a_newer_major_version_is_refused(tmp_path: Path) -> None:
    write_spool(tmp_path, of(SegmentBuilder(0)), control(major=2))
    with pytest.raises(FormatError, match=r"version 2\.0"):
        assemble(SpoolDirectory(tmp_path), SPEC)


@pytest.mark.broad
@pytest.mark.parametrize("seed", range(40))
def test_corrupted_spools_still_give_valid_tables(tmp_path: Path, seed: int) -> None:
    """What can be read is read, with every id in range; nothing is an error."""
    import random

    chance = random.Random(seed)
    segments = []
    for seq in range(3):
        segment = SegmentBuilder(seq, size=16384)
        segment.thread_start(seq, 7, 5)
        segment.thread_name(seq, "name")
        for index in range(12):
            segment.code(12 * seq + index, f"{index % 3}.py", f"f{index}", index, bytes(9))
            segment.stack(12 * seq + index, 12 * seq + index - 1 if index else NONE, 12 * seq + index, index * 2)
            segment.module(12 * seq + index, "/lib/x", index << 12, (index + 1) << 12, time_ns=index)
            segment.cpu(100 * seq + index, seq, 12 * seq + index, pc=(index << 12) + 5)
            segment.wait(100 * seq + index, 200, seq, 12 * seq + index)
            segment.memory(100 * seq + index, {"raw_freed": index}, thread=seq, stack=12 * seq + index)
            segment.block(100 * seq + index, 12 * seq + index, thread=seq, stack=index)
            segment.freed(100 * seq + 50, 12 * ((seq + 1) % 3) + index, seq)
            segment.copy(100 * seq + index, 2000, 1000, thread=seq, stack=index)
        segments.append(bytearray(segment.to_bytes()))
    for _ in range(120):
        data = chance.choice(segments)
        at = chance.randrange(len(data) * 2 // 3)
        # Inside records, too, where the check does not see it.
        data[at : at + 4] = chance.choice([b"\xff" * 4, chance.randbytes(4), bytes(4)])
    head = bytearray(control(seq=2))
    for _ in range(seed % 4):
        at = chance.randrange(16, 640)
        head[at : at + 4] = chance.choice([b"\xff" * 4, chance.randbytes(4)])
    write_spool(tmp_path, [bytes(data[: chance.choice([len(data), 9000])]) for data in segments], bytes(head))
    result = assembled(tmp_path, resolve=lambda _, offsets: [NativePlace()] * len(offsets))
    manifest = Manifest("u", clock=result.clock, ended_ns=result.ended_ns, quality=result.quality)
    manifest.parameters, manifest.sampler_cost = result.parameters, result.sampler_cost
    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


def test_a_census_of_tasks(tmp_path: Path) -> None:
    """Stacks get the recording's ids, in both columns; no stack is null."""
    segment = SegmentBuilder(0)
    segment.stack(8, NONE, NONE, 2)
    segment.stack(9, 8, NONE, 4)
    segment.awaiting(30, 20)
    segment.awaiting(20, 10, stack=9, awaiter=8, tasks=60, chance=0.25)
    write_spool(tmp_path, of(segment), control())
    found, none = rows(assembled(tmp_path), "awaits")
    assert (found["time_ns"], found["since_ns"], found["process"], found["tasks"]) == (20, 10, 0, 60)
    assert found["chance"] == 0.25
    assert found["awaiter"] is not None
    assert found["stack"] != found["awaiter"]
    assert (none["time_ns"], none["stack"], none["awaiter"], none["tasks"]) == (30, None, None, 0)
