"""The process log: what is damaged is counted, what came after the bound as well."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.spool_builder import SegmentBuilder, control, log_record, short_record, write_spool
from support.traced_memory import traced
from tachograph.format import SpoolDirectory, assemble, load_specification
from tachograph.format.spool.process_log import BOUND, Event, decode_log, encode_record, images_of, shortened

SPEC = load_specification()


def test_records_behind_damage_are_found() -> None:
    cut_short = log_record(1, 2, 20)[:300]  # the disk was full
    data = b"".join([log_record(1, 1, 10), b"\1" * 300, log_record(1, 2, 20), cut_short, log_record(2, 1, 30)])
    log = decode_log(data)
    assert [(record.event, record.pid) for record in log.records] == [(1, 1), (1, 2), (2, 1)]
    assert (log.torn, log.unlisted) == (2, 0)


def test_short_records_are_read_as_long_ones() -> None:
    texts = [(b"", b""), (b"/bin/x", b""), (b"", b"a\0b"), (b"/bin/x", b"y" * 442)]
    long = [log_record(1, number, 10, executable=path, command=rest) for number, (path, rest) in enumerate(texts)]
    short = [short_record(record) for record in long]
    assert short == [shortened(record) for record in long]
    assert [len(record) for record in short] == [64, 70, 67, 512]
    wanted = decode_log(b"".join(long))
    assert len(wanted.records) == len(long)
    assert wanted.torn == 0
    assert decode_log(b"".join(short)) == wanted
    assert decode_log(b"".join(short[:2] + long[2:])) == wanted
    damaged = decode_log(b"".join([short[1][:-1], short[0], b"TACHPRC2" + b"\xff" * 56, short[3]]))
    assert ([record.pid for record in damaged.records], damaged.torn) == ([0, 3], 2)
    assert shortened(b"no record" * 57)[:512] == (b"no record" * 57)[:512]


@pytest.mark.broad
def test_what_came_after_the_bound_is_counted() -> None:
    record = log_record(1, 1, 10)
    full = record * (BOUND // len(record))
    log = decode_log(full + b"\1\2\4" + record + b"\3\1\1\1")
    assert len(log.records) == BOUND // len(record) + 1
    assert (log.unlisted, log.torn) == (5, 0)


def test_our_own_records_are_read_back() -> None:
    data = encode_record(Event.FIRST, 7, 6, 5, status=-9, executable=b"/bin/x" * 100, arguments=b"a\0b")
    (record,) = decode_log(data).records
    assert len(data) == 512
    assert (record.event, record.pid, record.parent_pid, record.time_ns, record.status) == (Event.FIRST, 7, 6, 5, -9)
    assert record.cut
    assert record.arguments == ()
    (record,) = decode_log(encode_record(Event.START, 7, 6, 5, executable=b"/x", arguments=b"a\0\0b c\0")).records
    assert (record.executable, record.arguments, record.status, record.cut) == ("/x", ("a", "", "b c"), None, False)


def test_a_first_process_that_says_nothing_itself() -> None:
    """A static program: the recording command speaks for it, and its child knows it by its pid."""
    log = decode_log(
        log_record(5, 50, 10, parent=1, command=b"busybox")
        + log_record(1, 51, 12, parent=50, command=b"python3")
        + log_record(2, 50, 20, status=4)
    )
    first, child = images_of(log).found
    assert (first.origin, first.command, first.exit_status, first.end_ns) == ("first", "busybox", 4, 20)
    assert images_of(log).parent(images_of(log).found[1]).pid == 50  # type: ignore[union-attr]
    assert child.origin == "exec"


def test_the_end_that_the_process_told_counts() -> None:
    told = log_record(2, 50, 20, numbers=(3, 4, 5))
    log = decode_log(log_record(1, 50, 10) + told + log_record(2, 50, 25, status=-11))
    (image,) = images_of(log).found
    assert (image.end_ns, image.exit_status, image.user_ns, image.max_resident_bytes) == (20, -11, 3, 5)


def test_a_process_id_that_is_used_again(tmp_path: Path) -> None:
    """Each part of the spool belongs to the process that was alive when it was begun."""
    log = [log_record(1, 9, 100), log_record(2, 9, 200), log_record(1, 9, 300), log_record(2, 9, 400)]
    for start in (350, 110, 250):
        segment = SegmentBuilder(0, 9, start)
        segment.cpu(start + 1)
        write_spool(tmp_path, [segment.to_bytes()], control(pid=9, start_ns=start), f"9-{start}")
    (tmp_path / "processes.log").write_bytes(b"".join(log))
    result = assemble(SpoolDirectory(tmp_path), SPEC, exit_statuses={9: 5})
    rows = result.table("processes").to_pylist()
    assert [(row["start_ns"], row["end_ns"], row["exit_status"]) for row in rows] == [
        (110, 200, None),
        (250, None, None),
        (350, 400, 5),
    ]
    assert result.table("cpu")["thread"].to_pylist() == [0, 1, 2]
    assert result.table("threads")["process"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("ended", [False, True])
def test_who_ended_when_asked_did_not_outlive_the_program(tmp_path: Path, ended: bool) -> None:
    log = log_record(1, 9, 100) + (log_record(2, 9, 200, status=0) if ended else b"")
    head = control(pid=9, start_ns=110, end_ns=190, stop_requested=1)
    write_spool(tmp_path, [SegmentBuilder(0, 9, 110).to_bytes()], head, "9-110")
    (tmp_path / "processes.log").write_bytes(log)
    result = assemble(SpoolDirectory(tmp_path), SPEC)
    (row,) = result.table("processes").to_pylist()
    outlived = [{"process": 0, "loss": "processes_outlived", "count": 1}]
    assert (row["end_ns"], result.quality) == ((200, []) if ended else (None, outlived))


def test_an_exec_that_failed(tmp_path: Path) -> None:
    """The program goes on, and a later process of the same id has not taken its place."""
    log = log_record(1, 9, 100) + log_record(3, 9, 150) + log_record(2, 9, 200) + log_record(1, 9, 300)
    images = images_of(decode_log(log)).found
    assert [(image.end_ns, image.replaced) for image in images] == [(200, None), (None, None)]


@pytest.mark.parametrize("seed", range(20))
def test_a_corrupted_log_still_gives_valid_tables(tmp_path: Path, seed: int) -> None:
    from tachograph.format import check_batch

    chance = random.Random(seed)
    records = [
        log_record(
            chance.choice([1, 1, 2, 3, 4, 5, 6, 9]),
            chance.randrange(5),
            chance.choice([chance.randrange(100), -(1 << 63), (1 << 63) - 1]),
            parent=chance.randrange(5),
            status=chance.choice([0, -9, -(1 << 31)]),
            numbers=(chance.randrange(-1, 5), chance.randrange(-1, 100), -(1 << 63)),
            executable=b"\xff/x",
            command=chance.choice([b"", b"a\0b", b"--password\0\xfe\xff", b"y" * 400]),
        )
        for _ in range(60)
    ]
    records = [short_record(record) if chance.random() < 0.5 else record for record in records]
    data = bytearray(b"".join(records))
    for _ in range(80):
        at = chance.randrange(len(data))
        data[at : at + 4] = chance.choice([b"\xff" * 4, chance.randbytes(4), bytes(4), b""])
    write_spool(tmp_path, [SegmentBuilder(0, 3, 50).to_bytes()], control(pid=3, start_ns=50), "3-50")
    (tmp_path / "processes.log").write_bytes(bytes(data))
    result = assemble(SpoolDirectory(tmp_path), SPEC)
    table = result.table("processes")
    check_batch(SPEC.tables["processes"], table, {"processes": table.num_rows}, "processes")
    table.validate(full=True)
    for row in table.to_pylist():
        assert row["parent"] is None or row["parent"] < row["process"]


@pytest.mark.broad
def test_thousands_of_listed_processes_are_quick_and_small(tmp_path: Path) -> None:
    count = 5_000
    log = b"".join(
        log_record(1, pid, pid * 10, parent=max(1, pid // 2), executable=b"/usr/bin/cc", command=b"cc\0-c\0a.c")
        + log_record(2, pid, pid * 10 + 5, status=0, numbers=(1, 2, 3))
        for pid in range(1, count + 1)
    )
    (tmp_path / "processes.log").write_bytes(log)
    table, _, peak = traced(lambda: assemble(SpoolDirectory(tmp_path), SPEC).table("processes"))
    assert table.num_rows == count
    assert peak < 30e6


def test_what_the_parent_was_told_counts() -> None:
    """It is the kernel's, and of a child that was killed all there is; another process of the number was not told."""
    start = log_record(1, 50, 10, parent=7)
    reaped = log_record(8, 50, 30, parent=7, status=-9, numbers=(3, 4, 5))
    again = log_record(8, 50, 40, parent=7, status=0, numbers=(1, 1, 1))
    (image,) = images_of(decode_log(start + reaped + again)).found
    assert (image.end_ns, image.exit_status, image.user_ns, image.system_ns) == (30, -9, 3, 4)
    assert image.max_resident_bytes == 5
    own = log_record(2, 50, 20, status=0, numbers=(1, 2, 9))
    (image,) = images_of(decode_log(start + own + reaped)).found
    assert (image.end_ns, image.exit_status, image.user_ns, image.max_resident_bytes) == (20, -9, 3, 9)
    (image,) = images_of(decode_log(start + log_record(8, 50, 30, parent=8, status=-9))).found
    assert (image.end_ns, image.exit_status) == (None, None)


