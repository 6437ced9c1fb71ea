"""A reader of complete recordings, written from SPEC.md alone: it imports nothing of tachograph.

DuckDB reads the tables. Slow and easy to check; answers are those of ``derived`` in the vectors' expected.json.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import duckdb

Row = dict[str, Any]
Place = tuple[str | None, int | None]
PARTS = ("python_ns", "native_ns", "kernel_ns", "unknown_ns")
TIMER, SIGNAL, SIGNAL_THREAD = 0, 2, 3
WHOLE, NO_STACK, TRUNCATED = 0, 1, 3
OPCODES = Path(__file__).parents[2] / "format-spec" / "opcodes.json"

_C_LIBRARY = re.compile(r"(libc|libm|libpthread|librt|libdl|ld-linux[\w-]*)(-[\d.]+)?\.so|\[vdso\]")
_LOOP = ("_PyEval_EvalFrameDefault", "_TAIL_CALL_")
_COLLECTOR = ("gc_", "_PyGC_", "visit_")
_MACHINERY = ("_PyEval_Vector", "_PyFunction_Vectorcall", "PyObject_Vectorcall")


class RefusedError(Exception):
    """The recording is not for this reader."""


class PlainRecording:
    """A recording of state ``complete`` or ``recovered``, in a directory; ``tables`` are lists of rows."""

    def __init__(self, path: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        version = self.manifest["format_version"]
        if int(version.partition(".")[0]) != 1:
            raise RefusedError(f"format version {version} is none of 1.x")
        if self.manifest["state"] not in ("complete", "recovered"):
            raise RefusedError(f"the recording's state is {self.manifest['state']}: recover it first")
        self.tables = {name: _rows(path / f"{name}.parquet") for name in self.manifest["tables"]}
        for name, told in self.manifest["tables"].items():
            if len(self.tables[name]) != told["rows"]:
                raise RefusedError(f"{name} has {len(self.tables[name])} rows, not {told['rows']}")

    def rows(self, name: str) -> list[Row]:
        """The rows of a table; none where it is missing."""
        return self.tables.get(name, [])

    def place(self, stack: int | None) -> Place:
        """File and line of a stack's leaf."""
        if stack is None:
            return None, None
        node = self.tables["stacks"][stack]
        if node["code"] is None:
            return None, None
        code = self.tables["codes"][node["code"]]
        begun = node["instruction"] is not None or node["parent"] is None
        instruction = node["instruction"] if begun else -1
        line = line_of(code["line_table"], code["first_line"], instruction)
        return self.tables["files"][code["file"]]["path"], line

    def derived(self) -> dict[str, Any]:
        """Sums by line of the leaf, in all, and what each process held at the end."""
        lines: dict[Place, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for stack, parts in self.amounts():
            for name, amount in parts.items():
                lines[self.place(stack)][name] += amount
        totals: dict[str, float] = defaultdict(float)
        for sums in lines.values():
            for name, amount in sums.items():
                totals[name] += amount
        order = sorted(lines, key=lambda place: (place[0] or "", place[1] or 0))
        return {
            "totals": _whole(totals),
            "lines": [{"file": place[0], "line": place[1], **_whole(lines[place])} for place in order],
            "held": [{"process": process, "bytes": amount} for process, amount in sorted(self.held().items())],
        }

    def amounts(self) -> Iterator[tuple[int | None, dict[str, float]]]:
        """Stacks, and what their lines get."""
        for row, parts in self.samples():
            yield row["stack"], parts
        for row in self.rows("waits"):
            yield row["stack"], {"wait_ns": row["off_cpu_ns"]}
        for row in self.rows("allocations"):
            held = row["weight_bytes"] if row["followed"] and row["freed_ns"] is None else 0
            yield row["stack"], {"allocated_bytes": row["weight_bytes"], "held_bytes": held}
        for row in self.rows("copies"):
            yield row["stack"], {"copied_bytes": row["bytes"]}

    def held(self) -> dict[int, int]:
        """Bytes that each process held at its end: what it allocated minus what it freed."""
        found: dict[int, int] = defaultdict(int)
        for row in self.rows("memory"):
            for name, amount in row.items():
                sign = 1 if name.endswith("_allocated_bytes") else -1 if name.endswith("_freed_bytes") else 0
                found[row["process"]] += sign * amount if sign else 0
        return found

    def samples(self) -> list[tuple[Row, dict[str, float]]]:
        """The rows of ``cpu`` with their weights, and these divided by the recommended attribution."""
        found = []
        classes = [self._opcodes(process["python_version"]) for process in self.tables["processes"]]
        for row, weight, system in self._weighted():
            parts = dict.fromkeys(("cpu_ns", *PARTS), 0.0)
            parts["cpu_ns"] = weight
            parts["kernel_ns"] = system or 0
            if row["origin"] not in (SIGNAL, SIGNAL_THREAD):
                thread = self.tables["threads"][row["thread"]]
                whose = self._whose(row, classes[thread["process"]])
                parts[whose] += weight - (system or 0)
                found.append((row, parts))
            else:
                found.append((row, {"cpu_ns": weight}))
        return found

    def _weighted(self) -> list[tuple[Row, float, float | None]]:
        """Rows, weights, and the kernel's part of them."""
        parameters, window = self.manifest["parameters"], self.manifest.get("window") or {}
        interval = parameters.get("interval_ns")
        reweighted = parameters.get("schedule") == "stationary" and interval is not None
        later = window.get("number", 0) > window.get("first", 0)
        threads, seen = self.tables["threads"], set()
        ticks: dict[tuple[int, int], int] = defaultdict(int)
        for row in self.tables["cpu"]:
            ticks[threads[row["thread"]]["process"], row["time_ns"]] += 1
        found = []
        for row in self.tables["cpu"]:
            thread = threads[row["thread"]]
            weight, system = row["cpu_ns"], row["system_ns"]
            begun = not later or (thread["start_ns"] or 0) > window["start_ns"]
            if row["origin"] in (SIGNAL, SIGNAL_THREAD):
                weight /= ticks[thread["process"], row["time_ns"]]
            elif reweighted and begun and row["thread"] not in seen and row["origin"] == TIMER:
                weight = interval * (row["overruns"] + 1)
                system = None if system is None else min(system * weight / max(row["cpu_ns"], 1), weight)
            seen.add(row["thread"])
            found.append((row, weight, system))
        return found

    def _whose(self, row: Row, classes: Mapping[int, str]) -> str:
        """Which part the rest of a sample's time is."""
        if row["native_frame"] is None:
            return "unknown_ns"
        trusted = row["stack_state"] in (WHOLE, TRUNCATED) and row["opcode"] is not None
        opcode = classes.get(row["opcode"], "other") if trusted and classes else "unknown"
        frame = self.tables["native_frames"][row["native_frame"]]
        module = None if frame["module"] is None else self.tables["modules"][frame["module"]]
        library = module is not None and _C_LIBRARY.match(PurePosixPath(module["path"]).name)
        symbol = frame["symbol"] or ""
        inside = module is not None and self._interpreter(module)
        if row.get("collecting") and (library or (inside and not symbol.startswith(_LOOP))):
            return "python_ns"
        if not inside:
            return "python_ns" if library and opcode == "internal" else "native_ns"
        collector = _COLLECTOR if row.get("collecting") is None else ()
        if symbol.startswith((*_LOOP, *collector)):
            return "python_ns"
        if opcode == "native_call":
            return "native_ns"
        if symbol.startswith(_MACHINERY):
            return "python_ns"
        if opcode == "any_call":
            return "native_ns"
        return "unknown_ns" if opcode == "unknown" and row["stack_state"] != NO_STACK else "python_ns"

    def _interpreter(self, module: Row) -> bool:
        same = (each for each in self.tables["modules"] if each["process"] == module["process"])
        return any(each["interpreter"] and each["path"] == module["path"] for each in same)

    @staticmethod
    def _opcodes(version: str | None) -> dict[int, str]:
        """The class of each opcode that is in one, for a version of CPython; nothing where it is not known."""
        known = json.loads(OPCODES.read_text(encoding="utf-8")).get(".".join((version or "").split(".")[:2]), {})
        return {number: name for name, numbers in known.items() for number in numbers.values()}


def line_of(table: bytes | None, first_line: int, instruction: int | None) -> int | None:
    """The line of an instruction: SPEC.md, "Line tables"."""
    if instruction is not None and instruction < 0:
        return first_line if first_line > 0 else None
    if table is None or instruction is None:
        return None
    at = end = 0
    line, located = first_line, first_line
    while at < len(table):
        head = table[at]
        form, units = head >> 3 & 15, (head & 7) + 1
        at += 1
        if form < 10:
            at += 1
        elif form < 13:
            line += form - 10
            at += 2
        elif form < 15:
            at, value = _varint(table, at)
            line += -(value >> 1) if value & 1 else value >> 1
            for _ in range(3 if form == 14 else 0):
                at, _ = _varint(table, at)
        located = located if form == 15 else line
        end += 2 * units
        if instruction < end:
            return located if located > 0 else None
    return None


def _varint(table: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (table[at] & 63) << shift
        shift += 6
        at += 1
        if not table[at - 1] & 64:
            return at, value


def _rows(path: Path) -> list[Row]:
    """The rows of a Parquet file."""
    found = duckdb.connect().read_parquet(path.as_posix())
    names: Sequence[str] = found.columns
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _whole(sums: Mapping[str, float]) -> dict[str, int]:
    """The sums that are not 0; the vectors' come out even."""
    assert all(amount == int(amount) for amount in sums.values()), sums
    return {name: int(amount) for name, amount in sorted(sums.items()) if amount}
