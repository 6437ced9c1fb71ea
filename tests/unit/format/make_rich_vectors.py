"""Makes golden recordings of killed programs with what is rare: late definitions, odd segments, reaped children.

``rich`` has every kind of record that no other vector has, and definitions that come twice; ``reaped`` a process log in
which processes are waited for, refused and mentioned twice. See ``support.vectors``.
"""

from __future__ import annotations

import struct

from support.spool_builder import NONE, SegmentBuilder, control, log_record, write_spool
from support.vectors import MS, T0, expect, fresh, make, unfinished, write_json
from unit.format.make_rule_vectors import Row, counts
from unit.format.make_spool_rule_vectors import part

UNREAD = (-1,) * 8


def memory_part(segment: SegmentBuilder, time_ns: int, size: int, resident: int, kind: int, pc: int = 0) -> None:
    segment.add(31, struct.pack("<3q9qQB7x", time_ns, size, resident, 5, *UNREAD, pc, kind))


def page_faults(segment: SegmentBuilder, time_ns: int, faults: int, thread: int, stack: int) -> None:
    segment.add(32, struct.pack("<qqIIB7x", time_ns, faults, thread, stack, 0))


def referrer(
    segment: SegmentBuilder, time_ns: int, link: int, role: int, kind: str, name: str, stack: int = NONE, size: int = 64
) -> None:
    texts = kind.encode() + name.encode()
    segment.add(33, struct.pack("<qqIIHBxHH", time_ns, size, stack, 4, link, role, len(kind), len(name)) + texts)


