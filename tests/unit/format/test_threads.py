"""The table threads: what counts of several records, which threads are rows, and what a million of them take."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.traced_memory import traced_assembly
from tachograph.format import SpoolDirectory, load_specification, read_segment, write_part
from tachograph.format.spool.layout import CARRIED, SHAPES, THREAD_CARRIED
from tachograph.format.spool.process_reader import read_process
from tachograph.format.spool.threads_table import threads_table
from unit.format.test_assembly import assembled, counts, of, rows

SPEC = load_specification()
PYTHON, SYSTEM = 1, 2
UNKNOWN_CPU = -1


def carried(segment: SegmentBuilder, window_ns: int) -> None:
    """The window begins then."""
    segment.add(CARRIED, SHAPES[CARRIED].fixed.pack(window_ns, 0, 0, 0, 0, *[0] * 64))


def carried_thread(segment: SegmentBuilder, thread: int, cpu_ns: int) -> None:
    """What a thread did in earlier windows."""
    segment.add(THREAD_CARRIED, SHAPES[THREAD_CARRIED].fixed.pack(thread, cpu_ns))


def test_the_last_record_of_a_thread_counts(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    segment.thread_start(7, 1, 5)
    segment.thread_start(7, 2, 6, main=True)
    segment.thread_end(7, 90, 40)
    segment.thread_end(7, 80, 30)
    segment.thread_origin(7, 3, 0x10)
    segment.thread_origin(7, 7, 0x20)
    write_spool(tmp_path, of(segment), control())
    (row,) = rows(assembled(tmp_path), "threads")
    assert (row["tid"], row["start_ns"], row["main"]) == (2, 6, True)
    assert (row["end_ns"], row["cpu_ns"], row["creator"]) == (80, 30, 0)


def test_names_by_python_win_then_later_ones(tmp_path: Path) -> None:
    segments = [SegmentBuilder(seq) for seq in range(2)]
    for thread in range(4):
        segments[0].thread_start(thread, thread, 5)
    for segment, number, thread, source in (
        (0, 1, 0, SYSTEM),
        (0, 2, 0, SYSTEM),
        (0, 3, 1, PYTHON),
        (0, 4, 1, SYSTEM),
        (0, 5, 2, SYSTEM),
        (0, 6, 2, PYTHON),
        (1, 7, 2, PYTHON),
        (1, 8, 1, SYSTEM),
    ):
        segments[segment].thread_name(thread, f"name {number}", source)
    write_spool(tmp_path, of(*segments), control(seq=1))
    found = [(each["name"], each["python_name"]) for each in rows(assembled(tmp_path), "threads")]
    assert found == [("name 2", False), ("name 3", True), ("name 7", True), (None, None)]


def test_names_in_any_bytes(tmp_path: Path) -> None:
    """What is not UTF-8 is told as escapes, and a name that is longer than its record is none."""
    segment = SegmentBuilder(0)
    for thread, name in enumerate((b"plain", b"\xc3\xa9t\xc3\xa9", b"\xff!", b"", b"\xc3")):
        segment.add(3, thread.to_bytes(4, "little") + bytes((PYTHON, 0, len(name), 0)) + name)
    segment.add(3, bytes((9, 0, 0, 0, PYTHON, 0, 200, 0)) + b"short")
    write_spool(tmp_path, of(segment), control())
    names = [each["name"] for each in rows(assembled(tmp_path), "threads")]
    assert names == ["plain", "\u00e9t\u00e9", "\\xff!", "", "\\xc3"]


def test_ids_that_lie_far_apart(tmp_path: Path) -> None:
    """A damaged id takes no room of its own; a row that names it, and no other record, still has its thread."""
    segment = SegmentBuilder(0, size=1 << 22)
    threads = [*range(10_000), 1 << 31, NONE - 1]
    for thread in threads[:-1]:
        segment.thread_start(thread, thread & 0xFFFF, 5)
    for number, thread in enumerate(threads[::-1]):
        segment.cpu(10 + number, thread)
    segment.span(0, 10, 20, "of the last", thread=NONE - 1)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    assert [each["thread"] for each in rows(result, "cpu")] == [*range(10_001, -1, -1)]
    assert [each["thread"] for each in rows(result, "spans")] == [10_001]
    assert [each["tid"] for each in rows(result, "threads")[-3:]] == [9_999, 0, None]
    assert counts(result) == {"references_lost": 1}


def reference(
    own: list[tuple[Any, ...]], later: list[tuple[Any, ...]], mentioned: set[int], window_ns: int | None
) -> list[tuple[Any, ...]]:
    """The rows as SPEC.md has them, thread by thread: tid, name, python_name, start_ns, end_ns, cpu_ns, creator."""
    found: dict[int, dict[str, Any]] = {}
    for kind, thread, *values in [*own, *(each for each in later if each[0] in ("start", "name", "origin"))]:
        known = found.setdefault(thread, {})
        if kind == "name" and known.get("name", ("", SYSTEM))[1] == PYTHON != values[1]:
            continue
        known[kind] = values
    defined = {thread for _, thread, *_ in own}
    over = {
        thread
        for thread, known in found.items()
        if window_ns is not None and "end" in known and known["end"][0] < window_ns
    }
    threads = sorted((defined - over) | mentioned)
    table = []
    for thread in threads:
        known = found.get(thread, {})
        tid, start_ns = known.get("start", (None, None))
        name, source = known.get("name", (None, None))
        end_ns, end_cpu_ns = known.get("end", (None, None))
        (earlier_ns,) = known.get("carried", (0,))
        creator = known.get("origin", (None,))[0]
        began_ns = start_ns
        if start_ns is not None:
            began_ns = start_ns if window_ns is None else max(start_ns, window_ns)
            began_ns = began_ns if end_ns is None else min(began_ns, max(end_ns, start_ns))
        used = end_ns is not None and end_cpu_ns >= 0 and earlier_ns >= 0
        table.append(
            (
                tid,
                name,
                None if source is None else source == PYTHON,
                began_ns,
                end_ns,
                max(0, end_cpu_ns - earlier_ns) if used else None,
                threads.index(creator) if creator in threads else None,
            )
        )
    return table


def random_records(chance: random.Random) -> list[tuple[Any, ...]]:
    """Some records: their kind, thread and values."""
    found = []
    for _ in range(chance.randrange(25)):
        kind = chance.choice(["start", "name", "name", "end", "origin", "carried"])
        time_ns = chance.randrange(1000)
        values: dict[str, tuple[Any, ...]] = {
            "start": (chance.randrange(99), time_ns),
            "name": (chance.choice(["a", "", "\u00e9"]), chance.choice([PYTHON, SYSTEM])),
            "end": (time_ns, chance.choice([UNKNOWN_CPU, chance.randrange(99)])),
            "origin": (chance.choice([NONE, *range(8)]),),
            "carried": (chance.choice([-1, chance.randrange(50)]),),
        }
        found.append((kind, chance.choice([*range(8), 1 << 30]), *values[kind]))
    return found


def write_records(segment: SegmentBuilder, records: list[tuple[Any, ...]]) -> None:
    write: dict[str, Callable[..., None]] = {
        "start": segment.thread_start,
        "name": segment.thread_name,
        "end": segment.thread_end,
        "origin": lambda thread, creator: segment.thread_origin(thread, creator, 0x50 + thread),
        "carried": lambda thread, cpu_ns: carried_thread(segment, thread, cpu_ns),
    }
    for kind, *values in records:
        write[kind](*values)


@pytest.mark.parametrize("seed", range(30))
def test_threads_are_as_the_specification_says(tmp_path: Path, seed: int) -> None:
    """Records in any order, in windows and behind their end, of several processes."""
    chance = random.Random(seed)
    expected: list[tuple[Any, ...]] = []
    for pid in (10, 11, 12):
        window_ns = chance.choice([None, 500])
        records = [random_records(chance) for _ in range(3)]
        mentioned = {chance.randrange(12) for _ in range(chance.randrange(4))}
        segments = [SegmentBuilder(seq, pid, pid) for seq in range(3)]
        if window_ns is not None:
            carried(segments[0], window_ns)
        for segment, part in zip(segments, records, strict=True):
            write_records(segment, part)
        for thread in mentioned:
            segments[1].cpu(600, thread)
        write_spool(tmp_path, of(*segments), control(pid=pid, start_ns=pid, seq=1), f"{pid}-{pid}")
        table = reference([*records[0], *records[1]], records[2], mentioned, window_ns)
        first = len(expected)
        expected += [(*row[:-1], None if row[-1] is None else row[-1] + first) for row in table]
    processes = SpoolDirectory(tmp_path).processes()
    for process in processes:
        process.segments, process.later = process.segments[:2], process.segments[2:]
    facts = [read_process(SpoolDirectory(tmp_path), process, SPEC)[0] for process in processes]
    found, ids = threads_table(facts, [{0x50 + thread: thread for thread in range(8)}] * 3, SPEC)
    found.validate(full=True)
    columns = ("tid", "name", "python_name", "start_ns", "end_ns", "cpu_ns", "creator")
    assert [tuple(row[name] for name in columns) for row in found.to_pylist()] == expected
    assert found.column("thread").to_pylist() == list(range(len(expected)))
    assert sum(each.references_lost for each in facts) == sum(row[0] is None for row in expected)
    for each in ids:
        for number, thread in enumerate(each.keys.to_pylist(), each.first):
            assert each[thread] == number


def many_threads(path: Path, count: int) -> None:
    """Parts of a process that had so many threads, one after the other, each with a sample."""
    thread, sequence = 0, 0
    while thread < count:
        segment = SegmentBuilder(sequence, size=1 << 20)
        while thread < count and len(segment) < (1 << 20) - 512:
            segment.thread_start(thread, 1 + thread % 30_000, thread)
            segment.thread_origin(thread, 0, 0x1000)
            segment.thread_name(thread, f"Thread-{thread} (run)")
            segment.cpu(thread, thread)
            segment.thread_end(thread, thread + 50, 300)
            thread += 1
        write_spool(path, [], control(seq=sequence))
        spool = SpoolDirectory(path)
        write_part(spool, "4242-1000000000", [read_segment(segment.to_bytes())])
        sequence += 1


@pytest.mark.broad
def test_what_a_thread_takes(tmp_path: Path) -> None:
    """Threads stay in bytes: Python objects for each of them took 2 KB, and minutes for millions."""
    count = 12_000
    many_threads(tmp_path, count)
    result, _, peak = traced_assembly(tmp_path)
    assert result.table("threads").num_rows == count
    assert result.table("threads").column("name")[count - 1].as_py() == f"Thread-{count - 1} (run)"
    assert peak / count < 600