def test_the_end_of_an_orphan_is_told_to_who_adopts_it() -> None:
    parent, end = log_record(1, 40, 5, parent=7), log_record(2, 40, 15, status=0)
    orphan = log_record(1, 50, 10, parent=40)
    reaped = log_record(8, 50, 30, parent=1, status=-9, numbers=(3, 4, -1))
    ends = [
        images_of(decode_log(log)).found[1].exit_status
        for log in (parent + orphan + reaped, parent + orphan + end + reaped)
    ]
    assert ends == [None, -9]


def test_the_memory_of_an_earlier_program_is_not_that_of_the_last() -> None:
    log = b"".join(
        [
            log_record(1, 50, 10, parent=7),
            log_record(3, 50, 20, parent=7),
            log_record(1, 50, 21, parent=7),
            log_record(8, 50, 30, parent=7, status=-9, numbers=(3, 4, 5)),
        ]
    )
    first, last = images_of(decode_log(log)).found
    assert (first.exit_status, last.exit_status, last.max_resident_bytes) == (None, -9, None)


def test_a_killed_recording_ends_with_the_last_that_is_known(tmp_path: Path) -> None:
    """Not with the last end of a process that said one: its parent went on."""
    went_on, ended = SegmentBuilder(0), SegmentBuilder(0)
    went_on.thread_start(0, 1, 5, main=True)
    went_on.cpu(2_000_000_000)
    write_spool(tmp_path, [went_on.to_bytes()], control(end_ns=0))
    write_spool(tmp_path, [ended.to_bytes()], control(end_ns=1_500_000_000), prefix="4300-1100000000")
    spool = SpoolDirectory(tmp_path)
    assert assemble(spool, SPEC).ended_ns == 2_000_000_000
    (tmp_path / "processes.log").write_bytes(log_record(1, 4400, 2_500_000_000))
    assert assemble(spool, SPEC).ended_ns == 2_500_000_000


def test_children_that_wrote_nothing_have_their_time_in_the_ledger(tmp_path: Path) -> None:
    """Not those of a moment, as one whose program could not be started, and not where ids are a namespace's."""
    start = log_record(1, 50, 10, parent=7)
    unlisted = log_record(8, 51, 30, parent=50, status=0, numbers=(900_000_000, 34_500_000, -1))
    failed = log_record(8, 52, 30, parent=50, status=127, numbers=(4_000_000, 5_000_000, -1))
    unknown = log_record(8, 53, 30, parent=50, status=-9, numbers=(-1, -1, -1))
    (tmp_path / "processes.log").write_bytes(start + unlisted + failed + unknown)
    expected = {"process": None, "loss": "children_unlisted_ms", "count": 934}
    assert assemble(SpoolDirectory(tmp_path), SPEC).quality == [expected]
    (tmp_path / "processes.log").write_bytes(log_record(1, 50, 10, parent=0) + unlisted)
    assert assemble(SpoolDirectory(tmp_path), SPEC).quality == []