def first_segment(prefix_start: int) -> SegmentBuilder:
    """Definitions that come twice, and a row of each rare kind."""
    segment = SegmentBuilder(1, 4242, prefix_start, size=4096)
    segment.meta("executable", "/usr/bin/early")
    segment.meta("executable", "/usr/bin/late")  # of one key the last counts
    segment.meta("jit", "0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.thread_end(0, T0 + 10 * MS, 10 * MS)
    segment.thread_end(0, T0 + 90 * MS, 70 * MS)  # of a thread the last counts
    segment.thread_origin(0, 8, 0)  # a creator that nothing else names is no row
    segment.module(0, "/srv/first.so", 0x10000, 0x20000)
    segment.module(0, "/srv/second.so", 0x30000, 0x40000)
    segment.add(7, struct.pack("<IIQQQqHHI", 1, 0, 0x50000, 0x60000, 0, 0, 0, 8, 0) + b"/srv/\xff.s")
    segment.code(0, "/srv/a.py", "f", 1, b"\x80\x00")
    segment.stack(0, NONE, 0, 0)
    segment.stack(1, 0, 7, 4)  # code 7 is lost
    segment.stack(2, 0, 7, 6)
    segment.span(0, T0 + 5 * MS, T0 + 9 * MS, "first")
    segment.span(0, T0 + 6 * MS, T0 + 8 * MS, "second")
    segment.cpu(T0 + 20 * MS, 0, 1, pc=0x10010)
    segment.cpu(T0 + 21 * MS, 0, 2, pc=0x30010)  # in no module: the second definition does not count
    segment.wait(T0 + 22 * MS, T0 + 80 * MS)
    segment.awaiting(T0 + 30 * MS, T0, 0, 1, tasks=3, chance=0.5)
    memory_part(segment, T0 + 31 * MS, 4096, 100, 1, pc=0x50010)
    memory_part(segment, T0 + 32 * MS, -1, 100, 1)  # damaged
    page_faults(segment, T0 + 33 * MS, 12, 3, 0)
    referrer(segment, T0 + 34 * MS, 0, 1, "module", "", stack=0)
    referrer(segment, T0 + 34 * MS, 0, 1, "dict", "again", stack=0)
    referrer(segment, T0 + 34 * MS, 1, 1, "", "cache")
    segment.stack(3, NONE, 0, 2)
    segment.stack(4, NONE, 0, 4)  # nothing names it
    referrer(segment, T0 + 85 * MS, 2, 2, "list", "[0]", stack=3)  # the last time of all, and a stack of its own
    segment.native_stack(1, 0, 0x10020, stack=5)
    segment.stack(5, NONE, 0, 8)  # only a native path names it
    segment.cpu(T0 + 23 * MS, 0, 0, native=(1, 1))
    segment.freed(T0 + 25 * MS, 3)  # written before its birth
    segment.block(T0 + 24 * MS, 3, 100, weight=500, thread=0, stack=0)
    segment.block(T0 + 26 * MS, 4, 100, weight=500)
    segment.freed(T0 + 27 * MS, 4, thread=0)
    return segment


def make_rich() -> None:
    path, prefix = fresh("rich"), f"4242-{T0}"
    spool = path / "spool"
    old = SegmentBuilder(NONE, 4242, T0)
    rows: dict[str, list[Row]] = {}
    rows["calls"] = [{"time_ns": T0 + 3 * MS, "since_ns": T0, "stack": 0, "calls": 5, "watched_ns": 3 * MS}]
    rows["call_times"] = [{"time_ns": T0 + 3 * MS, "calls": 4, "stack": 0, "own": 1, "bucket": 9}]
    rows["await"] = [{"time_ns": T0 + 2 * MS, "since_ns": T0, "stack": NONE, "awaiter": NONE, "chance": 1.0}]
    rows["redundancy"] = [
        {"time_ns": T0 + 4 * MS, "cpu_ns": MS, "pc": 0x10030, "stack": 0, "partner_stack": NONE, "opcode": 256 + 0x6F}
        | {"partner_opcode": NONE, "width": 8, "outcome": 2, "equal": 255, "crossed": 255, "block_bytes": 80}
        | {"block_hash": (1 << 64) - 1, "block_again": 1, "native_path": 1, "native_stack": 1}
    ]
    part(spool / "parts" / f"{prefix}.000000-000000", 4242, old, rows)
    torn = bytearray((spool / "parts" / f"{prefix}.000000-000000" / "definitions.seg").read_bytes())
    torn[32:36] = (2).to_bytes(4, "little")  # records that were torn in its segments
    (spool / "parts" / f"{prefix}.000000-000000" / "definitions.seg").write_bytes(torn)
    (spool / "parts" / f"{prefix}.000000-000000" / "waits.parquet").unlink()  # always there, and lost
    head = control(
        start_ns=T0, seq=2, state=1, footprint=1000, unrecorded=(300, 100, -7), copied_ns=T0 + MS, end_ns=T0 + 95 * MS
    )
    write_spool(spool, [], head, prefix)
    wrong, beyond = SegmentBuilder(5, 4242, T0, size=256), SegmentBuilder(3, 4242, T0, size=256)
    wrong.cpu(T0 + 50 * MS)
    beyond.cpu(T0 + 60 * MS, 0, 0)
    named = {1: first_segment(T0).to_bytes(), 2: wrong.to_bytes(), 3: beyond.to_bytes()}
    for seq, data in named.items():  # 2 says that it is 5; 3 is after the current one
        (spool / f"{prefix}.{seq:06}.seg").write_bytes(data)
    write_json(path / "manifest.json", unfinished(format_version="1.5"))
    expect(
        "rich",
        state="recording",
        rows=counts(processes=1, threads=2, files=1, codes=1, stacks=5, modules=2, native_frames=5, cpu=4, waits=1)
        | {"memory": 1, "memory_parts": 1, "page_faults": 1, "awaits": 2, "referrers": 3, "calls": 1, "call_times": 1}
        | {"spans": 1, "allocations": 2, "redundancies": 1, "native_stacks": 1},
        sums={"cpu_ns": 40 * MS, "off_cpu_ns": 58 * MS},
        values={
            "processes": [{"row": 0, "executable": "/usr/bin/late", "end_ns": T0 + 95 * MS}],
            "threads": [
                {"row": 0, "end_ns": T0 + 90 * MS, "cpu_ns": 70 * MS, "creator": None, "start_frame": None},
                {"row": 1, "tid": None, "start_ns": None},
            ],
            "modules": [{"row": 0, "path": "/srv/first.so"}, {"row": 1, "path": "/srv/\\xff.s"}],
            "native_frames": [
                {"row": 0, "module": None, "offset": 0x30010},
                {"row": 1, "module": 0, "offset": 0x10},
                {"row": 2, "module": 0, "offset": 0x20},
                {"row": 3, "module": 0, "offset": 0x30},
                {"row": 4, "module": 1, "offset": 0x10},
            ],
            "native_stacks": [{"row": 0, "parent": None, "native_frame": 2, "stack": 4}],
            "stacks": [
                {"row": 0, "parent": None, "code": 0},
                {"row": 1, "parent": 0, "code": None, "instruction": 4},
                {"row": 2, "parent": 0, "code": None, "instruction": 6},
                {"row": 3, "parent": None, "code": 0, "instruction": 2},
                {"row": 4, "parent": None, "code": 0, "instruction": 8},
            ],
            "cpu": [
                {"row": 0, "time_ns": T0 + 20 * MS, "stack": 1, "native_frame": 1},
                {"row": 1, "stack": 2, "native_frame": 0},
                {"row": 2, "time_ns": T0 + 23 * MS, "stack": 0, "native_stack": 0, "native_path": 1},
                {"row": 3, "time_ns": T0 + 60 * MS, "stack": 0, "native_frame": None},
            ],
            "allocations": [
                {"row": 0, "time_ns": T0 + 24 * MS, "thread": 0, "freed_ns": T0 + 25 * MS, "freed_thread": None}
                | {"block": None},
                {"row": 1, "thread": None, "freed_ns": T0 + 27 * MS, "freed_thread": 0},
            ],
            "redundancies": [
                {"row": 0, "time_ns": T0 + 4 * MS, "native_frame": 3, "native_stack": 0, "stack": 0, "opcode": 0x16F}
                | {"partner_time_ns": None, "partner_stack": None, "partner_native_frame": None, "equal": None}
                | {"partner_opcode": None, "partner_width": None, "crossed": None, "width": 8, "block_bytes": 80}
                | {"block_hash": (1 << 64) - 1, "block_head_hash": None, "block_again": True}
            ],
            # Of the time of the last row of all: the last link.
            "memory": [
                {"row": 0, "time_ns": T0 + 85 * MS, "event": 2, "stack_state": 5, "footprint_bytes": 1200}
                | {"native_allocated_bytes": 300, "native_freed_bytes": 100, "mapped_allocated_bytes": 0}
                | {"thread": None, "stack": None, "kept_frames": None, "peak_bytes": None}
            ],
            "memory_parts": [
                {
                    "row": 0,
                    "size_bytes": 4096,
                    "anonymous_bytes": 5,
                    "private_bytes": None,
                    "native_frame": 4,
                    "part": 1,
                }
            ],
            "page_faults": [{"row": 0, "faults": 12, "thread": 1, "stack": 0}],
            "awaits": [
                {"row": 0, "time_ns": T0 + 2 * MS, "stack": None, "awaiter": None, "chance": 1.0, "tasks": 0},
                {"row": 1, "stack": 0, "awaiter": 1, "tasks": 3, "chance": 0.5},
            ],
            "referrers": [
                {"row": 0, "chain": 4, "link": 0, "type": "module", "name": None, "stack": 0},
                {"row": 1, "link": 1, "type": None, "name": "cache", "stack": None},
                {"row": 2, "time_ns": T0 + 85 * MS, "link": 2, "name": "[0]", "stack": 3},
            ],
            "calls": [{"row": 0, "calls": 5, "stack": 0, "counted_ns": None, "counted_calls": 0}],
            "call_times": [{"row": 0, "calls": 4, "own": True, "bucket": 9, "eighth": None}],
            "spans": [{"row": 0, "name": "first", "fields": None}],
        },
        quality=[
            {"process": 0, "loss": "records_torn", "count": 3},
            {"process": 0, "loss": "ends_uncopied", "count": 1},
            {"process": 0, "loss": "references_lost", "count": 2},
            {"process": 0, "loss": "segments_missing", "count": 2},
        ],
    )


def reaped_log() -> bytes:
    used = (20 * MS, 30 * MS, 1 << 20)
    records = [
        log_record(5, 4200, T0, parent=4100, command=b"make\0-j"),
        log_record(5, 4300, T0 + MS, parent=4100, command=b"second"),  # only the first FIRST counts
        log_record(1, 4210, T0 + 2 * MS, parent=4200, command=b"a"),
        log_record(2, 4210, T0 + 9 * MS, status=1, numbers=(MS, MS, 4096)),
        log_record(2, 4210, T0 + 10 * MS, status=2, numbers=(9 * MS, MS, 4096)),  # of several ends the first counts
        log_record(8, 4210, T0 + 11 * MS, parent=4200, status=-9, numbers=used),  # the kernel's word is above it
        log_record(8, 4210, T0 + 12 * MS, parent=4200, status=7, numbers=(MS, MS, 1)),  # a second one is ignored
        log_record(1, 4220, T0 + 3 * MS, parent=4200, command=b"b"),
        log_record(8, 4220, T0 + 13 * MS, parent=4999, status=3, numbers=used),  # not its parent: unlisted
        log_record(8, 4230, T0 + 14 * MS, parent=4200, status=0, numbers=(9 * MS, 2 * MS + MS // 2, 1)),
        log_record(8, 4240, T0 + 15 * MS, parent=4200, status=0, numbers=(9 * MS, MS - 1, 1)),  # less than 10 ms
        log_record(1, 4250, T0 + 4 * MS, parent=4210, command=b"orphan"),
        log_record(8, 4250, T0 + 16 * MS, parent=1, status=4, numbers=(5 * MS, -1, 77)),  # its parent has ended
        log_record(2, 4250, T0 + 17 * MS, status=9, numbers=(6 * MS, MS, 99)),  # after REAPED there is an end
        log_record(8, 4270, T0 + 18 * MS, parent=4200, status=0, numbers=(20 * MS, -1, 1)),  # of unknown CPU time
        log_record(1, 4210, T0 + 20 * MS, parent=4200, command=b"again"),  # the pid is used twice
        log_record(6, 4210, T0 + 21 * MS, status=2, command=b"not wanted"),
        log_record(1, 4260, T0 + 22 * MS, parent=4200, command=b"c"),
        log_record(6, 4260, T0 + 23 * MS, status=3, command=b"no extension"),
        log_record(2, 4260, T0 + 24 * MS, numbers=(1, 1, 1)),
        log_record(2, 4260, T0 + 25 * MS, status=6),  # a later end gives the status that was unknown
        log_record(1, 4280, T0 + 26 * MS, parent=4200, command=b"cut")[:100],
        log_record(1, 4281, T0 + 27 * MS, parent=4200, command=b"cut")[:200],  # two in a row are two
        b"TACHPRC2" + log_record(1, 4282, T0 + 28 * MS)[8:60] + (500).to_bytes(4, "little") + b"x" * 500,  # too long
        log_record(2, 4220, T0 + 29 * MS, status=3),
    ]
    return b"".join(records)


def make_reaped() -> None:
    path = fresh("reaped")
    (path / "spool").mkdir()
    log = reaped_log()
    (path / "spool" / "processes.kept.log").write_bytes(log[: 512 * 3])
    (path / "spool" / "processes.log").write_bytes(log[512 * 2 :])  # one record is in both
    write_json(path / "manifest.json", unfinished(format_version="1.5"))
    unknown = {"exit_status": None, "user_ns": None, "max_resident_bytes": None}
    expect(
        "reaped",
        state="recording",
        rows=counts(processes=6),
        sums={"cpu_ns": None, "off_cpu_ns": None},
        values={
            "processes": [
                {"row": 0, "pid": 4200, "parent": None, "origin": "first", "command": "make -j", "end_ns": None}
                | unknown,
                {"row": 1, "pid": 4210, "parent": 0, "end_ns": T0 + 9 * MS, "exit_status": -9, "user_ns": 20 * MS}
                | {"system_ns": 30 * MS, "max_resident_bytes": 4096, "origin": "exec"},
                {"row": 2, "pid": 4220, "end_ns": T0 + 29 * MS} | unknown | {"exit_status": 3},
                {"row": 3, "pid": 4250, "parent": 1, "end_ns": T0 + 16 * MS, "exit_status": 4, "user_ns": None}
                | {"max_resident_bytes": 77},
                {"row": 4, "pid": 4210, "parent": 0, "command": "again", "end_ns": None} | unknown,
                {"row": 5, "pid": 4260, "end_ns": T0 + 24 * MS, "exit_status": 6, "user_ns": 1},
            ]
        },
        quality=[
            {"process": None, "loss": "children_unlisted_ms", "count": 61},
            {"process": None, "loss": "records_torn", "count": 3},
        ],
    )


MAKERS = {"rich": make_rich, "reaped": make_reaped}

if __name__ == "__main__":
    make(MAKERS)
