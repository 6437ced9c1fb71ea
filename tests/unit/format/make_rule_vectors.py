"""Makes golden recordings in which a reader that misses one rule finds something else. See ``support.vectors``.

These are complete recordings; ``make_spool_rule_vectors`` makes the spools.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.vectors import MS, T0, VECTORS, expect, fresh, make, manifest, write_json

FORMAT = VECTORS.parent
TABLES = json.loads((FORMAT / "tables.json").read_text(encoding="utf-8"))["tables"]
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
    begun = {"time_ns": T0 + 3 * MS, "stack": 3, "cpu_ns": MS, "system_ns": 5 * MS, "thread": 4}
    rows["cpu"] = [
        {**tick, "thread": 0},
        {**tick, "thread": 1, "stack": 2},  # of the other process: the signal is its own
        {**tick, "thread": 2, "origin": 3, "stack": 2},
        {**tick, "thread": 3, "origin": 3, "stack": 1},
        later,
        {**later, "stack": None},
        begun,
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


MAKERS = {"attribution": make_attribution, "lines": make_lines, "window": make_window}

if __name__ == "__main__":
    make(MAKERS)
