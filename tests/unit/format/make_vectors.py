"""Makes the golden recordings of format-spec/vectors: ``python -m unit.format.make_vectors [NAME...]``, in tests."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import (
    LINES,
    MAIN_TABLE,
    MAIN_TABLE_SEEN,
    MODULE_TABLE,
    MODULE_TABLE_SEEN,
    MS,
    PICKS,
    T0,
    derived,
    expect,
    fresh,
    make,
    manifest,
    tables_entry,
    values,
    whole_rows,
    write_json,
    write_parquet,
)


def make_whole() -> None:
    path, rows = fresh("whole"), whole_rows()
    for name, content in rows.items():
        write_parquet(path, name, content)
    counts = {name: len(content) for name, content in rows.items()}
    document = manifest(tables=tables_entry(path, counts))
    write_json(path / "manifest.json", document)
    expect(
        "whole",
        state="complete",
        rows=counts,
        sums={"cpu_ns": sum(row[4] for row in rows["cpu"]), "off_cpu_ns": 173 * MS},
        values=values(rows, PICKS),
        lines=LINES,
        derived=derived(rows),
        quality=document["quality"],
    )


def make_extra() -> None:
    path, rows = fresh("extra"), whole_rows()
    # Values of enumerations that version 1.0 does not know.
    rows["cpu"][0] = (*rows["cpu"][0][:9], 200, 201)
    rows["waits"][1] = (*rows["waits"][1][:7], 202, 203)
    for name, content in rows.items():
        count = len(content)
        extra = {
            "watts": pa.array([0.5 * index for index in range(count)]),
            "labels": pa.array([["a", "b"]] * count, pa.list_(pa.string())),
        }
        write_parquet(path, name, content, extra)
    pq.write_table(pa.table({"joules": [1.5, 2.5]}), path / "energy.parquet")
    (path / "unknown").mkdir()
    (path / "unknown" / "file.bin").write_bytes(bytes(range(64)))
    counts = {name: len(content) for name, content in rows.items()}
    quality = [*manifest()["quality"], {"process": None, "loss": "comets", "count": 3, "since": 1}]
    document = manifest(
        format_version="1.7",
        tables={**tables_entry(path, counts), "energy": {"rows": 2, "bytes": 1, "codec": "x"}},
        quality=quality,
        weather={"clouds": [1, 2, None]},
    )
    write_json(path / "manifest.json", document)
    expect(
        "extra",
        state="complete",
        rows=counts,
        sums={"cpu_ns": sum(row[4] for row in rows["cpu"]), "off_cpu_ns": 173 * MS},
        values=values(rows, PICKS),
        lines=LINES,
        derived=derived(rows),
        quality=quality,
        unknown_keys={"weather": {"clouds": [1, 2, None]}},
        unknown_tables=["energy"],
    )


def make_newer_major() -> None:
    path = fresh("newer-major")
    write_json(path / "manifest.json", {"format_version": "2.0", "identity": [1, 2], "state": {"phase": 3}})
    (path / "cpu.parquet").write_bytes(b"PAR2 is something else")
    expect(
        "newer-major",
        error="the recording has format version 2.0, this tachograph reads 1.x: use a newer tachograph",
    )


def killed_segments() -> list[SegmentBuilder]:
    """Segments 0 to 4 of the process that was killed; see ``make_killed`` for what becomes of them."""
    segments = [SegmentBuilder(seq, 4242, T0) for seq in range(5)]
    first, second, third, _, last = segments
    for key, value in {
        "executable": "/usr/bin/python3.13",
        "implementation": "cpython",
        "python_version": "3.13.0",
        "sampler": "native",
        "interval_ns": "10000000",
    }.items():
        first.meta(key, value)
    first.thread_start(0, 4242, T0, main=True)
    first.thread_name(0, "python", source=2)
    first.thread_name(0, "MainThread", source=1)
    first.thread_name(0, "python3", source=2)  # the system's name does not replace Python's
    first.module(0, "/usr/bin/python3.13", 0x400000, 0x800000, 0x1000, time_ns=T0, interpreter=True, build_id=b"\1\2\3")
    first.code(0, "/srv/app/main.py", "<module>", 1, MODULE_TABLE, flags=0)
    first.code(1, "/srv/app/\u00e9t\u00e9\u4e2d.py", "caf\u00e9", 11, MAIN_TABLE)
    first.stack(0, NONE, 0, 24)
    first.stack(1, 0, 1, 20)
    for index in range(20):
        first.cpu(T0 + (index + 1) * 10 * MS, 0, index % 2, pc=0x400100 + index % 3 * 16, opcode=93)
    # Stack 2 is used before it is defined, in the segment before.
    second.cpu(T0 + 210 * MS, 0, 2, cpu_ns=11 * MS, system_ns=-1, gil=2, pc=0x10)
    second.stack(2, 1, NONE, -1)
    second.wait(T0 + 215 * MS, T0 + 315 * MS, 0, 2, pc=0x400100, syscall=0, target=3)
    # Two records that were never committed: room with and without bytes in it. A thread that nothing defines.
    third.cpu(T0 + 320 * MS, 0, 0)
    third.gap(bytes(56))
    third.cpu(T0 + 330 * MS, 7, 0, state=0)
    third.gap(bytes(8) + b"\xee" * 48)
    third.cpu(T0 + 340 * MS, 0, 99)  # a stack that nothing defines
    third.add(77, b"of a later version")
    third.thread_start(1, 4243, T0 + 335 * MS)
    last.cpu(T0 + 410 * MS, 1, NONE, state=1, gil=0, pc=0x400110)
    last.wait(T0 + 415 * MS, T0 + 425 * MS, 1, NONE, state=1)
    last.cpu(T0 + 420 * MS, 0, 0)
    return segments


def make_killed() -> None:
    """Segments 0 and 1 are a part, and 1 is still there; 3 is gone; 4 ends in the middle of its last record."""
    from tachograph.format import SpoolDirectory, read_segment, write_part

    path = fresh("killed")
    spool, prefix = path / "spool", f"4242-{T0}"
    segments = killed_segments()
    data = [segment.to_bytes() for segment in segments]
    data[4] = data[4][: len(segments[4]) - 20]
    write_spool(spool, data, control(start_ns=T0, seq=4, state=1, losses={1: 2, 63: 4}), prefix)
    write_part(SpoolDirectory(spool), prefix, [read_segment(data[0]), read_segment(data[1])])
    (spool / f"{prefix}.000000.seg").unlink()
    (spool / f"{prefix}.000003.seg").unlink()
    (path / ".tmp-cpu.parquet").write_bytes(b"unfinished")
    write_json(
        path / "manifest.json", manifest(state="recording", clock=None, ended_ns=None, quality=[], sampler_cost={})
    )
    expect(
        "killed",
        state="recording",
        rows={
            "processes": 1,
            "threads": 3,
            "files": 2,
            "codes": 2,
            "stacks": 4,
            "modules": 1,
            "native_frames": 4,
            "cpu": 25,
            "waits": 2,
        },
        sums={"cpu_ns": 251 * MS, "off_cpu_ns": 110 * MS},
        values={
            "processes": [
                {"row": 0, "pid": 4242, "parent_pid": 4200, "end_ns": None, "exit_status": None, "parent": None}
                | {"python_version": "3.13.0", "sampler": "native", "executable": "/usr/bin/python3.13"},
            ],
            "threads": [
                {"row": 0, "tid": 4242, "name": "MainThread", "python_name": True, "main": True, "end_ns": None},
                {"row": 1, "tid": 4243, "name": None, "python_name": None, "main": False},
                {"row": 2, "tid": None, "name": None, "python_name": None, "main": None, "start_ns": None},
            ],
            "files": [{"row": 1, "path": "/srv/app/\u00e9t\u00e9\u4e2d.py", "sha256": None, "source": None}],
            "codes": [
                {"row": 0, "file": 0, "qualname": "<module>", "flags": 0, "line_table": MODULE_TABLE_SEEN},
                {"row": 1, "file": 1, "qualname": "caf\u00e9", "first_line": 11, "line_table": MAIN_TABLE_SEEN},
            ],
            "stacks": [
                {"row": 0, "parent": None, "code": 0, "instruction": 24},
                {"row": 1, "parent": 0, "code": 1, "instruction": 20},
                {"row": 2, "parent": 1, "code": None, "instruction": None},
                {"row": 3, "parent": None, "code": None, "instruction": None},
            ],
            "modules": [{"row": 0, "build_id": "010203", "file_offset": 0x1000, "interpreter": True}],
            "native_frames": [
                {"row": 0, "module": None, "offset": 0x10, "symbol": None},
                {"row": 1, "module": 0, "offset": 0x1100},
                {"row": 3, "module": 0, "offset": 0x1120},
            ],
            "cpu": [
                {"row": 0, "time_ns": T0 + 10 * MS, "thread": 0, "stack": 0, "native_frame": 1, "gil": True}
                | {"opcode": 93, "system_ns": 0},
                {"row": 20, "cpu_ns": 11 * MS, "stack": 2, "native_frame": 0, "system_ns": None, "gil": None}
                | {"opcode": None},
                {"row": 22, "thread": 2, "stack": 0, "native_frame": None},
                {"row": 23, "thread": 0, "stack": 3},
                {"row": 24, "thread": 1, "stack": None, "stack_state": 1, "gil": False, "native_frame": 2},
            ],
            "waits": [
                {"row": 0, "off_cpu_ns": 100 * MS, "stack": 2, "syscall": 0, "target": 3, "native_frame": 1},
                {"row": 1, "off_cpu_ns": 10 * MS, "thread": 1, "stack": None, "syscall": None, "native_frame": None},
            ],
        },
        # Torn: two in segment 2, and the last record of segment 4.
        quality=[
            {"process": 0, "loss": "stacks_torn", "count": 2},
            {"process": 0, "loss": "cause_63", "count": 4},
            {"process": 0, "loss": "records_torn", "count": 3},
            {"process": 0, "loss": "segments_missing", "count": 1},
            {"process": 0, "loss": "references_lost", "count": 2},
        ],
    )


MAKERS = {"whole": make_whole, "killed": make_killed, "extra": make_extra, "newer-major": make_newer_major}

if __name__ == "__main__":
    make(MAKERS)
