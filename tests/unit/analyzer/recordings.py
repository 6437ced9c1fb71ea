"""Builds recordings by hand, row by row, through the format's own writer, so that tests know every number in them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pandas as pd
import pyarrow as pa

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.format import Manifest, load_specification, write_table
from tachograph.format.enumerations import DOMAINS, MemoryPart

SPEC = load_specification()
START = 1_000_000_000_000
MS = 1_000_000

PYTHON_FRAME, OTHER_FRAME, NATIVE_FRAME, MACHINERY_FRAME, GPU_FRAME = range(5)
"""Native frames of every recording: evaluation loop, rest of the interpreter, outside, call machinery, GPU driver."""


CALL, CALL_BUILTIN, BINARY_OP, LIST_APPEND = 53, 168, 45, 80
"""Opcodes of CPython 3.13: an unspecialised call, a call of a C function, no call, and one without foreign code."""


@dataclass
class Builder:
    """A recording in the making: one process of CPython 3.13 with a main thread, until more is added."""

    path: Path
    interval_ns: int = 10 * MS
    sampler: str = "native"
    python_version: str = "3.13.0"
    state: str = "complete"
    parameters: dict[str, Any] = field(default_factory=dict)
    quality: list[dict[str, Any]] = field(default_factory=list)
    end_ns: int | None = START + 10_000 * MS
    cpu_count: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    uuid: str = ""
    """Made of the path where none is given."""
    host: str | None = None
    argv: tuple[str, ...] = ("program.py",)
    created_utc: str | None = None
    sampler_cost: dict[str, Any] = field(default_factory=dict)
    exit_status: int | None = None
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _nodes: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uuid = self.uuid or str(uuid5(NAMESPACE_URL, str(self.path)))
        self.rows = {name: [] for name in SPEC.tables}
        self.rows["processes"].append(
            {
                "process": 0,
                "pid": 100,
                "start_ns": START,
                "end_ns": self.end_ns,
                "executable": "/usr/bin/python3.13",
                "python_version": self.python_version,
                "sampler": self.sampler,
                "exit_status": self.exit_status,
            }
        )
        self.thread("MainThread", main=True)
        for path, interpreter in (
            ("/usr/bin/python3.13", True),
            ("/usr/lib/libz.so", False),
            ("/lib/libcuda.so.1", False),
        ):
            self._add(
                "modules", process=0, path=path, start=0, end=1, file_offset=0, time_ns=0, interpreter=interpreter
            )
        for module, symbol in (
            (0, "_PyEval_EvalFrameDefault"),
            (0, "list_sort"),
            (1, "deflate"),
            (0, "_PyEval_Vector"),
            (2, "cuLaunch"),
        ):
            self._add("native_frames", module=module, offset=len(self.rows["native_frames"]), symbol=symbol)

    def _add(self, table: str, **values: Any) -> int:
        rows = self.rows[table]
        spec = SPEC.tables[table]
        if spec.id_column is not None:
            values = {spec.id_column: len(rows), **values}
        rows.append(values)
        return len(rows) - 1

    def process(self, pid: int, start_ms: float, end_ms: float | None, **values: Any) -> tuple[int, int]:
        """Another process, forked from the first, times in ms from the start; returns its id and its main thread's.

        One that is ``listed`` has no threads, and -1 stands for its main thread.
        """
        start, end = (None if ms is None else START + round(ms * MS) for ms in (start_ms, end_ms))
        known = {"parent": 0, "pid": pid, "start_ns": start, "end_ns": end, "recorded": "python", "origin": "fork"}
        if values.get("recorded") != "listed":
            known |= {name: self.rows["processes"][0].get(name) for name in ("executable", "python_version", "sampler")}
        process = self._add("processes", **{**known, **values})
        if values.get("recorded") == "listed":
            return process, -1
        return process, self.thread("MainThread", main=True, process=process, tid=pid, start_ns=start)

    def thread(self, name: str | None, *, main: bool = False, **values: Any) -> int:
        tid = 100 + len(self.rows["threads"])
        known = {"process": 0, "tid": tid, "name": name, "main": main, "python_name": True, "start_ns": START}
        return self._add("threads", **{**known, **values})

    def module(self, path: str) -> int:
        """A mapping of a file."""
        known = {"process": 0, "start": 0, "end": 1, "file_offset": 0, "time_ns": 0, "interpreter": False}
        return self._add("modules", path=path, **known)

    def native_frame(self, module: int | None, symbol: str | None) -> int:
        """A program counter; each call makes another one."""
        return self._add("native_frames", module=module, offset=len(self.rows["native_frames"]), symbol=symbol)

    def native_stack(self, parent: int | None, native_frame: int, stack: int | None = None) -> int:
        """A call on a native path below its caller."""
        return self._add("native_stacks", parent=parent, native_frame=native_frame, stack=stack)

    def file(self, path: str, source: str | None = None, cell: int | None = None, **values: Any) -> int:
        """A file; ``values`` are those of further columns."""
        return self._add("files", path=path, source=source, cell=cell, **values)

    def code(
        self,
        file: int,
        qualname: str = "f",
        first_line: int = 1,
        line_table: bytes | None = None,
        flags: int = 3,
        template_lines: str | None = None,
    ) -> int:
        """A code object; without a table of its own, instruction 2 * n is on line first_line + n (up to 100 lines)."""
        table = lines_table(100) if line_table is None else line_table
        told = {"file": file, "qualname": qualname, "first_line": first_line, "template_lines": template_lines}
        return self._add("codes", **told, flags=flags, line_table=table)

    def compiled(self, file: int, function: Callable[..., Any] | CodeType) -> int:
        """A code object of the interpreter that runs the test."""
        code = function if isinstance(function, CodeType) else function.__code__
        return self.code(file, code.co_qualname, code.co_firstlineno, code.co_linetable)

    def stack(self, *frames: tuple[int | None, int | None] | tuple[int | None, int | None, str]) -> int:
        """The node of a stack, outermost frame first; a frame is (code, line offset, maybe a task), see ``code``."""
        parent = None
        for code, line, *task in frames:
            instruction = None if line is None else line * 2
            row: dict[str, Any] = {"parent": parent, "code": code, "instruction": instruction}
            if task:
                row["task"] = task[0]
            key = tuple(row.items())
            parent = self._nodes[key] = self._nodes[key] if key in self._nodes else self._add("stacks", **row)
        assert parent is not None
        return parent

    def cpu(self, stack: int | None, ms: float = 10, **values: Any) -> None:
        """A sample; by default in the evaluation loop of the main thread, at the end of its weight."""
        at = START + len(self.rows["cpu"]) * 10 * MS
        row = {
            "time_ns": at,
            "thread": 0,
            "native_frame": PYTHON_FRAME,
            "system_ns": 0,
            "opcode": BINARY_OP,
            "overruns": 0,
        }
        state = 0 if stack is not None else 1
        self.rows["cpu"].append(
            {**row, "stack": stack, "cpu_ns": round(ms * MS), "origin": 0, "stack_state": state, **values}
        )

    def position(
        self, sampled: int, thread: int, stack: int | None, ms: float, cpu_ms: float = 0, **values: Any
    ) -> None:
        """Where a Python thread was at a sample of ``sampled``, time in ms from the start; it stood."""
        row = {"time_ns": START + round(ms * MS), "sampled": sampled, "thread": thread, "stack": stack}
        row |= {"cpu_ns": round(cpu_ms * MS), "running": False, "stack_state": 0 if stack is not None else 1}
        row["holds_work"] = None
        self.rows["positions"].append({**row, **values})

    def redundancy(
        self, stack: int | None, ms: float, *, equal: bool | None, crossed: bool = True, **values: Any
    ) -> None:
        """A watched load that met its partner, at ``ms`` from the start; ``equal`` None: it met none."""
        met = equal is not None
        row = {"time_ns": START + round(ms * MS), "thread": 0, "cpu_ns": 10 * MS, "stack": stack, "stack_state": 0}
        row |= {"native_path": 1, "access": 0, "outcome": 0 if met else 1, "equal": equal, "stores_between": 0}
        row |= {"crossed": crossed if met else None, "partner_stack": stack if met else None}
        row |= {"partner_stack_state": 0, "partner_native_path": 1 if met else 0}
        self.rows["redundancies"].append({**row, **values})

    def awaits(self, since_ms: float, ms: float, stack: int | None, tasks: int, **values: Any) -> None:
        """What a census at ``ms`` from the start found at a place; of the first process, all tasks looked at."""
        row = {"time_ns": START + round(ms * MS), "since_ns": START + round(since_ms * MS), "process": 0}
        self.rows["awaits"].append({**row, "stack": stack, "tasks": tasks, "chance": 1.0, **values})

    def wait(self, stack: int | None, start_ms: float, end_ms: float, **values: Any) -> None:
        """A wait, times in ms from the start of the recording."""
        start, end = (START + round(ms * MS) for ms in (start_ms, end_ms))
        row = {"start_ns": start, "end_ns": end, "off_cpu_ns": end - start, "thread": 0, "stack": stack, "target": 0}
        self.rows["waits"].append({**row, "stack_state": 0 if stack is not None else 1, **values})

    def memory(self, event: str, ms: float, footprint: int | None, **values: Any) -> None:
        """A row of the counters, time in ms from the start; flows are given as ``obj_allocated_bytes=...``, else 0."""
        flows = [f"{domain}_{what}_bytes" for domain in DOMAINS for what in ("allocated", "freed")]
        row = {
            "time_ns": START + round(ms * MS),
            "process": 0,
            "event": ("start", "threshold", "tick", "end").index(event),
            "footprint_bytes": footprint,
            "peak_bytes": footprint,
            "stack_state": 0 if values.get("stack") is not None else 1,
        }
        self._record_memory()
        self.rows["memory"].append({**row, **dict.fromkeys(flows, 0), **values})

    def block(
        self, stack: int | None, size: int, born_ms: float, freed_ms: float | None = None, mean: int = 1, **values: Any
    ) -> None:
        """A sampled block, times in ms from the start; with the mean of 1 it stands for itself."""
        row = {
            "time_ns": START + round(born_ms * MS),
            "process": 0,
            "thread": 0,
            "domain": DOMAINS.index("obj"),
            "size_bytes": size,
            "requested_bytes": size,
            "mean_bytes": mean,
            "weight_bytes": round(size / -math.expm1(-size / mean)),
            "stack": stack,
            "stack_state": 0 if stack is not None else 1,
            "followed": True,
            "freed_ns": None if freed_ms is None else START + round(freed_ms * MS),
        }
        self._record_memory()
        self.rows["allocations"].append({**row, **values})

    def memory_part(self, part: str, ms: float, resident: int, **values: Any) -> None:
        """A part of a process's memory in a reading, all of it private and of no file, unless ``values`` say else."""
        row = {
            "time_ns": START + round(ms * MS),
            "process": 0,
            "part": MemoryPart[part.upper()],
            "size_bytes": resident,
            "resident_bytes": resident,
            **dict.fromkeys(("anonymous_bytes", "private_bytes", "private_anonymous_bytes"), resident),
            "proportional_bytes": resident,
            "swapped_bytes": 0,
            "lazily_free_bytes": 0,
        }
        self._record_memory()
        self.rows["memory_parts"].append({**row, **values})

    def page_faults(self, stack: int | None, ms: float, faults: int, thread: int = 0) -> None:
        """Page faults of a thread of a forked process since its previous row."""
        state = 0 if stack is not None else 1
        row = {"time_ns": START + round(ms * MS), "thread": thread, "faults": faults}
        self.rows["page_faults"].append({**row, "stack": stack, "stack_state": state})

    def touched(self, block: int, ms: float, resident: int, process: int = 0) -> None:
        """A look at a block of that number."""
        self.parameters["touched"] = True
        row = {"time_ns": START + round(ms * MS), "process": process, "block": block, "resident_bytes": resident}
        self.rows["touched"].append(row)

    def copy(self, stack: int | None, size: int, ms: float, mean: int = 1, **values: Any) -> None:
        """A sampled copy, time in ms from the start; its thread copied nothing else since its previous row."""
        row = {"time_ns": START + round(ms * MS), "thread": 0, "bytes": size, "size_bytes": size, "mean_bytes": mean}
        self._record_memory()
        self.rows["copies"].append({**row, "stack": stack, "stack_state": 0 if stack is not None else 1, **values})

    def gpu(self, ms: float, busy: int | None = None, since_ms: float | None = None, **values: Any) -> None:
        """A reading of the first GPU; with ``since_ms`` the driver's own sample, with ``process`` that of a process."""
        if not self.rows["gpu_devices"]:
            self._add("gpu_devices", index=0, name="A GPU", uuid="GPU-1", memory_bytes=80 << 30, driver="580")
            self.parameters["gpu"] = True
        since = None if since_ms is None else START + round(since_ms * MS)
        row = {"time_ns": START + round(ms * MS), "since_ns": since, "device": 0, "busy_percent": busy}
        self.rows["gpu"].append({**row, **values})

    def span(self, name: str, start_ms: float, end_ms: float | None, fields: str | None = None, **values: Any) -> int:
        """A span, times in ms from the start of the recording; spans are added in the order of their beginning."""
        start, end = (None if ms is None else START + round(ms * MS) for ms in (start_ms, end_ms))
        row = {"process": 0, "thread": 0, "name": name, "fields": fields, "start_ns": start, "end_ns": end}
        return self._add("spans", **{**row, **values})

    def _record_memory(self) -> None:
        self.parameters["memory"] = True

    def write(self) -> Path:
        self.path.mkdir()
        sizes = {name: self._write_table(name, self.path / f"{name}.parquet") for name in SPEC.tables}
        Manifest(
            uuid=self.uuid,
            state=self.state,
            host=self.host,
            created_utc=self.created_utc,
            sampler_cost=self.sampler_cost,
            argv=[*self.argv],
            labels=self.labels,
            clock={"monotonic_ns": START, "utc_ns": 1_700_000_000_000_000_000},
            parameters={"interval_ns": self.interval_ns, "waits": True, "sampler": self.sampler, **self.parameters},
            quality=self.quality,
            tables=sizes,
            ended_ns=self.end_ns,
            cpu_count=self.cpu_count,
        ).write(self.path / "manifest.json")
        return self.path

    def _write_table(self, name: str, path: Path) -> dict[str, Any]:
        """Write one table; its entry in the manifest. Of a short one that was written before, only the uuid differs."""
        rows = self.rows[name]
        key = Rows(rows if len(rows) <= SHORT else [])
        if len(rows) > SHORT or key.length > LONG_TEXT:
            return _write(name, rows, path, self.uuid)
        any_uuid = ANY_UUID if len(self.uuid) == len(ANY_UUID) else self.uuid
        content = _short_table(name, key, any_uuid).replace(any_uuid.encode(), self.uuid.encode())
        path.write_bytes(content)
        return {"rows": len(rows), "bytes": len(content), "sha256": sha256(content).hexdigest()}

    def opened(self) -> Recording:
        """The recording, opened; it is written first if it was not yet."""
        if not self.path.exists():
            self.write()
        return Recording.open(self.path)

    def answer(self, **question: Any) -> Profile:
        """What is said to a question about it."""
        with self.opened() as recording:
            return build_profile(recording, Question(**question))


