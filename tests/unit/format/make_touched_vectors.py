"""Makes the golden recording with looks at large blocks, of version 1.4.

Run ``python -m unit.format.make_touched_vectors`` in tests.

It is as those of ``make_vectors.py``: an array that is filled slowly, one that is never touched, and a small block.
"""

from __future__ import annotations

from support.spool_builder import SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, unfinished, write_json
from unit.format.make_memory_vectors import PARAMETERS

MIB = 1 << 20
ARRAY, EMPTY, SMALL, LOST, DAMAGED = range(5)


def segments() -> list[SegmentBuilder]:
    first, second = (SegmentBuilder(sequence, 4242, T0) for sequence in range(2))
    first.meta("python_version", "3.13.0")
    first.thread_start(0, 4242, T0, main=True)
    first.block(T0 + 10 * MS, ARRAY, 64 * MIB, thread=0, state=1)
    first.block(T0 + 20 * MS, EMPTY, 512 * MIB, thread=0, state=1)
    first.block(T0 + 30 * MS, SMALL, 640, thread=0, state=1)
    first.touched(T0 + 40 * MS, ARRAY, 16 * MIB)
    first.touched(T0 + 41 * MS, EMPTY, 0)
    second.touched(T0 + 300 * MS, ARRAY, 64 * MIB)
    second.touched(T0 + 301 * MS, LOST, 8 * MIB)
    second.touched(T0 + 302 * MS, DAMAGED, -1)
    second.freed(T0 + 400 * MS, ARRAY, 0)
    return [first, second]


def make_touched() -> None:
    """The program was killed; its first segment is a part."""
    from tachograph.format import SpoolDirectory, read_segment, write_part

    path = fresh("touched")
    spool, prefix = path / "spool", f"4242-{T0}"
    data = [segment.to_bytes() for segment in segments()]
    write_spool(spool, data, control(start_ns=T0, seq=1, state=1), prefix)
    write_part(SpoolDirectory(spool), prefix, [read_segment(data[0])])
    (spool / f"{prefix}.000000.seg").unlink()
    write_json(
        path / "manifest.json",
        unfinished(format_version="1.4", parameters={**PARAMETERS, "touched": True}),
    )
    empty = ("files", "codes", "stacks", "modules", "native_frames", "cpu", "waits")
    expect(
        "touched",
        state="recording",
        rows={"processes": 1, "threads": 1, "allocations": 3, "touched": 4, **dict.fromkeys(empty, 0)},
        sums={"cpu_ns": None, "off_cpu_ns": None},
        values={
            "allocations": [
                {"row": 0, "size_bytes": 64 * MIB, "freed_ns": T0 + 400 * MS, "block": ARRAY},
                {"row": 1, "size_bytes": 512 * MIB, "freed_ns": None, "block": EMPTY},
                {"row": 2, "size_bytes": 640, "block": None},
            ],
            "touched": [
                {"row": 0, "time_ns": T0 + 40 * MS, "process": 0, "block": ARRAY, "resident_bytes": 16 * MIB},
                {"row": 1, "time_ns": T0 + 41 * MS, "process": 0, "block": EMPTY, "resident_bytes": 0},
                {"row": 2, "time_ns": T0 + 300 * MS, "block": ARRAY, "resident_bytes": 64 * MIB},
                {"row": 3, "block": LOST, "resident_bytes": 8 * MIB},
            ],
        },
        quality=[{"process": 0, "loss": "records_torn", "count": 1}],
    )


MAKERS = {"touched": make_touched}

if __name__ == "__main__":
    make(MAKERS)
