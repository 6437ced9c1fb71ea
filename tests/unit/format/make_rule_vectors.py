"""Makes golden recordings in which a reader that misses one rule finds something else. See ``support.vectors``.

``pending``, ``definitions``, ``modules`` and ``window-killed`` are spools, the others complete recordings.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.spool_builder import NONE, UNKNOWN, SegmentBuilder, control, log_record, pending_block, record, write_spool
from support.vectors import MS, T0, VECTORS, expect, fresh, make, manifest, unfinished, write_json

FORMAT = VECTORS.parent
TABLES = json.loads((FORMAT / "tables.json").read_text(encoding="utf-8"))["tables"]
RECORDS = json.loads((FORMAT / "records.json").read_text(encoding="utf-8"))["records"]
ARROW = {"u64": pa.uint64(), "i64": pa.int64(), "u32": pa.uint32(), "i32": pa.int32(), "u8": pa.uint8()} | {
    "f64": pa.float64()
}
SECOND = 1000 * MS
Row = dict[str, Any]


def complete(name: str, rows: dict[str, list[Row]], **changes: Any) -> None:
    """Write a complete recording; a column that a row lacks is null, or 0 where it must not be."""
    path = fresh(name)
    always = [table for table, about in TABLES.items() if not about.get("since")]
    entries = {}
    for table in [*always, *(table for table in rows if table not in always)]:
        columns = TABLES[table]["columns"]
        fields = [
            pa.field(each["name"], pa.type_for_alias(each["type"]), each.get("nullable", False)) for each in columns
        ]
        lacking = {field.name: None if field.nullable else "" if field.type == pa.string() else 0 for field in fields}
        lacking |= {field.name: False for field in fields if field.type == pa.bool_() and not field.nullable}
        whole = [
            {**lacking, columns[0]["name"]: number, **row} if "sort" not in TABLES[table] else {**lacking, **row}
            for number, row in enumerate(rows.get(table, []))
        ]
        content = pa.Table.from_pylist(whole, schema=pa.schema(fields))
        about = {"format_version": "1.5", "uuid": manifest()["uuid"], "table": table}
        about["units"] = json.dumps({each["name"]: each["unit"] for each in columns if each.get("unit")})
        file = path / f"{table}.parquet"
        with pq.ParquetWriter(
            file,
            content.schema,
            compression="none",
            store_schema=False,
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        ) as writer:
            writer.write_table(content)
            writer.add_key_value_metadata({f"tachograph.{key}": value for key, value in about.items()})
        data = file.read_bytes()
        entries[table] = {"rows": len(whole), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    write_json(path / "manifest.json", manifest(format_version="1.5", tables=entries, quality=[], **changes))


def rows_of(rows: dict[str, list[Row]]) -> dict[str, int]:
    return counts(**{name: len(table) for name, table in rows.items()})


def counts(**rows: int) -> dict[str, int]:
    """The number of rows of all tables that a recording has."""
    return {name: 0 for name, table in TABLES.items() if not table.get("since")} | rows


def one_process(**changes: Any) -> dict[str, list[Row]]:
    process = {"pid": 4242, "start_ns": T0, "python_version": "3.13.0", "sampler": "native", "recorded": "python"}
    return {
        "processes": [{**process, **changes}],
        "threads": [{"process": 0, "tid": 4242, "main": True, "start_ns": T0}],
        "files": [{"path": "/srv/a.py"}],
    }


PATHS = {
    "interpreter": ("/usr/bin/python3.13", True),
    "libc": ("/usr/lib/libc.so.6", False),
    "extension": ("/srv/fast.so", False),
    "recorder": ("/srv/tachograph/recorder/_native.abi3.so", False),
    "shim": ("/srv/libtachograph.so", False),
    "jit": ("[anonymous]", False),
    "libcurl": ("/usr/lib/libcurl.so.4", False),
    "foreign": ("/srv/embedding", False),
    "embedding": ("/srv/embedding", True),  # of the second process, as the next one
    "no jit": ("[anonymous]", False),
}
SECOND_PROCESS = {"embedding", "no jit"}
LOOP, COLLECT, CALLING, BUILT_IN = "_PyEval_EvalFrameDefault", "gc_collect_main", "_PyFunction_Vectorcall", "list_sort"
NATIVE_CALL, ANY_CALL, INTERNAL, OTHER = 168, 53, 12, 255
WHOLE, STACKLESS, TORN, TRUNCATED = 0, 1, 2, 3
FROM_C, FROM_PYTHON = 2, 1  # native stacks
OTHER_STACK, INNER_OTHER, FRAME_LOST, NO_ACTIVATION, OUTER_OTHER = 4, 6, 7, 8, 10
P, N, U = "python_ns", "native_ns", "unknown_ns"
# Place, symbol, opcode, stack state, collecting, native stack, its state: whose the time is.
CASES: list[tuple[str | None, str | None, int | None, int, bool | None, int | None, int, str]] = [
    (None, None, INTERNAL, WHOLE, False, None, 0, U),
    ("jit", None, NATIVE_CALL, WHOLE, False, None, 0, U),
    ("jit", None, ANY_CALL, WHOLE, False, None, 0, U),
    ("jit", None, None, TORN, False, None, 0, U),
    ("jit", None, OTHER, WHOLE, False, None, 0, P),
    ("extension", "work", INTERNAL, WHOLE, False, None, 0, N),
    ("extension", "work", INTERNAL, WHOLE, True, None, 0, N),
    ("libcurl", "send", INTERNAL, WHOLE, False, None, 0, N),
    ("", None, INTERNAL, WHOLE, False, None, 0, N),  # no module
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, FROM_C, 1, N),
    ("interpreter", BUILT_IN, OTHER, WHOLE, True, FROM_C, 1, N),
    ("interpreter", CALLING, OTHER, WHOLE, None, FROM_C, 3, N),
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, FROM_C, 2, P),  # a path that is guessed
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, FROM_PYTHON, 1, P),
    ("interpreter", LOOP, OTHER, WHOLE, False, FROM_C, 1, P),
    ("interpreter", COLLECT, OTHER, WHOLE, None, FROM_C, 1, P),
    ("interpreter", COLLECT, OTHER, WHOLE, False, FROM_C, 1, N),  # the name alone is not enough
    ("libc", "malloc", INTERNAL, WHOLE, False, FROM_C, 4, N),
    ("libc", "malloc", NATIVE_CALL, WHOLE, True, None, 0, P),
    ("interpreter", BUILT_IN, NATIVE_CALL, WHOLE, True, None, 0, P),
    ("libc", "memcpy", INTERNAL, WHOLE, False, None, 0, P),
    ("libc", "memcpy", OTHER, WHOLE, False, None, 0, N),
    ("libc", "memcpy", None, WHOLE, False, None, 0, P),  # CACHE
    ("libc", "memcpy", INTERNAL, TORN, False, None, 0, N),  # the opcode is no fact
    ("interpreter", LOOP, NATIVE_CALL, WHOLE, False, None, 0, P),
    ("interpreter", COLLECT, NATIVE_CALL, WHOLE, None, None, 0, P),
    ("interpreter", COLLECT, NATIVE_CALL, WHOLE, False, None, 0, N),
    ("interpreter", BUILT_IN, NATIVE_CALL, WHOLE, False, None, 0, N),
    ("interpreter", CALLING, NATIVE_CALL, WHOLE, False, None, 0, N),
    ("interpreter", CALLING, ANY_CALL, WHOLE, False, None, 0, P),
    ("interpreter", "PyObject_Vectorcall", ANY_CALL, WHOLE, False, None, 0, P),
    ("interpreter", BUILT_IN, ANY_CALL, TRUNCATED, False, None, 0, N),
    ("interpreter", BUILT_IN, None, TORN, False, None, 0, U),
    ("interpreter", BUILT_IN, None, STACKLESS, False, None, 0, P),
    ("interpreter", BUILT_IN, None, WHOLE, False, None, 0, P),  # CACHE
    ("interpreter", None, INTERNAL, WHOLE, False, None, 0, P),
    ("recorder", "walk", OTHER, WHOLE, False, None, 0, P),
    ("recorder", "gc_walk", NATIVE_CALL, WHOLE, None, None, 0, N),  # no collector of the interpreter's
    ("shim", "malloc", OTHER, WHOLE, False, None, 0, N),
    ("shim", "malloc", INTERNAL, WHOLE, False, None, 0, P),
    ("shim", "hook", ANY_CALL, WHOLE, False, None, 0, N),
    # Served, or not: by an activation of another stack, innermost or not, a frame that was lost, no activation.
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, OTHER_STACK, 1, P),
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, INNER_OTHER, 1, P),
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, FRAME_LOST, 1, P),
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, NO_ACTIVATION, 1, P),
    ("interpreter", BUILT_IN, OTHER, WHOLE, False, OUTER_OTHER, 1, N),
    ("foreign", "gc_work", NATIVE_CALL, WHOLE, None, None, 0, N),  # an interpreter of another process only
    ("no jit", None, OTHER, WHOLE, False, None, 0, N),
]


def make_attribution() -> None:
    """Every row of the attribution table, each sample on a line of its own; a null instruction is on the first line."""
    rows = one_process(jit=True)
    rows["processes"].append({**rows["processes"][0], "pid": 4243, "jit": False})
    rows["threads"].append({"process": 1, "tid": 4243, "main": True, "start_ns": T0})
    modules = list(PATHS)
    rows["modules"] = [
        {
            "process": int(name in SECOND_PROCESS),
            "path": path,
            "start": 0x100000 * at,
            "end": 0x100000 * at + 0x10000,
            "time_ns": T0,
            "interpreter": marked,
        }
        for at, (name, (path, marked)) in enumerate(PATHS.items(), 1)
    ]
    frames: list[tuple[int | None, int, str | None]] = [(modules.index("extension"), 1, "caller")]
    frames.append((modules.index("interpreter"), 1, LOOP))
    rows["native_stacks"] = [
        {"native_frame": 0, "stack": None},
        {"parent": 0, "native_frame": 1, "stack": 1},
        {"parent": 1, "native_frame": 0, "stack": None},
        {"native_frame": 1, "stack": 0},  # runs another Python stack
        {"parent": 3, "native_frame": 0, "stack": None},
        {"parent": 2, "native_frame": 1, "stack": 0},
        {"parent": 5, "native_frame": 0, "stack": None},
        {"parent": 1, "native_frame": None, "stack": None},
        {"parent": 0, "native_frame": 0, "stack": None},
        {"parent": 4, "native_frame": 1, "stack": 1},
        {"parent": 9, "native_frame": 0, "stack": None},
    ]
    rows["codes"], rows["stacks"], rows["cpu"] = (
        [{"qualname": "main", "first_line": 1}],
        [{"code": 0, "instruction": 0}],
        [],
    )
    lines, totals = [], dict.fromkeys(("cpu_ns", "kernel_ns", P, N, U), 0)
    for number, (place, symbol, opcode, state, collecting, path, how, whose) in enumerate(CASES):
        frame = None
        if place is not None:
            frame = len(frames)
            frames.append((modules.index(place) if place else None, 0x1000 + number, symbol))
        served = path is not None
        stack = 1 if served else len(rows["stacks"])
        if not served:
            rows["codes"].append({"qualname": f"f{number}", "first_line": 100 + number})
            rows["stacks"].append({"parent": 0, "code": len(rows["codes"]) - 1})
        cpu_ns, system_ns = (1000 + number) * 1000, 1000 * number
        sample = {
            "time_ns": T0 + (number + 1) * MS,
            "thread": int(place in SECOND_PROCESS),
            "stack": stack,
            "native_frame": frame,
            "cpu_ns": cpu_ns,
        }
        sample |= {"system_ns": system_ns, "opcode": opcode, "stack_state": state, "collecting": collecting}
        rows["cpu"].append({**sample, "native_stack": path, "native_path": how})
        parts = {"cpu_ns": cpu_ns, "kernel_ns": system_ns, whose: cpu_ns - system_ns}
        line = 100 if served else 100 + number
        lines.append((line, parts))
        for key, amount in parts.items():
            totals[key] += amount
    rows["native_frames"] = [
        {"module": module, "offset": offset, "symbol": symbol} for module, offset, symbol in frames
    ]
    complete("attribution", rows, ended_ns=T0 + SECOND)
    expect(
        "attribution",
        state="complete",
        rows=rows_of(rows),
        sums={"cpu_ns": totals["cpu_ns"], "off_cpu_ns": None},
        values={},
        lines=[],
        derived=derived(lines, totals),
        quality=[],
    )


def derived(lines: list[tuple[int, Row]], totals: Row) -> Row:
    by_line: dict[int, Row] = {}
    for line, parts in lines:
        for key, amount in parts.items():
            by_line.setdefault(line, {})[key] = by_line.get(line, {}).get(key, 0) + amount
    plain = [
        {"file": "/srv/a.py", "line": line, **{key: value for key, value in sorted(parts.items()) if value}}
        for line, parts in sorted(by_line.items())
    ]
    return {"totals": {key: value for key, value in sorted(totals.items()) if value}, "lines": plain, "held": []}


LINES: list[tuple[bytes | None, int, int | None, int | None]] = [
    # Line table, first line, instruction (of a frame with a caller), and its line.
    (bytes([0x80 | 13 << 3, 7]), 10, 0, 7),
    (bytes([0x80 | 13 << 3, 0x44, 1]), 10, 0, 44),
    (bytes([0x80 | 13 << 3, 0x46, 0x40, 0x40, 0x40, 0x40, 0]), 10, 0, 13),
    (bytes([0x80 | 13 << 3, 0x46, 0x40, 0x40, 0x40, 0x40, 0x40, 0]), 10, 0, None),  # more bytes than a varint has
    (bytes([0x80 | 13 << 3, 0x40, 0x40, 0x40, 0x40, 2]), 1, 0, 1 + (1 << 24)),
    (bytes([0x80 | 14 << 3, 6, 0, 1]), 10, 0, None),  # a varint too few
    (bytes([0x80 | 15 << 3, 1]), 10, 0, None),  # a byte too many
    (bytes([0x80 | 14 << 3, 6, 0, 1, 2]), 10, 0, 13),
    (bytes([0x80 | 14 << 3 | 1, 6, 0x41, 1, 1, 2, 0x80 | 12 << 3, 0, 1]), 10, 4, 15),
    (bytes([0x80 | 15 << 3 | 7]), 10, 14, 10),
    (bytes([0x80 | 11 << 3, 0, 1, 0x80 | 15 << 3 | 1]), 10, 4, 11),
    (bytes([0x80 | 11 << 3, 0, 1, *[0x80 | 15 << 3] * 20]), 10, 40, 11),
    (bytes([0x80 | 11 << 3, 0, 1]), 10, 2, None),
    (bytes([0x80 | 13 << 3, 23]), 10, 0, None),
    (bytes([0x80 | 13 << 3, 23, 0x80 | 15 << 3]), 10, 2, None),
    (bytes([0x80 | 13 << 3, 23, 0x80 | 13 << 3, 8]), 10, 2, 3),
    (bytes([0x80 | 11 << 3, 0, 1, 0x80 | 10 << 3, 0]), 10, 2, None),
    (b"\x00\x80\x00", 10, 0, None),
    (None, 10, 0, None),
    (None, 10, None, 10),
    (bytes([0x80, 0]), 0, None, None),
]


def make_lines() -> None:
    """Line tables of every form, and broken ones; and the root of a stack without an instruction.

    Two processes have samples at the same times: weights of a first window, and quotients that do not come out even.
    """
    rows = one_process(sampler="signal")
    rows["processes"].append({**rows["processes"][0], "pid": 4243})
    rows["threads"] += [{"process": 1, "tid": 4243, "start_ns": None}]
    rows["threads"] += [{"process": 0, "tid": 4243 + at, "start_ns": T0} for at in (1, 2)]
    rows["codes"] = [{"qualname": "<module>", "first_line": 1, "line_table": b"\x80\x00"}]
    rows["stacks"] = [{"code": 0}]
    for table, first, instruction, _ in LINES:
        rows["codes"].append({"qualname": "f", "first_line": first, "line_table": table})
        rows["stacks"].append({"parent": 0, "code": len(rows["codes"]) - 1, "instruction": instruction})
    tick = {"time_ns": T0 + MS, "stack": 1, "cpu_ns": 10, "origin": 2}
    later = {"time_ns": T0 + 2 * MS, "stack": 2, "cpu_ns": MS, "thread": 3}  # not the first sample of its thread
    first = {"time_ns": T0 + 3 * MS, "stack": 3, "cpu_ns": MS, "system_ns": 5 * MS, "thread": 4}
    rows["cpu"] = [
        {**tick, "thread": 0},
        {**tick, "thread": 1, "stack": 2},  # of the other process: the signal is its own
        {**tick, "thread": 2, "origin": 3, "stack": 2},
        {**tick, "thread": 3, "origin": 3, "stack": 1},
        later,
        {**later, "stack": None},
        first,
    ]
    rows["threads"].append({"process": 1, "tid": 4249, "start_ns": None})
    parameters = {**manifest()["parameters"], "schedule": "stationary", "interval_ns": 12 * MS}
    window = {"number": 1, "first": 1, "start_ns": T0, "run": manifest()["uuid"]}
    complete("lines", rows, ended_ns=T0 + SECOND, parameters=parameters, window=window)
    found = [{"stack": 0, "line": None}, *({"stack": stack, "line": line} for stack, (*_, line) in enumerate(LINES, 1))]
    expect(
        "lines",
        state="complete",
        rows=rows_of(rows),
        sums={"cpu_ns": 3 * MS + 40, "off_cpu_ns": None},
        values={},
        lines=found,
        derived={
            "totals": {"cpu_ns": 14 * MS + 20, "kernel_ns": 12 * MS, U: 2 * MS},
            "lines": [
                {"file": None, "line": None, "cpu_ns": MS, U: MS},
                {"file": "/srv/a.py", "line": 7, "cpu_ns": 7},  # two thirds of a signal
                {"file": "/srv/a.py", "line": 13, "cpu_ns": 12 * MS, "kernel_ns": 12 * MS},
                {"file": "/srv/a.py", "line": 44, "cpu_ns": MS + 13, U: MS},
            ],
            "held": [],
        },
        quality=[],
    )


def make_window() -> None:
    """A window that is not the first: of threads that began earlier the first sample is in an earlier one."""
    rows = one_process()
    rows["threads"] = [
        {"process": 0, "tid": 4242 + at, "start_ns": start} for at, start in enumerate((T0, T0 + 1, None))
    ]
    rows["codes"] = [{"qualname": "f", "first_line": line} for line in (1, 2, 3)]
    rows["stacks"] = [{"code": 0, "instruction": 0}, *({"parent": 0, "code": code} for code in (0, 1, 2))]
    rows["cpu"] = [
        {
            "time_ns": T0 + (at + 1) * MS,
            "thread": at % 3,
            "stack": at % 3 + 1,
            "cpu_ns": 3 * MS,
            "system_ns": MS,
            "overruns": 1,
            "native_path": 0,
        }
        for at in range(6)
    ]
    parameters = {**manifest()["parameters"], "schedule": "stationary", "interval_ns": 12 * MS}
    window = {"number": 2, "first": 1, "start_ns": T0, "end_ns": T0 + SECOND, "run": manifest()["uuid"]}
    complete("window", rows, ended_ns=T0 + SECOND, parameters=parameters, window=window)
    # The first sample of thread 1 stands for two intervals, 24 ms, of which a third is the kernel's.
    old = {"cpu_ns": 6 * MS, "kernel_ns": 2 * MS, U: 4 * MS}
    new = {"cpu_ns": 27 * MS, "kernel_ns": 9 * MS, U: 18 * MS}
    totals = {key: 2 * old[key] + new[key] for key in old}
    expect(
        "window",
        state="complete",
        rows=rows_of(rows),
        sums={"cpu_ns": 18 * MS, "off_cpu_ns": None},
        values={},
        lines=[],
        derived=derived([(1, old), (2, new), (3, old)], totals),
        quality=[],
    )


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
        rows=counts(processes=1, threads=2, files=1, codes=1, stacks=1, cpu=2, allocations=1, memory=1),
        sums={"cpu_ns": 12 * MS, "off_cpu_ns": None},
        values={
            "processes": [{"row": 0, "start_ns": begin, "pid": 4242}],
            "threads": [
                {"row": 0, "tid": 4242, "start_ns": begin, "end_ns": begin + 4 * MS, "cpu_ns": 30 * MS},
                {"row": 1, "tid": 4244, "end_ns": T0 + SECOND, "cpu_ns": 0},
            ],
            "cpu": [{"row": 0, "stack": 0, "cpu_ns": 7 * MS}, {"row": 1, "stack": 0, "cpu_ns": 5 * MS}],
            "allocations": [{"row": 0, "thread": 1, "stack": 0, "freed_ns": begin + MS, "weight_bytes": 70}],
            "memory": [{"row": 0, "time_ns": begin, "native_allocated_bytes": 77}],
        },
        quality=[
            {"process": 0, "loss": "records_dropped", "count": 2},
            {"process": 0, "loss": "timers_refused", "count": 1},
        ],
    )


MAKERS = {
    "attribution": make_attribution,
    "lines": make_lines,
    "window": make_window,
    "pending": make_pending,
    "definitions": make_definitions,
    "modules": make_modules,
    "window-killed": make_window_killed,
}

if __name__ == "__main__":
    make(MAKERS)
