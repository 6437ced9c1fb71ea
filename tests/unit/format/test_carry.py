"""What is carried over from one window to the next, and what is in which."""

from dataclasses import replace
from pathlib import Path

import pytest

from support.spool_builder import SegmentBuilder, control, log_record, pending_block, write_spool
from tachograph.format import SpoolDirectory, assemble, load_specification
from tachograph.format.spool.assembly import Assembled
from tachograph.format.spool.process_log import ProcessLog, decode_log, joined
from tachograph.recorder.rotation.journal import carried_log
from tachograph.recorder.rotation.window_handover import ClosedSpool, WindowCut, remove_carried, write_carry

PREFIX = "4242-1000000000"
CUT = 5_000_000_000
UNTURNED, LOST, LASTING = 0, 1, 20


def first() -> bytes:
    """Two threads, of which one ends; of three blocks one dies."""
    segment = SegmentBuilder(0)
    segment.meta("sampler", "native")
    for thread in (0, 1, 2):
        segment.thread_start(thread, 4242 + thread, 1_000_000_000, main=thread == 0)
    segment.code(0, "/x.py", "f", 1, None)
    segment.stack(0, 0xFFFFFFFF, 0, 4)
    segment.cpu(2_000_000_000, 0, 0, cpu_ns=30)
    segment.cpu(2_000_000_001, 1, 0, cpu_ns=7)
    segment.cpu(2_000_000_002, 2, 0, cpu_ns=5)
    segment.thread_end(1, 2_500_000_000, 9)
    segment.thread_end(2, 2_500_000_000, 6)
    segment.memory(1_000_000_000, {"native_allocated": 100}, footprint=100, event=0)
    segment.memory(2_000_000_000, {"native_allocated": 50, "native_freed": 20, "obj_allocated": 7}, footprint=137)
    segment.block(2_000_000_000, 1, thread=0, stack=0)
    segment.block(2_000_000_001, 2, thread=1, stack=0)
    segment.block(2_000_000_002, 3, thread=0, stack=0, followed=0)
    segment.freed(2_000_000_003, 1)
    for block, ms, resident in ((1, 2, 700), (2, 2, 0), (2, 9, 800), (2, 5, 300)):
        segment.touched(2_000_000_000 + ms * 1_000_000, block, resident)
    segment.freed(2_000_000_004, 9)
    segment.span(0, 2_000_000_000, 2_000_000_010, "early")
    return segment.to_bytes()


def second() -> bytes:
    segment = SegmentBuilder(1)
    segment.cpu(6_000_000_000, 0, 0, cpu_ns=40)
    segment.thread_end(0, 7_000_000_000, 75)
    segment.block(1_999_999_999, 9, thread=0, stack=0)
    segment.freed(6_000_000_000, 2, thread=0)
    segment.memory(6_000_000_000, {"native_freed": 30}, footprint=107)
    return segment.to_bytes()


@pytest.fixture
def spool(tmp_path: Path) -> SpoolDirectory:
    ended = control(seq=1, end_ns=7_000_000_000, losses={LOST: 5, LASTING: 1})
    write_spool(tmp_path / "spool", [first(), second()], ended)
    return SpoolDirectory(tmp_path / "spool")


def assembled(spool: SpoolDirectory) -> Assembled:
    return assemble(spool, load_specification())


def turn(spool: SpoolDirectory) -> WindowCut:
    """The process has left segment 0, with three of its losses."""
    (process,) = spool.processes()
    assert process.control is not None
    losses = [0] * 64
    losses[LOST], losses[LASTING] = 3, 1
    return WindowCut(0, process.control._replace(losses=tuple(losses), end_ns=0), over=False)


def step(spool: SpoolDirectory) -> None:
    turned = turn(spool)
    (process,) = spool.processes()
    assert turned.control is not None
    write_carry(process, 0, 2, CUT, turned.control, spool.parts_path)
    remove_carried(spool, PREFIX, 0, 2)


