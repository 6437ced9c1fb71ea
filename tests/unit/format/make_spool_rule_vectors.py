"""Makes golden recordings of killed programs in which a recoverer that misses one rule finds something else.

See ``support.vectors``; ``make_rule_vectors`` makes the complete ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.spool_builder import (
    NONE,
    UNKNOWN,
    SegmentBuilder,
    control,
    log_record,
    pending_block,
    record,
    write_spool,
)
from support.vectors import MS, T0, expect, fresh, make, manifest, unfinished, write_json
from unit.format.make_rule_vectors import FORMAT, SECOND, Row, counts

RECORDS = json.loads((FORMAT / "records.json").read_text(encoding="utf-8"))["records"]
ARROW = {"u64": pa.uint64(), "i64": pa.int64(), "u32": pa.uint32(), "i32": pa.int32(), "u8": pa.uint8()} | {
    "f64": pa.float64()
}


def make_pending() -> None:
    """Pending blocks in places of both lengths, and of a process that had ended, where they do not count."""
    path = fresh("pending")
    spool = path / "spool"
    numbers = {"old": 4242, "new": 4243, "ended": 4244}
    for at, (name, pid) in enumerate(numbers.items()):
        start = T0 + at
        segment = SegmentBuilder(0, pid, start, size=1024)
        segment.meta("python_version", "3.13.0")
        if name == "old":
            segment.block(T0 + MS, 0, 100, weight=500)
            segment.freed(T0 + 3 * MS, 0)
            segment.freed(T0 + 2 * MS, 0)
            segment.freed(T0 + 2 * MS, 1)  # of a block that was lost
        more: Row = {}
        if (
            name == "ended"
        ):  # it had no room for its last records: what they would have counted is at the end of the wait
            segment.thread_start(0, pid, start)
            segment.wait(T0 + 7 * MS, T0 + 9 * MS)
            more = {"losses": {0: 1}, "unrecorded": (50, -60, 70), "footprint": UNKNOWN}
        old = [pending_block(0, T0 + 4 * MS, 1000), b"", pending_block(2, T0 + 5 * MS, 2000)]
        state = 2 if name == "ended" else 1
        head = control(
            pid=pid, start_ns=start, state=state, pending_unkept=3, pending=() if name == "new" else old, **more
        )
        if name == "new":
            body = record(12, pending_block(0, T0 + 6 * MS, 3000)[8:] + bytes(8), 4096 + 80 * 4, 0)
            wrong = record(12, pending_block(0, T0 + 6 * MS, 4000)[8:] + bytes(8), 4096, 0)
            head += bytes(80) + wrong + bytes(160) + body  # the second lies where another place's header belongs
        write_spool(spool, [segment.to_bytes()], head, f"{pid}-{start}")
    write_json(
        path / "manifest.json",
        unfinished(format_version="1.5", parameters={**manifest()["parameters"], "memory": True}),
    )
    common = {"thread": None, "stack": None, "followed": True, "block": None}
    expect(
        "pending",
        state="recording",
        rows=counts(processes=3, threads=1, waits=1, allocations=4, memory=1),
        sums={"cpu_ns": None, "off_cpu_ns": 2 * MS},
        values={
            "allocations": [
                {
                    "row": 0,
                    "process": 0,
                    "time_ns": T0 + MS,
                    "size_bytes": 100,
                    "weight_bytes": 500,
                    "freed_ns": T0 + 2 * MS,
                },
                {"row": 1, "process": 0, "time_ns": T0 + 4 * MS, "size_bytes": 1000, "freed_ns": None, **common},
                {"row": 2, "process": 0, "time_ns": T0 + 5 * MS, "size_bytes": 2000, "freed_ns": None, **common},
                {"row": 3, "process": 1, "time_ns": T0 + 6 * MS, "size_bytes": 3000, "freed_ns": None, **common},
            ],
            "memory": [
                {"row": 0, "process": 2, "time_ns": T0 + 9 * MS, "footprint_bytes": None, "native_allocated_bytes": 50}
                | {"native_freed_bytes": 0, "mapped_allocated_bytes": 70, "resident_bytes": None}
            ],
        },
        quality=[
            *({"process": number, "loss": "blocks_unkept", "count": 3} for number in (0, 1)),
            {"process": 2, "loss": "records_dropped", "count": 1},
        ],
    )


def make_definitions() -> None:
    """Definitions that come twice or late, records that contradict themselves, spans, and bytes of a later version."""
    path = fresh("definitions")
    first, second = SegmentBuilder(0, 4242, T0, size=2048), SegmentBuilder(1, 4242, T0, size=2048)
    first.thread_start(0, 1, T0)
    first.thread_start(0, 4242, T0 + 1, main=True)  # of the records about a thread the last counts
    first.thread_name(0, "Python's", source=1)
    first.thread_name(0, "the system's", source=2)
    first.cpu(T0 + MS, 0, 1, gil=7)
    first.code(0, "/srv/a\udc80.py", "first", 1, b"\x80\x00")
    first.code(0, "/srv/b.py", "second", 2, b"\x80\x00")
    first.add(1, b"\x0a\0\0\0\x63\0\0\0executable/srv/python")  # shorter than it says
    first.add(6, b"\1\0\0\0")  # shorter than its layout
    first.add(5, bytes(20) + b"\3\3" + bytes(10))  # characters of three bytes
    first.add(77, b"of a later version")
    first.span(0, T0 + 5 * MS, T0 + 9 * MS, "outer", '{"a": 1}')
    first.span(2, T0 + 6 * MS, T0 + 7 * MS, "inner", thread=3, parent=0)
    first.span(3, T0 + 7 * MS, T0 + 6 * MS, "damaged", thread=4)
    first.span(4, T0 + 8 * MS, T0 + 9 * MS, "orphan", parent=1)
    first.span(5, T0 + 4 * MS, T0 + 9 * MS, "before its parent", parent=0)
    second.stack(1, 0, 0, 4)
    second.stack(1, NONE, 0, 8)
    second.stack(0, NONE, 0, -1)
    second.stack(5, 6, 0, 0)  # two that are each other's callers
    second.stack(6, 5, 0, 2)
    second.cpu(T0 + 2 * MS, 0, 5)
    second.position(T0 + 2 * MS, 0, 0, running=2, holds=2)
    second.position(T0 + 3 * MS, 0, 0, running=1, holds=7)
    second.block(T0 + 2 * MS, 0, -5, stack=90, thread=91)  # damaged: names neither
    second.state(T0 + 10 * MS, 6)
    second.state(T0 + 11 * MS, 6)
    data = second.to_bytes()[: len(second) + 4]  # a rest of less than 8 bytes
    write_spool(path / "spool", [first.to_bytes(), data], None, f"4242-{T0}")
    write_json(path / "manifest.json", unfinished(format_version="1.5"))
    expect(
        "definitions",
        state="recording",
        rows=counts(processes=1, threads=2, files=1, codes=1, stacks=4, cpu=2, positions=2, spans=4),
        sums={"cpu_ns": 20 * MS, "off_cpu_ns": None},
        values={
            "processes": [{"row": 0, "executable": None, "end_ns": None, "exiting_ns": T0 + 10 * MS}],
            "threads": [
                {"row": 0, "tid": 4242, "name": "Python's", "python_name": True, "main": True, "start_ns": T0 + 1},
                {"row": 1, "tid": None, "name": None, "start_ns": None},
            ],
            "files": [{"row": 0, "path": "/srv/a\\udc80.py"}],
            "codes": [{"row": 0, "qualname": "first", "first_line": 1}],
            "stacks": [
                {"row": 0, "parent": None, "instruction": None},
                {"row": 1, "parent": 0, "instruction": 4},
                {"row": 2, "parent": None, "instruction": 2},
                {"row": 3, "parent": 2, "instruction": 0},
            ],
            "cpu": [{"row": 0, "stack": 1, "gil": None}, {"row": 1, "stack": 3, "gil": True}],
            "positions": [
                {"row": 0, "running": None, "holds_work": False},
                {"row": 1, "running": True, "holds_work": None},
            ],
            "spans": [
                {"row": 0, "name": "before its parent", "parent": None},
                {"row": 1, "name": "outer", "parent": None, "fields": '{"a": 1}'},
                {"row": 2, "name": "inner", "parent": 1, "thread": 1},
                {"row": 3, "name": "orphan", "parent": None},
            ],
        },
        quality=[
            {"process": 0, "loss": "records_torn", "count": 5},
            {"process": 0, "loss": "references_lost", "count": 2},
            {"process": 0, "loss": "ends_uncopied", "count": 1},
        ],
    )


def make_modules() -> None:
    """Two libraries at the same addresses, one after the other: in rows and native paths, before and at their ends."""
    path = fresh("modules")
    segment = SegmentBuilder(0, 4242, T0, size=2048)
    segment.thread_start(0, 4242, T0, main=True)
    segment.module(0, "/srv/old.so", 0x10000, 0x20000, time_ns=T0 + 10 * MS)
    segment.module(1, "/srv/new.so", 0x10000, 0x20000, 0x5000, time_ns=T0 + 50 * MS)
    segment.module(2, "/srv/other.so", 0x20000, 0x21000, time_ns=T0 + 10 * MS)
    segment.thread_origin(0, NONE, 0x10500)
    segment.native_stack(1, 0, 0x10010)  # called from the old one, at first
    segment.native_stack(2, 1, 0x10020)
    segment.native_stack(3, 0, 0x10030)  # of the new one alone
    segment.cpu(T0 + 5 * MS, pc=0x10000, native=(0, 1))
    segment.cpu(T0 + 20 * MS, pc=0x10000, native=(2, 1))
    segment.cpu(T0 + 50 * MS, pc=0x10000, native=(3, 1))
    segment.cpu(T0 + 60 * MS, pc=0x1FFFF, native=(1, 1))
    segment.cpu(T0 + 70 * MS, pc=0x20000, native=(3, 1))
    segment.cpu(T0 + 80 * MS, pc=0x21000, native=(3, 1))
    write_spool(path / "spool", [segment.to_bytes()], control(start_ns=T0, state=1), f"4242-{T0}")
    write_json(path / "manifest.json", unfinished(format_version="1.5"))
    frames = [
        (None, 0x21000),
        (0, 0x0),
        (0, 0x10),
        (0, 0x20),
        (0, 0x500),
        (1, 0x5000),
        (1, 0x5030),
        (1, 0x14FFF),
        (2, 0),
    ]
    expect(
        "modules",
        state="recording",
        rows=counts(processes=1, threads=1, modules=3, native_frames=9, native_stacks=3, cpu=6),
        sums={"cpu_ns": 60 * MS, "off_cpu_ns": None},
        values={
            "modules": [
                {"row": 0, "path": "/srv/old.so"},
                {"row": 1, "path": "/srv/new.so"},
                {"row": 2, "path": "/srv/other.so"},
            ],
            "native_frames": [{"row": row, "module": module, "offset": at} for row, (module, at) in enumerate(frames)],
            "native_stacks": [
                {"row": row, "parent": parent, "native_frame": frame}
                for row, (parent, frame) in enumerate([(None, 2), (0, 3), (None, 6)])
            ],
            "cpu": [{"row": row, "native_frame": frame} for row, frame in enumerate((1, 1, 5, 7, 8, 0))],
            "threads": [{"row": 0, "start_frame": 4}],
        },
        quality=[],
    )


def part(path: Path, pid: int, definitions: SegmentBuilder, rows: dict[str, list[Row]]) -> None:
    """Write a part; a field that a row lacks is 0."""
    path.mkdir(parents=True)
    (path / "definitions.seg").write_bytes(bytes(definitions.data))
    for name, layout in RECORDS.items():
        if layout["rows"] in ("cpu", "waits") or name in rows:
            fields = [pa.field(each["name"], ARROW[each["type"]], nullable=False) for each in layout["fields"]]
            whole = [dict.fromkeys((field.name for field in fields), 0) | row for row in rows.get(name, [])]
            pq.write_table(
                pa.Table.from_pylist(whole, schema=pa.schema(fields)),
                path / f"{layout['rows']}.parquet",
                compression="none",
                use_dictionary=False,
            )


def make_window_killed() -> None:
    """Killed in its second window: a part that is carried over, an older one and a segment within it, generations."""
    path = fresh("window-killed")
    spool, prefix, begin = path / "spool", f"4242-{T0}", T0 + 2 * SECOND
    old = SegmentBuilder(NONE, 4242, T0)
    old.thread_start(9, 9, T0)
    part(spool / "parts" / f"{prefix}.000000-000001", 4242, old, {})
    carried = SegmentBuilder(NONE, 4242, T0)
    carried.add(
        19,
        begin.to_bytes(8, "little")
        + (MS).to_bytes(8, "little") * 2
        + bytes(16)
        + b"".join((at < 8).to_bytes(8, "little") for at in range(64)),
    )
    for thread in (0, 1, 2):
        carried.thread_start(thread, 4242 + thread, T0 + thread)
        carried.add(20, thread.to_bytes(4, "little") + bytes(4) + (100 * MS).to_bytes(8, "little"))
    carried.thread_end(1, T0 + SECOND, 90 * MS)  # ended before the window, in no row
    carried.thread_end(2, T0 + SECOND, 90 * MS)  # the same, but a block of it is held
    carried.code(0, "/srv/a.py", "f", 1, None)
    carried.stack(3, NONE, 0, 6)
    held = {"time_ns": T0 + SECOND, "size_bytes": 10, "requested_bytes": 9, "mean_bytes": 100, "weight_bytes": 70}
    held |= {"block": 5, "thread": 2, "stack": 3, "followed": 1}
    rows = {
        "block": [held],
        "freed": [{"time_ns": begin + MS, "block": 5, "thread": NONE}, {"time_ns": begin, "block": 8, "thread": NONE}],
    }
    rows["memory"] = [
        {
            "time_ns": begin,
            "thread": NONE,
            "stack": NONE,
            "kept_frames": NONE,
            "native_allocated_bytes": 77,
            "stack_state": 5,
        }
    ]
    part(spool / "parts" / f"{prefix}.000000-000002.2", 4242, carried, rows)
    earlier = SegmentBuilder(NONE, 4242, T0)
    earlier.thread_start(8, 4250, T0)
    part(spool / "parts" / f"{prefix}.000000-000002.1", 4242, earlier, {})  # that of the window before
    data: dict[int, bytes] = {}
    for seq in (2, 3, 4):
        segment = SegmentBuilder(seq, 4242, T0, size=1024)
        if seq == 2:
            segment.cpu(T0 + SECOND, 0)  # is in the part, where it is not carried over
        if seq == 3:
            segment.cpu(begin + 2 * MS, 0, 3, cpu_ns=7 * MS)
            segment.freed(begin + 2 * MS, 9, 6)  # of a block that is in no row: its thread is in one
            segment.add(25, (4).to_bytes(4, "little") + (1).to_bytes(4, "little") + bytes(8))
            segment.add(26, (3).to_bytes(4, "little") + bytes(4))
        if seq == 4:
            segment.code(1, "/srv/a.py", "f", 1, None)
            segment.stack(4, NONE, 1, 6)  # the same stack as 3, numbered anew
            segment.cpu(begin + 3 * MS, 0, 4, cpu_ns=5 * MS)
            segment.thread_end(0, begin + 4 * MS, 130 * MS)
        data[seq] = segment.to_bytes()
    for seq, content in data.items():
        spool.mkdir(exist_ok=True)
        (spool / f"{prefix}.{seq:06}.seg").write_bytes(content)
    counters = {
        0: 3,
        4: 1,
        7: 1,
    }  # records dropped, two of them in this window; a refused timer lasts; forks in the first
    head = control(start_ns=T0, seq=4, state=1, losses=counters)
    (spool / f"{prefix}.ctl").write_bytes(head)
    (spool / "processes.log").write_bytes(log_record(7, 0, begin, numbers=(2, -1, -1)))
    window = {"number": 2, "first": 1, "start_ns": begin, "run": manifest()["uuid"]}
    write_json(path / "manifest.json", unfinished(format_version="1.5", window=window))
    expect(
        "window-killed",
        state="recording",
        rows=counts(processes=1, threads=3, files=1, codes=1, stacks=1, cpu=2, allocations=1, memory=1),
        sums={"cpu_ns": 12 * MS, "off_cpu_ns": None},
        values={
            "processes": [{"row": 0, "start_ns": begin, "pid": 4242}],
            "threads": [
                {"row": 0, "tid": 4242, "start_ns": begin, "end_ns": begin + 4 * MS, "cpu_ns": 30 * MS},
                {"row": 1, "tid": 4244, "start_ns": T0 + SECOND, "end_ns": T0 + SECOND, "cpu_ns": 0},
                {"row": 2, "tid": None, "start_ns": None},
            ],
            "cpu": [{"row": 0, "stack": 0, "cpu_ns": 7 * MS}, {"row": 1, "stack": 0, "cpu_ns": 5 * MS}],
            "allocations": [{"row": 0, "thread": 1, "stack": 0, "freed_ns": begin + MS, "weight_bytes": 70}],
            "memory": [{"row": 0, "time_ns": begin, "native_allocated_bytes": 77}],
        },
        quality=[
            {"process": 0, "loss": "records_dropped", "count": 2},
            {"process": 0, "loss": "timers_refused", "count": 1},
            {"process": 0, "loss": "references_lost", "count": 1},
        ],
    )


MAKERS = {
    "pending": make_pending,
    "definitions": make_definitions,
    "modules": make_modules,
    "window-killed": make_window_killed,
}

if __name__ == "__main__":
    make(MAKERS)
