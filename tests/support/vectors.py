"""What the makers of golden recordings share: a program's rows, the manifest, and how files are written.

What a reader must find is written down by hand, beside what is written into the recording, and goes into
``NAME.expected.json``. The vectors of a released version are never made again: they show that old recordings can be
read.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

VECTORS = Path(__file__).parents[2] / "format-spec" / "vectors"
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


def unfinished(**changes: Any) -> dict[str, Any]:
    """The manifest of a recording whose program, or recording command, was killed."""
    open_end: dict[str, Any] = {"clock": None, "ended_ns": None, "quality": [], "sampler_cost": {}}
    return manifest(state="recording", **open_end, **changes)


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
    metadata: Mapping[str, str] | None = None,
) -> None:
    fields = schemas[name]
    arrays = [pa.array([row[at] for row in rows], field[1]) for at, field in enumerate(fields)]
    schema = pa.schema([pa.field(*field) for field in fields])
    table = pa.Table.from_arrays(arrays, schema=schema)
    for column, values in (extra or {}).items():
        table = table.append_column(column, values)
    with pq.ParquetWriter(path / f"{name}.parquet", table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        if metadata is not None:
            writer.add_key_value_metadata(dict(metadata))


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


PLACES = {0: 15, 1: 12, 2: 7, 3: 6}
"""The line of each stack of ``whole_rows`` in its main file."""


def derived(
    rows: Rows, whose: Mapping[int, str] | None = None, weights: Mapping[int, int] | None = None
) -> dict[str, Any]:
    """What a reader must make of the rows: sums by line of the leaf, in all, and what is held at the end.

    ``weights`` are those of rows of ``cpu`` that are not their ``cpu_ns``.
    """
    owners = {0: "python_ns", 1: "python_ns", 2: "native_ns"}
    sums: dict[tuple[str | None, int | None], Counter[str]] = defaultdict(Counter)

    def at(stack: int | None) -> Counter[str]:
        line = None if stack is None else PLACES.get(stack)
        return sums["/srv/app/main.py" if line else None, line]

    for number, (_, _, stack, frame, cpu_ns, system_ns, _, _, opcode, origin, _) in enumerate(rows["cpu"]):
        weight = (weights or {}).get(number, cpu_ns)
        if origin in (2, 3):  # the signal sampler: the recommended attribution says nothing of it
            at(stack)["cpu_ns"] += weight
            continue
        kernel = (system_ns or 0) * weight // cpu_ns
        # Frame 1 has no symbol: without an opcode nothing tells whether a built-in function runs.
        owner = "unknown_ns" if frame is None or (frame == 1 and opcode is None) else owners[frame]
        at(stack).update({"cpu_ns": weight, "kernel_ns": kernel, owner: weight - kernel})
    for row in rows["waits"]:
        at(row[4])["wait_ns"] += row[2]
    for row in rows.get("allocations", []):
        at(row[8])["allocated_bytes"] += row[7]
        at(row[8])["held_bytes"] += row[7] if row[11] and row[12] is None else 0
    for row in rows.get("copies", []):
        at(row[5])["copied_bytes"] += row[2]
    totals: Counter[str] = sum(sums.values(), Counter())
    held = sum(sum(row[6:16:2]) - sum(row[7:16:2]) for row in rows.get("memory", []))
    return {
        "totals": _not_0(totals),
        "lines": [{"file": place[0], "line": place[1], **_not_0(sums[place])} for place in _in_order(sums)],
        "held": [{"process": 0, "bytes": held}] if rows.get("memory") else [],
    }


def _in_order(places: Iterable[tuple[str | None, int | None]]) -> list[tuple[str | None, int | None]]:
    return sorted(places, key=lambda place: (place[0] or "", place[1] or 0))


def _not_0(sums: Counter[str]) -> dict[str, int]:
    return {name: amount for name, amount in sorted(sums.items()) if amount}


def make(makers: Mapping[str, Callable[[], None]]) -> None:
    """The main program of a maker: makes the vectors that are named as arguments, or all of ``makers``."""
    for name in sys.argv[1:] or makers:
        makers[name]()
