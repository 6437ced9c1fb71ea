"""Makes the golden recordings of process trees: ``python -m unit.format.make_tree_vectors``, in tests.

They are as those of ``make_vectors.py``, of version 1.1, but for ``tree-short``, which is of version 1.4.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from support.spool_builder import NONE, SegmentBuilder, control, log_record, short_record, write_spool
from support.vectors import (
    LINES,
    MS,
    PICKS,
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
from unit.format.make_memory_vectors import SCHEMAS_1_1

MIB = 1 << 20
SCHEMAS: Schemas = {
    **SCHEMAS_1_1,
    "processes": [
        *SCHEMAS_1_1["processes"],
        ("command", pa.string(), True),
        ("recorded", pa.string(), True),
        ("origin", pa.string(), True),
        ("user_ns", pa.int64(), True),
        ("system_ns", pa.int64(), True),
        ("max_resident_bytes", pa.int64(), True),
    ],
}
PYTHON = ("/usr/bin/python3.11", "cpython", "3.11.7", "native")
UNKNOWN = (None, None, None, None)


def listed(command: str, origin: str, user_ms: int) -> tuple[Any, ...]:
    return command, "listed", origin, user_ms * MS, MS, 2 * MIB


def tree_rows() -> Rows:
    """A shell that starts Python, which forks a worker and replaces itself by another program in the end."""
    rows = whole_rows()
    command = "python3 /srv/app/main.py '--token=***'"
    recorded = (command, "python", "exec", None, None, None)
    rows["processes"] = [
        (
            0,
            None,
            4200,
            4100,
            T0 - 9 * MS,
            T0 + 900 * MS,
            3,
            "/bin/dash",
            *UNKNOWN,
            *listed("sh run.sh", "first", 2),
        ),
        (1, 0, 4242, 4200, T0, T0 + 700 * MS, None, *PYTHON, T0 + 690 * MS, *recorded),
        (2, 1, 4250, 4242, T0 + 100 * MS, None, -9, *PYTHON, None, command, "native", "fork", None, None, None),
        (3, 1, 4242, 4200, T0 + 700 * MS, T0 + 800 * MS, 0, "/usr/bin/true", *UNKNOWN, *listed("true", "exec", 700)),
    ]
    rows["stacks"] = [(*row, None) for row in rows["stacks"]]
    for name in ("threads", "modules"):
        rows[name] = [(row[0], 1 if row[0] == 0 else 2, *row[2:]) for row in rows[name]]
    return rows


def make_tree() -> None:
    path, rows = fresh("tree"), tree_rows()
    for name, content in rows.items():
        write_parquet(path, name, content, schemas=SCHEMAS)
    counts = {name: len(content) for name, content in rows.items()}
    quality = [
        {"process": 1, "loss": "stacks_torn", "count": 6},
        {"process": 2, "loss": "interpreter_unsupported", "count": 1},
        {"process": None, "loss": "processes_unlisted", "count": 12},
    ]
    document = manifest(format_version="1.1", tables=tables_entry(path, counts), quality=quality)
    write_json(path / "manifest.json", document)
    expect(
        "tree",
        state="complete",
        rows=counts,
        sums={"cpu_ns": sum(row[4] for row in rows["cpu"]), "off_cpu_ns": 173 * MS},
        values=values(rows, {**PICKS, "processes": [0, 1, 2, 3]}, SCHEMAS),
        lines=LINES,
        derived=derived(rows),
        quality=quality,
    )


def log() -> bytes:
    """A shell, its Python (armed), which forks a worker (armed) and starts sleep; a Python that was not to be armed.

    Then the shell's pid is given to another process, and the Python replaces itself by a static program.
    """
    python, script = b"/usr/bin/python3.13", b"python3\0/srv/app/main.py\0--token=geheim"
    shell = (4200, T0 - 9 * MS, -1)
    records = [
        log_record(1, *shell[:2], parent=4100, executable=b"/bin/dash", command=b"sh\0run me.sh"),
        log_record(5, 4200, T0 - 10 * MS, parent=4100, executable=b"sh", command=b"sh\0run me.sh"),
        log_record(4, 4250, T0 + 99 * MS, parent=4242, numbers=(4242, T0 - MS, -1)),
        # The parent is a copy that the shell made of itself and that wrote nothing.
        log_record(1, 4242, T0 - MS, parent=4201, numbers=shell, executable=python, command=script),
        log_record(1, 4260, T0 + 150 * MS, parent=4250, executable=b"/bin/sleep", command=b"sleep\x009\0"),
        b"torn",
        log_record(2, 4260, T0 + 160 * MS, status=-15, numbers=(MS, 2 * MS, MIB)),
        log_record(77, 4260, T0 + 161 * MS),
        log_record(1, 4270, T0 + 170 * MS, parent=4242, executable=python, command=b"python3\0" + b"x" * 421),
        log_record(6, 4270, T0 + 171 * MS, status=1, command=b"the disk is full"),
        log_record(2, 4200, T0 + 180 * MS, parent=4100, status=0, numbers=(3 * MS, -1, 2 * MIB)),
        log_record(1, 4200, T0 + 5000 * MS, parent=4250, executable=b"/bin/true", command=b"true"),
        log_record(3, 4242, T0 + 190 * MS),
        log_record(1, 4242, T0 + 191 * MS, parent=4201, numbers=(4242, T0 - MS, -1), executable=b"/bin/x"),
        log_record(1, 4280, T0 + 9000 * MS, parent=4270, executable=b"/bin/late", command=b"late"),
        log_record(2, 4270, T0 + 300 * MS, status=1),
    ]
    return b"".join(records)


def make_tree_killed() -> None:
    make_spool("tree-killed", log(), "1.1")


def make_tree_short() -> None:
    """The same from a log with short records, but for every third, and one that is cut short."""
    records = log().split(b"TACHPRC1")[1:]
    whole = [(b"TACHPRC1" + record)[:512] for record in records]
    mixed = [record if number % 3 == 2 else short_record(record) for number, record in enumerate(whole)]
    mixed.insert(5, short_record(whole[0])[:-1])
    make_spool("tree-short", b"".join(mixed), "1.4")


def make_spool(name: str, process_log: bytes, version: str) -> None:
    path = fresh(name)
    spool = path / "spool"
    controls: dict[int, dict[str, Any]] = {
        4242: {"parent": 4201, "start_ns": T0, "state": 1},
        4250: {"parent": 4242, "start_ns": T0 + 100 * MS, "state": 2, "end_ns": T0 + 400 * MS}
        | {"stop_requested": 1, "losses": {26: 1}},
    }
    for pid, head in controls.items():
        start = head["start_ns"]
        segment = SegmentBuilder(0, pid, start)
        if pid == 4242:
            segment.meta("python_version", "3.13.0")
            segment.meta("executable", "/usr/bin/python3.13")
        else:
            segment.meta("recorded", "native")
        segment.thread_start(0, pid, start, main=True)
        segment.module(0, "/usr/lib/libc.so.6", 0x10000, 0x20000, 0, time_ns=T0)
        segment.stack(0, NONE, NONE, 2)
        segment.cpu(start + 10 * MS, 0, 0, pc=0x10010)
        write_spool(spool, [segment.to_bytes()], control(pid=pid, **head), f"{pid}-{start}")
    (spool / "processes.log").write_bytes(process_log)
    write_json(path / "manifest.json", unfinished(format_version=version))
    unknown = {"end_ns": None, "exit_status": None, "user_ns": None, "system_ns": None, "max_resident_bytes": None}
    command = "python3 /srv/app/main.py '--token=***'"
    expect(
        name,
        state="recording",
        rows={
            "processes": 8,
            "threads": 2,
            "files": 0,
            "codes": 0,
            "stacks": 1,
            "modules": 2,
            "native_frames": 2,
            "cpu": 2,
            "waits": 0,
        },
        sums={"cpu_ns": 20 * MS, "off_cpu_ns": None},
        values={
            "processes": [
                {"row": 0, "pid": 4200, "parent": None, "parent_pid": 4100, "start_ns": T0 - 9 * MS}
                | {"end_ns": T0 + 180 * MS, "exit_status": 0, "executable": "/bin/dash", "command": "sh 'run me.sh'"}
                | {"recorded": "listed", "origin": "first", "sampler": None, "python_version": None}
                | {"user_ns": 3 * MS, "system_ns": None, "max_resident_bytes": 2 * MIB},
                {"row": 1, "pid": 4242, "parent": 0, "parent_pid": 4201, "start_ns": T0, "recorded": "python"}
                | {"origin": "exec", "command": command, "python_version": "3.13.0"}
                | unknown
                | {"end_ns": T0 + 190 * MS},
                {"row": 2, "pid": 4250, "parent": 1, "start_ns": T0 + 100 * MS, "recorded": "native"}
                | {"origin": "fork", "command": command, "executable": "/usr/bin/python3.13"}
                | unknown,
                {"row": 3, "pid": 4260, "parent": 2, "command": "sleep 9", "exit_status": -15, "user_ns": MS}
                | {"system_ns": 2 * MS, "max_resident_bytes": MIB, "recorded": "listed", "origin": "exec"},
                {"row": 4, "pid": 4270, "parent": 1, "command": f"python3 {'x' * 391}…", "exit_status": 1}
                | {"recorded": "listed"},
                {"row": 5, "pid": 4242, "parent": 1, "origin": "exec", "recorded": "listed", "command": None}
                | unknown
                | {"executable": "/bin/x"},
                # Another process of the pid that the shell had.
                {"row": 6, "pid": 4200, "parent": 2, "command": "true", "origin": "exec"} | unknown,
                # The process of its parent's pid had ended long before.
                {"row": 7, "pid": 4280, "parent": None, "parent_pid": 4270, "command": "late"},
            ],
            "threads": [{"row": 0, "process": 1, "tid": 4242}, {"row": 1, "process": 2, "tid": 4250}],
            "modules": [{"row": 0, "process": 1}, {"row": 1, "process": 2}],
            "cpu": [{"row": 0, "thread": 0, "stack": 0}, {"row": 1, "thread": 1, "stack": 0}],
        },
        quality=[
            {"process": 2, "loss": "interpreter_unsupported", "count": 1},
            {"process": 2, "loss": "processes_outlived", "count": 1},
            {"process": 4, "loss": "processes_unarmed", "count": 1},
            {"process": None, "loss": "records_torn", "count": 1},
        ],
    )


MAKERS = {"tree": make_tree, "tree-killed": make_tree_killed, "tree-short": make_tree_short}

if __name__ == "__main__":
    make(MAKERS)