def test_the_closed_window_has_what_came_before(spool: SpoolDirectory) -> None:
    closed = assembled(ClosedSpool(spool.path, {PREFIX: turn(spool)}, CUT, 0))
    assert closed.table("cpu").column("cpu_ns").to_pylist() == [30, 7, 5]
    # The last one was written behind the end of the window, as blocks are when they are a second old.
    assert [row["freed_ns"] for row in closed.table("allocations").to_pylist()] == [
        2_000_000_004,
        2_000_000_003,
        None,
        None,
    ]
    assert closed.table("processes").column("end_ns").to_pylist() == [None]
    assert {entry["loss"]: entry["count"] for entry in closed.quality} == {"stacks_torn": 3, "baseline_unknown": 1}


def test_blocks_without_a_row_are_held_at_the_end_and_in_the_next_window_once(tmp_path: Path) -> None:
    born_later = pending_block(1, CUT + 1, 700)
    control_file = control(seq=1, state=1, pending=[pending_block(0, CUT, 900), born_later], pending_unkept=5)
    write_spool(tmp_path / "spool", [first(), second()], control_file)
    living = SpoolDirectory(tmp_path / "spool")
    late = replace(turn(living), last=-1)
    assert 900 not in sizes(assembled(ClosedSpool(living.path, {PREFIX: late}, CUT, 0)))
    closed = assembled(ClosedSpool(living.path, {PREFIX: turn(living)}, CUT, 0))
    assert sizes(closed).count(900) == 1
    assert 700 not in sizes(closed)
    step(living)
    grown = SegmentBuilder(2)
    grown.block(CUT, 3, 900)
    ended = control(seq=2, state=2, pending=[pending_block(0, CUT, 900), born_later])
    write_spool(tmp_path / "spool", [], ended)
    (tmp_path / "spool" / f"{PREFIX}.000002.seg").write_bytes(grown.to_bytes())
    assert sizes(assembled(living)).count(900) == 1


def test_a_thread_is_known_for_a_while_after_its_end(spool: SpoolDirectory) -> None:
    """What it allocated last is written when it is a second old, and that may be in the next window."""
    step(spool)
    late = SegmentBuilder(2)
    late.block(2_400_000_000, 7, thread=2, stack=0)
    (spool.path / f"{PREFIX}.000002.seg").write_bytes(late.to_bytes())
    (spool.path / f"{PREFIX}.ctl").write_bytes(control(seq=2, end_ns=7_000_000_000))
    after = assembled(spool)
    assert "references_lost" not in {entry["loss"] for entry in after.quality}
    assert [row["cpu_ns"] for row in after.table("threads").to_pylist()] == [75 - 30, 0, 0]


def test_threads_of_the_next_window_are_not_in_the_closed_one(tmp_path: Path) -> None:
    later = SegmentBuilder(1)
    later.thread_start(3, 4245, CUT + 1)
    write_spool(tmp_path / "spool", [first(), later.to_bytes()], control(seq=1))
    living = SpoolDirectory(tmp_path / "spool")
    closed = assembled(ClosedSpool(living.path, {PREFIX: turn(living)}, CUT, 0))
    assert [row["tid"] for row in closed.table("threads").to_pylist()] == [4242, 4243, 4244]


def sizes(result: Assembled) -> list[int]:
    return [row["size_bytes"] for row in result.table("allocations").to_pylist()]


def test_a_record_of_two_logs_counts_as_the_first_has_it() -> None:
    whole = log_record(4, 10, 90, command=b"py\0boss")
    logs = [decode_log(whole), decode_log(log_record(4, 10, 90) + log_record(4, 10, 91))]
    assert [(record.time_ns, record.arguments) for record in joined(logs).records] == [(90, ("py", "boss")), (91, ())]


def test_the_next_window_goes_on_where_it_ended(spool: SpoolDirectory) -> None:
    step(spool)
    after = assembled(spool)
    assert after.table("cpu").column("cpu_ns").to_pylist() == [40]
    # Thread 1 is there for its block, and has used nothing; thread 2 is not there at all.
    threads = after.table("threads").to_pylist()
    assert [row["cpu_ns"] for row in threads] == [75 - 30, 0]
    assert [row["start_ns"] for row in threads] == [CUT, 2_500_000_000]
    blocks = after.table("allocations").to_pylist()
    assert [(row["time_ns"], row["freed_ns"]) for row in blocks] == [
        (1_999_999_999, 2_000_000_004),
        (2_000_000_001, 6_000_000_000),
    ]
    opening, later = after.table("memory").to_pylist()
    assert (opening["time_ns"], opening["event"], opening["footprint_bytes"]) == (CUT, 0, 137)
    assert (opening["native_allocated_bytes"], opening["obj_allocated_bytes"]) == (130, 7)
    assert later["footprint_bytes"] == 107
    assert after.table("spans").num_rows == 0
    (process,) = after.table("processes").to_pylist()
    assert (process["start_ns"], process["end_ns"]) == (CUT, 7_000_000_000)
    assert {entry["loss"]: entry["count"] for entry in after.quality} == {"stacks_torn": 2, "baseline_unknown": 1}


