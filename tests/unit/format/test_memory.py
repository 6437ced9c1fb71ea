"""From a spool to the tables memory, allocations and copies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.spool_builder import NONE, SegmentBuilder, control, pending_block, write_spool
from tachograph.format import (
    FormatError,
    SpoolDirectory,
    check_batch,
    check_schema,
    complete,
    load_specification,
    read_segment,
    write_part,
    write_recording,
    write_table,
)
from unit.format.test_assembly import assembled, counts, of, rows

SPEC = load_specification()
UUID = "a uuid"


def test_unknown_is_null_in_memory(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.thread_start(3, 7, 5, main=True)
    segment.stack(8, NONE, NONE, 2)
    segment.memory(10, {"native_allocated": 7}, event=0)
    known: dict[str, Any] = {
        "footprint": -5,
        "peak": 0,
        "resident": 0,
        "faults": (0, 0),
        "kept": 0,
        "thread": 3,
        "stack": 8,
    }
    segment.memory(20, {"obj_freed": 9}, event=1, state=0, pc=0x10, **known)
    write_spool(tmp_path, of(segment), control())
    first, second = rows(assembled(tmp_path), "memory")
    unknown = ["footprint_bytes", "peak_bytes", "resident_bytes", "minor_faults", "major_faults", "kept_frames"]
    assert [first[name] for name in [*unknown, "thread", "stack", "native_frame"]] == [None] * 9
    assert [second[name] for name in [*unknown, "thread", "stack", "native_frame"]] == [-5, 0, 0, 0, 0, 0, 0, 0, 0]
    assert (first["native_allocated_bytes"], first["obj_freed_bytes"], first["event"]) == (7, 0, 0)
    assert (second["native_allocated_bytes"], second["obj_freed_bytes"], second["stack_state"]) == (0, 9, 0)


@pytest.mark.parametrize(("state", "sizes"), [(1, [500, 700, 900]), (2, [500]), (3, [500, 700, 900])])
def test_pending_blocks_of_a_killed_process(tmp_path: Path, state: int, sizes: list[int]) -> None:
    """What lies in places behind the control file are births, unless the process has written them itself."""
    segment = SegmentBuilder(0)
    segment.stack(8, NONE, NONE, 2)
    segment.block(10, 0, 500)
    places = [pending_block(0, 30, 900), b"", pending_block(2, 20, 700, stack=8), pending_block(3, 40, 1, seq=1), b"\1"]
    write_spool(tmp_path, of(segment), control(state=state, pending=places, pending_unkept=4, own_bytes=4_000_000))
    result = assembled(tmp_path)
    found = rows(result, "allocations")
    assert [row["size_bytes"] for row in found] == sorted(sizes)
    assert [row["freed_ns"] for row in found] == [None] * len(sizes)
    if state != 2:
        assert found[1]["stack"] is not None
        assert found[1]["weight_bytes"] == 524288 + 350
    assert counts(result) == ({} if state == 2 else {"blocks_unkept": 4})
    assert result.sampler_cost["processes"][0]["own_bytes"] == 4_000_000


@pytest.mark.parametrize("state", [1, 2, 3])
def test_bytes_that_a_killed_process_had_not_recorded(tmp_path: Path, state: int) -> None:
    """They are a row at the time of its latest one, with the footprint that follows; an ended process has recorded all.

    A row may be written while bytes are noted: what is in it already is negative, and counts as nothing.
    """
    segment = SegmentBuilder(0)
    segment.memory(20, {"obj_allocated": 100}, footprint=5000, event=0)
    segment.block(30, 0, 500)
    unrecorded = [0, 0, 0, 0, 700, 300, -9, 0, 4000, 1000]
    write_spool(tmp_path, of(segment), control(state=state, footprint=5000, unrecorded=unrecorded))
    found = rows(assembled(tmp_path), "memory")
    assert len(found) == (1 if state == 2 else 2)
    if state != 2:
        last = found[-1]
        assert (last["time_ns"], last["event"], last["footprint_bytes"]) == (30, 2, 5000 + 700 - 300 + 4000 - 1000)
        flows = {name: value for name, value in last.items() if name.endswith(("_allocated_bytes", "_freed_bytes"))}
        told = {name: value for name, value in flows.items() if value}
        assert told == {
            "raw_allocated_bytes": 700,
            "raw_freed_bytes": 300,
            "obj_allocated_bytes": 4000,
            "obj_freed_bytes": 1000,
        }
        assert [last[name] for name in ("peak_bytes", "resident_bytes", "minor_faults", "thread", "stack")] == [
            None
        ] * 5


def test_deaths_find_their_births_wherever_they_are(tmp_path: Path) -> None:
    """Two processes with equal ids of blocks; deaths before and long after their births, in parts and segments."""
    for pid in (10, 11):
        segments = [SegmentBuilder(seq, pid, pid) for seq in range(5)]
        for thread in (0, 1):
            segments[0].thread_start(thread, pid + thread, pid, main=thread == 0)
        segments[0].block(pid + 100, 0, 500, thread=0, domain=4)
        segments[1].freed(pid + 900, 3, 1)  # before its birth is written
        segments[1].block(pid + 300, 1, 700, thread=NONE, followed=0)
        segments[2].block(pid + 200, 2, 600)
        segments[3].block(pid + 250, 3, 800, thread=1)
        segments[3].freed(pid + 5000, 99)  # its birth is lost
        segments[4].freed(pid + 1000 * pid, 0)
        segments[4].freed(pid + 1000 * pid + 1, 0, 1)
        data = of(*segments)
        prefix = f"{pid}-{pid}"
        write_spool(tmp_path, data, control(pid=pid, start_ns=pid, seq=4), prefix)
        if pid == 11:
            spool = SpoolDirectory(tmp_path)
            for several in (data[:1], data[1:3], data[3:4]):
                write_part(spool, prefix, [read_segment(each) for each in several])
            for seq in range(4):
                (tmp_path / f"{prefix}.{seq:06}.seg").unlink()
    result = assembled(tmp_path)
    found = [
        (each["process"], each["time_ns"], each["size_bytes"], each["thread"], each["freed_ns"], each["freed_thread"])
        for each in rows(result, "allocations")
    ]
    assert found == [
        (0, 110, 500, 0, 10_010, None),
        (1, 111, 500, 2, 11_011, None),
        (0, 210, 600, None, None, None),
        (1, 211, 600, None, None, None),
        (0, 260, 800, 1, 910, 1),
        (1, 261, 800, 3, 911, 3),
        (0, 310, 700, None, None, None),
        (1, 311, 700, None, None, None),
    ]
    assert [each["followed"] for each in rows(result, "allocations")] == [True] * 6 + [False] * 2
    assert counts(result) == {}
    assert result.table("memory").num_rows == 0


def test_damaged_sizes_are_left_out_and_counted(tmp_path: Path) -> None:
    segments = [SegmentBuilder(0), SegmentBuilder(1)]
    for segment in segments:
        segment.memory(1, {"mem_freed": -1})
        segment.memory(2, {"mem_freed": 0})
        segment.block(3, 0, -1)
        segment.block(4, 1, 0, requested=-1)
        segment.block(5, 2, 0, mean=0)
        segment.block(6, 3, 0, mean=1)
        segment.copy(7, -1, 0)
        segment.copy(8, 0, 0, mean=0)
    write_spool(tmp_path, of(*segments), control(seq=1))
    write_part(SpoolDirectory(tmp_path), "4242-1000000000", [read_segment(segments[0].to_bytes())])
    result = assembled(tmp_path)
    assert [each["time_ns"] for each in rows(result, "memory")] == [2, 2]
    assert [each["time_ns"] for each in rows(result, "allocations")] == [6, 6]
    assert [each["time_ns"] for each in rows(result, "copies")] == [8, 8]
    assert counts(result) == {"records_torn": 10, "references_lost": 1}


def test_the_shutdown_of_the_interpreter(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    for time_ns, event in ((5, 1), (6, 2), (70, 6), (80, 6)):
        segment.state(time_ns, event)
    write_spool(tmp_path, of(segment), control())
    assert rows(assembled(tmp_path), "processes")[0]["exiting_ns"] == 70


def test_a_part_without_rows_of_a_kind_has_no_file_of_them(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.copy(5, 100, 60)
    (tmp_path / "spool").mkdir()
    path = write_part(SpoolDirectory(tmp_path / "spool"), "4242-1000000000", [read_segment(segment.to_bytes())])
    assert sorted(each.name for each in path.iterdir()) == [
        "copies.parquet",
        "cpu.parquet",
        "definitions.seg",
        "waits.parquet",
    ]


def test_tables_without_rows_are_left_out(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.copy(5, 100, 60)
    write_spool(tmp_path / "spool", of(segment), control())
    written = write_recording(assembled(tmp_path / "spool"), tmp_path, UUID)
    assert set(SPEC.tables) - set(written) == {
        "native_stacks",
        "positions",
        "referrers",
        "touched",
        "redundancies",
        "memory",
        "memory_parts",
        "page_faults",
        "allocations",
        "awaits",
        "spans",
        "gpu_devices",
        "gpu",
        "calls",
        "call_times",
    }
    assert sorted(each.name for each in tmp_path.glob("*.parquet")) == sorted(f"{name}.parquet" for name in written)
    assert written["copies"]["rows"] == 1


def test_columns_that_an_old_recording_lacks() -> None:
    table = SPEC.tables["processes"]
    old = pa.schema([field for field in table.schema if not table.by_name[field.name].since])
    assert check_schema(table, old, "processes") == old.names
    content = pa.table([[0], [None], [1], [None], [5], *[[None]] * 6], schema=old)
    whole = complete(table, content)
    assert whole.schema.equals(table.schema)
    assert whole["exiting_ns"].to_pylist() == whole["recorded"].to_pylist() == [None]
    check_batch(table, whole, {"processes": 1}, "processes")
    few = complete(table, content.select(["pid"]), ["exiting_ns", "pid"])
    assert few.to_pylist() == [{"pid": 1, "exiting_ns": None}]
    with pytest.raises(FormatError, match="the column pid is missing"):
        check_schema(table, pa.schema([field for field in old if field.name != "pid"]), "processes")


def test_values_below_the_least_are_refused() -> None:
    table = SPEC.tables["copies"]
    for sizes, message in (
        ((0, 5), None),
        ((0, -5), "the column size_bytes has the value -5, and may have none below 0"),
    ):
        batch = pa.table({"size_bytes": pa.array(sizes, pa.int64())})
        if message is None:
            check_batch(table, batch, {}, "copies")
        else:
            with pytest.raises(FormatError, match=message):
                check_batch(table, batch, {}, "copies")


def some_allocations(count: int) -> pa.Table:
    """Half a minute and more of a program with 300 places that allocate, each with sizes and lifetimes of its own."""
    chance = random.Random(1)
    places = []
    for _ in range(300):
        domain = chance.choices(range(5), [25, 5, 5, 10, 55])[0]
        asked = 2 ** chance.uniform(18, 24) if domain == 1 else 2 ** chance.uniform(5, 9 if domain == 4 else 21)
        places.append((domain, int(asked), chance.random() < 0.4, chance.randrange(40), 10 ** chance.uniform(4, 12)))
    now, end = 0, count * 20_000_000
    found = []
    for _ in range(count):
        now += int(chance.expovariate(1e-7))
        (at,) = chance.choices(range(300), [1 / (1 + place) for place in range(300)])
        domain, asked, varies, frame, life = places[at]
        requested = max(1, int(asked * chance.lognormvariate(0, 0.6))) if varies else asked
        lived = int(chance.expovariate(1 / life))
        freed = (now + lived, at % 3) if now + lived < end else (None, None)
        size = -(-requested // 16) * 16
        # Of each second the places with much share their own sum, and the others stand for the same.
        step = 5_000_000 + hash(now // 10**9) % 3_000_000
        own = at < 20 or size > step
        mean = 524_288 if own else 16384 * chance.randrange(128, 256)
        weight = max(size, step + hash((now // 10**9, at)) % step) if own else step
        found.append(
            (now, 0, at % 3, domain, size, requested, mean, weight, at, frame, 0, True, *freed, None, 0, None, None)
        )
    schema = SPEC.tables["allocations"].schema
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(zip(*found, strict=True), schema, strict=True)],
        schema=schema,
    )


def quiet_ticks(count: int) -> pa.Table:
    """A reading each second of a program that only answers now and then."""
    chance = random.Random(1)
    found = []
    now, footprint, faults = 0, 80 << 20, 20_000
    for _ in range(count):
        now += 1_000_000_000 + chance.randrange(-500_000, 500_000)
        made = chance.randrange(100) * 320
        freed = max(0, made - chance.choice([0, 0, 0, 16, 48, 64, 512]))
        footprint += made - freed
        faults += chance.choice([0, 0, 0, 1, 2])
        flows = (0, 0, 0, 0, 0, 0, 512, 512, made, freed)
        found.append(
            (
                now,
                0,
                None,
                2,
                footprint,
                footprint + chance.choice([0, 512]),
                *flows,
                95 << 20,
                faults,
                3,
                None,
                None,
                5,
                None,
            )
        )
    schema = SPEC.tables["memory"].schema
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(zip(*found, strict=True), schema, strict=True)],
        schema=schema,
    )


def test_the_tables_are_small(tmp_path: Path) -> None:
    written = write_table(some_allocations(3000), tmp_path / "allocations.parquet", SPEC, "allocations", UUID)
    assert written["bytes"] < 16 * 3000
    written = write_table(quiet_ticks(3600), tmp_path / "memory.parquet", SPEC, "memory", UUID)
    assert written["bytes"] < 9 * 3600
