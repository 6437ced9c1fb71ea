"""Makes the golden recordings of version 1.1: ``python -m unit.format.make_memory_vectors``, in tests.

They are as those of ``make_vectors.py``, with memory, blocks and copies.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from support.spool_builder import FLOWS, NONE, SegmentBuilder, control, write_spool
from support.vectors import (
    LINES,
    MS,
    PICKS,
    SCHEMAS,
    T0,
    Rows,
    Schemas,
    derived,
    expect,
    fresh,
    make,
    manifest,
    tables_entry,
    unfinished,
    values,
    whole_rows,
    write_json,
    write_parquet,
)

KIB, MIB = 1 << 10, 1 << 20
PARAMETERS = {
    **manifest()["parameters"],
    "memory": True,
    "memory_threshold": 10_485_767,
    "block_mean_bytes": 524_288,
    "copies_min_bytes": 512,
    "copies_mean_bytes": 1_048_576,
}
SCHEMAS_1_1: Schemas = {
    **SCHEMAS,
    "processes": [*SCHEMAS["processes"], ("exiting_ns", pa.int64(), True)],
    "stacks": [*SCHEMAS["stacks"], ("task", pa.string(), True)],
    "memory": [
        ("time_ns", pa.int64(), False),
        ("process", pa.uint32(), False),
        ("thread", pa.uint32(), True),
        ("event", pa.uint8(), False),
        ("footprint_bytes", pa.int64(), True),
        ("peak_bytes", pa.int64(), True),
        *((f"{name}_bytes", pa.int64(), False) for name in FLOWS),
        ("resident_bytes", pa.int64(), True),
        ("minor_faults", pa.int64(), True),
        ("major_faults", pa.int64(), True),
        ("stack", pa.uint32(), True),
        ("native_frame", pa.uint32(), True),
        ("stack_state", pa.uint8(), False),
        ("kept_frames", pa.uint32(), True),
    ],
    "allocations": [
        ("time_ns", pa.int64(), False),
        ("process", pa.uint32(), False),
        ("thread", pa.uint32(), True),
        ("domain", pa.uint8(), False),
        ("size_bytes", pa.int64(), False),
        ("requested_bytes", pa.int64(), False),
        ("mean_bytes", pa.int64(), False),
        ("weight_bytes", pa.int64(), False),
        ("stack", pa.uint32(), True),
        ("native_frame", pa.uint32(), True),
        ("stack_state", pa.uint8(), False),
        ("followed", pa.bool_(), False),
        ("freed_ns", pa.int64(), True),
        ("freed_thread", pa.uint32(), True),
    ],
    "copies": [
        ("time_ns", pa.int64(), False),
        ("thread", pa.uint32(), False),
        ("bytes", pa.int64(), False),
        ("size_bytes", pa.int64(), False),
        ("mean_bytes", pa.int64(), False),
        ("stack", pa.uint32(), True),
        ("native_frame", pa.uint32(), True),
        ("stack_state", pa.uint8(), False),
    ],
}


def memory_row(
    ms: int, event: int, footprint: int | None, flows: dict[str, int], *more: Any, peak: int | None = None
) -> tuple[Any, ...]:
    """``more`` are thread, resident set, the two counts of faults, stack, native frame, stack state, kept frames."""
    thread, *rest = more
    amounts = [flows.get(name, 0) for name in FLOWS]
    return (T0 + ms * MS, 0, thread, event, footprint, footprint if peak is None else peak, *amounts, *rest)


def memory_rows() -> Rows:
    """A program that holds 5 MiB, builds 12 MiB of lists and an array of 64 MiB, drops the array, and ends."""
    start = {"native_allocated": MIB, "raw_allocated": MIB // 2, "mem_allocated": MIB // 2, "obj_allocated": 3 * MIB}
    lists = {"mem_allocated": 4 * MIB, "mem_freed": MIB, "obj_allocated": 9 * MIB, "obj_freed": 0}
    array = {"mapped_allocated": 64 * MIB, "obj_allocated": KIB}
    dropped = {"mapped_freed": 64 * MIB, "obj_allocated": 32, "obj_freed": 64}
    end = {"mem_freed": 3 * MIB, "obj_freed": 9 * MIB + KIB, "raw_allocated": 10, "raw_freed": 26}
    held = [5 * MIB, 17 * MIB, 81 * MIB + KIB, 17 * MIB + KIB - 32, 5 * MIB - 48]
    rows = whole_rows()
    rows["processes"] = [(*rows["processes"][0], T0 + 650 * MS)]
    rows["stacks"] = [(*row, "refresh ↻" if row[0] == 1 else None) for row in rows["stacks"]]
    rows["memory"] = [
        memory_row(0, 0, held[0], start, None, 9 * MIB, 2000, 1, None, None, 5, None),
        memory_row(100, 1, held[1], lists, 0, None, None, None, 3, 0, 0, 0),
        memory_row(200, 1, held[2], array, 0, None, None, None, 2, 2, 0, 2),
        memory_row(300, 1, held[3], dropped, 1, None, None, None, None, 2, 1, None, peak=held[2]),
        memory_row(400, 2, held[3], {}, None, 30 * MIB, 9000, 1, None, None, 5, None),
        memory_row(690, 3, held[4], end, None, None, None, None, None, None, 5, None, peak=held[3]),
    ]
    mean = PARAMETERS["block_mean_bytes"]
    rows["allocations"] = [
        (T0 + 50 * MS, 0, 0, 4, 32, 24, mean, 524_304, 3, 0, 0, True, None, None),
        (T0 + 60 * MS, 0, 0, 3, 4 * KIB, 4000, 16 * mean, 8_390_656, 3, 0, 0, True, T0 + 61 * MS, 0),
        (T0 + 200 * MS, 0, 0, 1, 64 * MIB, 64 * MIB, mean, 64 * MIB, 2, 2, 0, True, T0 + 299 * MS, 1),
        (T0 + 210 * MS, 0, None, 0, 2 * KIB, 2000, mean, 525_313, None, None, 1, False, None, None),
        (T0 + 220 * MS, 0, 1, 0, 1040, 1024, mean, 900_000, None, 3, 2, True, T0 + 660 * MS, None),
    ]
    copied = PARAMETERS["copies_mean_bytes"]
    rows["copies"] = [
        (T0 + 205 * MS, 0, 3 * MIB, 2 * MIB, copied, 2, 2, 0),
        (T0 + 206 * MS, 1, 700, 600, copied, None, None, 1),
        (T0 + 690 * MS, 0, 5000, 0, copied, None, None, 5),
    ]
    return rows


def make_memory() -> None:
    path, rows = fresh("memory"), memory_rows()
    for name, content in rows.items():
        write_parquet(path, name, content, schemas=SCHEMAS_1_1)
    counts = {name: len(content) for name, content in rows.items()}
    quality = [*manifest()["quality"], {"process": 0, "loss": "blocks_unfollowed", "count": 1}]
    document = manifest(format_version="1.1", tables=tables_entry(path, counts), parameters=PARAMETERS, quality=quality)
    write_json(path / "manifest.json", document)
    picks = {**PICKS, "memory": list(range(6)), "allocations": list(range(5)), "copies": [0, 1, 2]}
    expect(
        "memory",
        state="complete",
        rows=counts,
        sums={"cpu_ns": sum(row[4] for row in rows["cpu"]), "off_cpu_ns": 173 * MS},
        values=values(rows, picks, SCHEMAS_1_1),
        lines=LINES,
        derived=derived(rows),
        quality=quality,
    )


def killed_segments() -> list[SegmentBuilder]:
    """Segments 0 to 3 of a process that was killed while the interpreter shut down."""
    segments = [SegmentBuilder(seq, 4242, T0) for seq in range(4)]
    first, second, third, last = segments
    first.meta("python_version", "3.13.0")
    for thread in (0, 1):
        first.thread_start(thread, 4242 + thread, T0, main=thread == 0)
    first.module(0, "/usr/lib/libc.so.6", 0x10000, 0x20000, 0, time_ns=T0)
    first.stack(0, NONE, NONE, 2)
    first.task_stack(1, 0, NONE, 4, "naïve")
    first.task_stack(2, 0, NONE, 4, "refresh ↻")
    first.memory(T0, {"obj_allocated": 5 * MIB}, footprint=5 * MIB, peak=5 * MIB, event=0, resident=9 * MIB)
    first.block(T0 + 10 * MS, 0, 64, requested=56, weight=700_000, pc=0x10010, thread=0, stack=0, domain=4)
    first.copy(T0 + 11 * MS, 3000, 2000, pc=0x10020, stack=1)
    second.freed(T0 + 40 * MS, 2, 1)  # the birth is in the next segment
    second.block(T0 + 20 * MS, 1, 80, domain=0, state=1, followed=0)
    second.block(T0 + 21 * MS, 5, -80)  # damaged
    third.block(T0 + 5 * MS, 2, 4 * MIB, thread=1, state=1, domain=1)
    third.freed(T0 + 50 * MS, 77)  # the birth was lost
    third.memory(
        T0 + 60 * MS,
        {"obj_freed": 64, "mapped_allocated": 4 * MIB, "mapped_freed": 4 * MIB},
        footprint=5 * MIB - 64,
        peak=9 * MIB,
        pc=0x10010,
        thread=0,
        stack=0,
        kept=0,
        event=1,
        state=0,
    )
    third.state(T0 + 70 * MS, 6)
    last.freed(T0 + 80 * MS, 0, 0)
    last.freed(T0 + 90 * MS, 0, 1)  # it can be released only once
    last.copy(T0 + 94 * MS, 600, 600, thread=1, stack=2)
    last.copy(T0 + 95 * MS, 100, 0, thread=1, state=5)
    return segments


def make_memory_killed() -> None:
    """Segments 0 and 1 are a part."""
    from tachograph.format import SpoolDirectory, read_segment, write_part

    path = fresh("memory-killed")
    spool, prefix = path / "spool", f"4242-{T0}"
    data = [segment.to_bytes() for segment in killed_segments()]
    write_spool(spool, data, control(start_ns=T0, seq=3, state=1, losses={18: 3, 24: 2}), prefix)
    write_part(SpoolDirectory(spool), prefix, [read_segment(data[0]), read_segment(data[1])])
    for seq in (0, 1):
        (spool / f"{prefix}.{seq:06}.seg").unlink()
    write_json(path / "manifest.json", unfinished(format_version="1.1", parameters=PARAMETERS))
    unknown = {"resident_bytes": None, "minor_faults": None, "major_faults": None}
    no_place = {"thread": None, "stack": None, "native_frame": None}
    expect(
        "memory-killed",
        state="recording",
        rows={
            "processes": 1,
            "threads": 2,
            "files": 0,
            "codes": 0,
            "stacks": 3,
            "modules": 1,
            "native_frames": 2,
            "cpu": 0,
            "waits": 0,
            "memory": 2,
            "allocations": 3,
            "copies": 3,
        },
        sums={"cpu_ns": None, "off_cpu_ns": None},
        values={
            "processes": [{"row": 0, "exiting_ns": T0 + 70 * MS, "end_ns": None}],
            "stacks": [
                {"row": 0, "parent": None, "instruction": 2, "task": None},
                {"row": 1, "parent": 0, "instruction": 4, "task": "naïve"},
                {"row": 2, "parent": 0, "instruction": 4, "task": "refresh ↻"},
            ],
            "memory": [
                {"row": 0, "time_ns": T0, "process": 0, "event": 0, "footprint_bytes": 5 * MIB}
                | {"obj_allocated_bytes": 5 * MIB, "native_allocated_bytes": 0, "stack_state": 5, "kept_frames": None}
                | {**unknown, **no_place, "resident_bytes": 9 * MIB},
                {"row": 1, "thread": 0, "event": 1, "peak_bytes": 9 * MIB, "mapped_freed_bytes": 4 * MIB}
                | {"obj_freed_bytes": 64, "stack": 0, "native_frame": 0, "stack_state": 0, "kept_frames": 0}
                | unknown,
            ],
            "allocations": [
                {"row": 0, "time_ns": T0 + 5 * MS, "thread": 1, "domain": 1, "size_bytes": 4 * MIB, "stack": None}
                | {"freed_ns": T0 + 40 * MS, "freed_thread": 1, "followed": True},
                {"row": 1, "thread": 0, "domain": 4, "size_bytes": 64, "requested_bytes": 56, "mean_bytes": 524_288}
                | {"weight_bytes": 700_000, "stack": 0, "native_frame": 0, "freed_ns": T0 + 80 * MS, "freed_thread": 0},
                {"row": 2, "size_bytes": 80, "stack_state": 1, "followed": False, "freed_ns": None}
                | {"freed_thread": None, **no_place},
            ],
            "copies": [
                {"row": 0, "thread": 0, "bytes": 3000, "size_bytes": 2000, "mean_bytes": 1_048_576, "stack": 1}
                | {"native_frame": 1, "stack_state": 0},
                {"row": 1, "thread": 1, "bytes": 600, "stack": 2},
                {"row": 2, "thread": 1, "bytes": 100, "size_bytes": 0, "stack_state": 5, "stack": None},
            ],
        },
        quality=[
            {"process": 0, "loss": "blocks_unfollowed", "count": 3},
            {"process": 0, "loss": "crossings_merged", "count": 2},
            {"process": 0, "loss": "records_torn", "count": 1},
        ],
    )


MAKERS = {"memory": make_memory, "memory-killed": make_memory_killed}

if __name__ == "__main__":
    make(MAKERS)
