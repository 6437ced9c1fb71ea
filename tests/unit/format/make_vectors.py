"""Makes the golden recordings of format-spec/vectors: ``python tests/unit/format/make_vectors.py [NAME...]``.

What a reader must find is written down here by hand, beside what is written into the recording, and goes into
``NAME.expected.json``. The vectors of a released version are never made again: they show that old recordings can be
read.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2]))

from unit.format.builder import NONE, SegmentBuilder, control, write_spool

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"
T0 = 5_000_000_000_000
MS = 1_000_000
SOURCE = '''"""Adds squares."""


def work(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def main():
    return work(1000)


main()
'''
SHA256 = "d0a648d6b850780e773ecf016c9f10baee333c5bb67feecdcc4a26a663ccd95f"
# co_linetable of CPython 3.11 for the three code objects of SOURCE.
MODULE_TABLE = bytes.fromhex(
    "f003010101d80013d00013f006040111f000040111f000040111f00e0101"
    "16f000010116f000010116f008000105800481068406800680068006"
)
WORK_TABLE = bytes.fromhex(
    "8000d80c0d8045dd0d12903189588c58f000010517f0000105178801d8080d901190519115890e88058805d80b10804c"
)
MAIN_TABLE = bytes.fromhex("8000dd0b0f9004893a8c3ad00415")

Schemas = dict[str, list[tuple[str, pa.DataType, bool]]]
SCHEMAS: Schemas = {
    "processes": [
        ("process", pa.uint32(), False),
        ("parent", pa.uint32(), True),
        ("pid", pa.int32(), False),
        ("parent_pid", pa.int32(), True),
        ("start_ns", pa.int64(), False),
        ("end_ns", pa.int64(), True),
        ("exit_status", pa.int32(), True),
        ("executable", pa.string(), True),
        ("implementation", pa.string(), True),
        ("python_version", pa.string(), True),
        ("sampler", pa.string(), True),
    ],
    "threads": [
        ("thread", pa.uint32(), False),
        ("process", pa.uint32(), False),
        ("tid", pa.int32(), True),
        ("name", pa.string(), True),
        ("python_name", pa.bool_(), True),
        ("main", pa.bool_(), True),
        ("start_ns", pa.int64(), True),
        ("end_ns", pa.int64(), True),
        ("cpu_ns", pa.int64(), True),
    ],
    "files": [
        ("file", pa.uint32(), False),
        ("path", pa.string(), False),
        ("sha256", pa.string(), True),
        ("size", pa.int64(), True),
        ("source", pa.string(), True),
    ],
    "codes": [
        ("code", pa.uint32(), False),
        ("file", pa.uint32(), False),
        ("qualname", pa.string(), False),
        ("first_line", pa.int32(), False),
        ("flags", pa.int32(), False),
        ("line_table", pa.binary(), True),
    ],
    "stacks": [
        ("stack", pa.uint32(), False),
        ("parent", pa.uint32(), True),
        ("code", pa.uint32(), True),
        ("instruction", pa.int32(), True),
    ],
    "modules": [
        ("module", pa.uint32(), False),
        ("process", pa.uint32(), False),
        ("path", pa.string(), False),
        ("build_id", pa.string(), True),
        ("start", pa.uint64(), False),
        ("end", pa.uint64(), False),
        ("file_offset", pa.uint64(), False),
        ("time_ns", pa.int64(), False),
        ("interpreter", pa.bool_(), False),
    ],
    "native_frames": [
        ("native_frame", pa.uint32(), False),
        ("module", pa.uint32(), True),
        ("offset", pa.uint64(), False),
        ("symbol", pa.string(), True),
    ],
    "cpu": [
        ("time_ns", pa.int64(), False),
        ("thread", pa.uint32(), False),
        ("stack", pa.uint32(), True),
        ("native_frame", pa.uint32(), True),
        ("cpu_ns", pa.int64(), False),
        ("system_ns", pa.int64(), True),
        ("overruns", pa.uint32(), False),
        ("gil", pa.bool_(), True),
        ("opcode", pa.uint8(), True),
        ("origin", pa.uint8(), False),
        ("stack_state", pa.uint8(), False),
    ],
    "waits": [
        ("start_ns", pa.int64(), False),
        ("end_ns", pa.int64(), False),
        ("off_cpu_ns", pa.int64(), False),
        ("thread", pa.uint32(), False),
        ("stack", pa.uint32(), True),
        ("native_frame", pa.uint32(), True),
        ("syscall", pa.int32(), True),
        ("target", pa.uint8(), False),
        ("stack_state", pa.uint8(), False),
    ],
}
Rows = dict[str, list[tuple[Any, ...]]]
# The two tables as the killed recording's stacks need them: 11 units without a location and then the call in columns 0
# to 6, 14 lines further; 10 units without and then the one that was seen.
MODULE_TABLE_SEEN = "fffaf11c000107"
MAIN_TABLE_SEEN = "fff9dc0b15"


def whole_rows() -> Rows:
    cpu: list[tuple[Any, ...]] = []
    for index in range(60):
        time_ns = T0 + 10 * MS * (index + 1) + index % 7 * 1000
        if index % 10 == 9:  # the native thread
            cpu.append((time_ns, 1, None, 2, 9 * MS, None, 0, False, None, 0, 1))
        elif index % 10 == 8:  # a torn stack
            cpu.append((time_ns, 0, None, 1, 10 * MS, 0, 1, None, None, 0, 2))
        else:
            cpu.append((time_ns, 0, 2 + index % 2, index % 2, 10 * MS + index, MS * (index % 3), 0, True, 93, 0, 0))
    return {
        "processes": [
            (0, None, 4242, 4200, T0, T0 + 700 * MS, 0, "/usr/bin/python3.11", "cpython", "3.11.7", "native"),
        ],
        "threads": [
            (0, 0, 4242, "MainThread", True, True, T0, T0 + 699 * MS, 555 * MS),
            (1, 0, 4243, "blas-worker", False, False, T0 + 20 * MS, None, None),
        ],
        "files": [
            (0, "/srv/app/main.py", SHA256, len(SOURCE), SOURCE),
            (1, "<frozen runpy>", None, None, None),
        ],
        "codes": [
            (0, 1, "_run_code", 65, 3, None),
            (1, 0, "<module>", 1, 0, MODULE_TABLE),
            (2, 0, "main", 11, 3, MAIN_TABLE),
            (3, 0, "work", 4, 3, WORK_TABLE),
        ],
        "stacks": [(0, None, 1, 24), (1, 0, 2, 20), (2, 1, 3, 44), (3, 1, 3, 24), (4, 0, None, None)],
        "modules": [
            (0, 0, "/usr/bin/python3.11", "00ff" * 10, 0x400000, 0x800000, 0, T0, True),
            (1, 0, "/usr/lib/libblas.so.3", None, 0x7F0000000000, 0x7F0000100000, 0x1000, T0 + 15 * MS, False),
        ],
        "native_frames": [
            (0, 0, 0x1234, "_PyEval_EvalFrameDefault"),
            (1, 0, 0x2000, None),
            (2, 1, 0x1010, "dgemm_kernel<double>(int, double const*)"),
            (3, None, 0xFFFFFFFFFF600000, None),
        ],
        "cpu": cpu,
        "waits": [
            (T0 + 605 * MS, T0 + 695 * MS, 89 * MS, 0, 0, 3, 0, 1, 0),
            (T0 + 606 * MS, T0 + 690 * MS, 84 * MS, 1, None, None, None, 0, 1),
        ],
    }


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "format_version": "1.0",
        "uuid": "11111111-2222-4333-8444-555555555555",
        "state": "complete",
        "created_utc": "2026-11-20T16:00:00Z",
        "tachograph_version": "0.1.0",
        "host": "example",
        "os": "Linux 6.1.0",
        "machine": "x86_64",
        "cpu_count": 2,
        "clock": {"monotonic_ns": T0, "utc_ns": 1_795_190_400_000_000_000},
        "argv": ["main.py", "--token=***"],
        "parameters": {
            "interval_ns": 10 * MS,
            "sampler": "native",
            "waits": True,
            "sources": True,
            "start_paused": False,
            "segment_size": 8192,
        },
        "sampler_cost": {"handler_cpu_ns": 7 * MS, "helper_cpu_ns": 5 * MS, "processes": []},
        "quality": [{"process": 0, "loss": "stacks_torn", "count": 6}],
        "tables": {},
        "ended_ns": T0 + 700 * MS,
        "notes": [],
        **changes,
    }


def fresh(name: str) -> Path:
    path = VECTORS / f"{name}.tacho"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def write_parquet(
    path: Path,
    name: str,
    rows: list[tuple[Any, ...]],
    extra: dict[str, pa.Array] | None = None,
    schemas: Schemas = SCHEMAS,
) -> None:
    fields = schemas[name]
    arrays = [pa.array([row[at] for row in rows], field[1]) for at, field in enumerate(fields)]
    schema = pa.schema([pa.field(*field) for field in fields])
    table = pa.Table.from_arrays(arrays, schema=schema)
    for column, values in (extra or {}).items():
        table = table.append_column(column, values)
    pq.write_table(table, path / f"{name}.parquet", compression="zstd", store_schema=False)


def write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def expect(name: str, **expected: Any) -> None:
    write_json(VECTORS / f"{name}.expected.json", expected)


def tables_entry(path: Path, rows: dict[str, int]) -> dict[str, dict[str, int]]:
    return {name: {"rows": n, "bytes": (path / f"{name}.parquet").stat().st_size} for name, n in rows.items()}


def plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def values(rows: Rows, picks: dict[str, list[int]], schemas: Schemas = SCHEMAS) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [
            {"row": at} | {field[0]: plain(value) for field, value in zip(schemas[name], rows[name][at], strict=True)}
            for at in picked
        ]
        for name, picked in picks.items()
    }


PICKS = {
    "processes": [0],
    "threads": [0, 1],
    "files": [0, 1],
    "codes": [0, 1, 2, 3],
    "stacks": [0, 1, 2, 3, 4],
    "modules": [0, 1],
    "native_frames": [0, 1, 2, 3],
    "cpu": [0, 1, 8, 9, 59],
    "waits": [0, 1],
}
LINES = [{"stack": 0, "line": 15}, {"stack": 1, "line": 12}, {"stack": 2, "line": 7}, {"stack": 3, "line": 6}]


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
    for each in sys.argv[1:] or MAKERS:
        MAKERS[each]()