SHORT = 16
"""Tables of up to so many rows are kept: of most recordings most tables are empty, or as in the others."""
LONG_TEXT = 1 << 16
ANY_UUID = "00000000-0000-5000-8000-000000000000"


class Rows:
    """The rows of a table, equal to others with the same values of the same types."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self._text = repr(rows)

    @property
    def length(self) -> int:
        """The length of their text."""
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


@lru_cache(4096)
def _short_table(name: str, rows: Rows, uuid: str) -> bytes:
    """The file of a table of a recording with this uuid."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        _write(name, rows.rows, path, uuid)
        return path.read_bytes()


def _write(name: str, rows: list[dict[str, Any]], path: Path, uuid: str) -> dict[str, Any]:
    table = SPEC.tables[name]
    rows = sorted(rows, key=lambda row: row[table.sort[0]]) if table.sort else rows
    columns = [pa.array([row.get(each.name) for row in rows], each.type) for each in table.schema]
    return write_table(pa.table(columns, schema=table.schema), path, SPEC, name, uuid)


def lines_table(lines: int) -> bytes:
    """A location table in which every instruction is on a line of its own, the first on the first line."""
    # Code 13 (no columns), one code unit; then the step as a signed varint: 0, then 1 (encoded as 2).
    return bytes([0xE8, 0x00]) + bytes([0xE8, 0x02]) * (lines - 1)


def table(profile_frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a frame as tuples, for comparison; times rounded to ns."""
    values = profile_frame[list(columns)].astype(object).itertuples(index=False, name=None)
    return [
        tuple(None if pd.isna(value) else round(value, 9) if isinstance(value, float) else value for value in row)
        for row in values
    ]