def test_what_was_told_last_of_a_block_that_is_held_is_carried_over(spool: SpoolDirectory) -> None:
    told = [(row["block"], row["resident_bytes"]) for row in assembled(spool).table("touched").to_pylist()]
    assert told == [(1, 700), (2, 0), (2, 300), (2, 800)]
    step(spool)
    result = assembled(spool)
    assert [(row["block"], row["resident_bytes"]) for row in result.table("touched").to_pylist()] == [(2, 800)]
    assert [row["block"] for row in result.table("allocations").to_pylist()] == [None, 2]
    step(spool)
    assert assembled(spool).table("touched").num_rows == 1


def test_what_was_not_removed_yet_is_not_there_twice(spool: SpoolDirectory) -> None:
    turned = turn(spool)
    (process,) = spool.processes()
    assert turned.control is not None
    write_carry(process, 0, 2, CUT, turned.control, spool.parts_path)
    assert (spool.path / f"{PREFIX}.000000.seg").exists()
    assert assembled(spool).table("cpu").column("cpu_ns").to_pylist() == [40]


def test_a_second_step_carries_the_first_one_on(spool: SpoolDirectory) -> None:
    step(spool)
    (process,) = spool.processes()
    assert process.control is not None
    write_carry(process, 1, 3, 8_000_000_000, process.control, spool.parts_path)
    remove_carried(spool, PREFIX, 1, 3)
    assert sorted(path.name for path in spool.parts_path.iterdir()) == [f"{PREFIX}.000000-000001.3"]
    last = assembled(spool)
    assert last.table("cpu").num_rows == last.table("allocations").num_rows == 0
    assert last.table("memory").to_pylist()[0]["native_allocated_bytes"] == 100
    assert {entry["loss"] for entry in last.quality} == {"baseline_unknown"}


def test_a_process_that_did_not_leave_its_segment_is_in_the_next_window(spool: SpoolDirectory) -> None:
    late = replace(turn(spool), last=-1)
    closed = assembled(ClosedSpool(spool.path, {PREFIX: late}, CUT, 0))
    assert closed.table("cpu").num_rows == closed.table("allocations").num_rows == 0
    assert "segments_missing" not in {entry["loss"] for entry in closed.quality}
    assert assembled(spool).table("cpu").num_rows == 4


def test_the_log_keeps_who_lives_on() -> None:
    records = [
        log_record(5, 10, 90, executable=b"/py", command=b"py\0boss"),
        log_record(1, 10, 100, executable=b"/py", command=b"py\0boss"),
        log_record(1, 11, 110, command=b"gone"),
        log_record(2, 11, 120, status=0),
        log_record(4, 12, 130, numbers=(10, 100, -1)),
        log_record(1, 13, 140, command=b"ends soon"),
        log_record(1, 14, 150, command=b"killed"),
        log_record(2, 13, 210, status=0),
        log_record(1, 15, 220, command=b"new"),
    ]
    log = decode_log(b"".join(records))
    kept = decode_log(carried_log(log, 1, 200, 7, lambda record: record.pid in (10, 12)))
    assert kept.window is not None
    assert (kept.window.time_ns, kept.window.first) == (200, 7)
    assert [(record.event.name, record.pid) for record in kept.records] == [
        ("WINDOW", 1),
        ("FIRST", 10),
        ("START", 10),
        ("FORK", 12),
        ("START", 13),
        ("END", 13),
        ("START", 15),
    ]
    assert kept.records[3].arguments == ("py", "boss")
    again = decode_log(carried_log(ProcessLog(kept.records), 1, 300, 8, lambda record: record.pid == 12))
    assert [record.pid for record in again.records] == [1, 10, 12]
