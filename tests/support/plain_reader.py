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
NOWHERE = 15  # the form of an entry without a location
WHOLE, NO_STACK, TRUNCATED = 0, 1, 3
TRUSTED_PATHS = (1, 3, 4)  # whole, truncated, torn
OPCODES = Path(__file__).parents[2] / "format-spec" / "opcodes.json"

SPECIFICATION = (OPCODES.parent / "SPEC.md").read_text(encoding="utf-8")
_PATTERNS = {
    name: re.compile("".join(pattern.split()))
    for name, pattern in re.findall(
        r"^([A-Z]+) +(\S*(?:\n +\S*)*)$", SPECIFICATION.partition("\n## Attribution")[2].split("```\n")[1], re.MULTILINE
    )
}
_LOOP, _GC, _CALL, _C_LIBRARY, _HOOKED, _RECORDER = (
    _PATTERNS[name] for name in ("LOOP", "GC", "CALL", "LIBC", "HOOKED", "RECORDER")
)


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
        """Which part the rest of a sample's time is: the lines of the table, in its order."""
        if row["native_frame"] is None:
            return "unknown_ns"
        known = row["stack_state"] in (WHOLE, TRUNCATED) and bool(classes)
        opcode = classes.get(row["opcode"] or 0, "other") if known else "unknown"
        where = self._where(row["native_frame"])
        collecting = row.get("collecting")
        symbol = self.tables["native_frames"][row["native_frame"]]["symbol"] or ""
        interpreter = where == "INTERP" and self._interpreters(row["native_frame"])
        loop = interpreter and _LOOP.match(symbol)
        named_gc = interpreter and not loop and _GC.match(symbol)
        gc = named_gc and collecting is not False
        lines = (
            (where == "JIT" and opcode in ("native_call", "any_call", "unknown"), "unknown_ns"),
            (where == "JIT", "python_ns"),
            (where == "OUTSIDE", "native_ns"),
            (self._served(row) and not loop and not gc, "native_ns"),
            (collecting is True and not loop, "python_ns"),
            (where == "LIBC" and opcode == "internal", "python_ns"),
            (where == "LIBC", "native_ns"),
            (loop or gc, "python_ns"),
            (opcode == "native_call", "native_ns"),
            (interpreter and not named_gc and _CALL.match(symbol), "python_ns"),
            (opcode == "any_call", "native_ns"),
            (opcode == "unknown" and row["stack_state"] != NO_STACK, "unknown_ns"),
        )
        return next((whose for fits, whose in lines if fits), "python_ns")

    def _where(self, native_frame: int) -> str:
        """INTERP, LIBC, JIT or OUTSIDE."""
        frame = self.tables["native_frames"][native_frame]
        module = None if frame["module"] is None else self.tables["modules"][frame["module"]]
        if module is None:
            return "OUTSIDE"
        if self._interpreters(native_frame):
            return "INTERP"
        if _RECORDER.match(module["path"]):
            return "LIBC" if _HOOKED.match(frame["symbol"] or "") else "INTERP"
        if _C_LIBRARY.match(PurePosixPath(module["path"]).name):
            return "LIBC"
        jit = self.tables["processes"][module["process"]].get("jit")
        return "JIT" if module["path"] == "[anonymous]" and jit else "OUTSIDE"

    def _served(self, row: Row) -> bool:
        """The path shows that code outside called what the native frame is in, for the sample's own Python frame."""
        node, outside = row.get("native_stack"), False
        if row.get("native_path") not in TRUSTED_PATHS:
            return False
        while node is not None:
            each = self.tables["native_stacks"][node]
            if each["stack"] is not None:
                return outside and each["stack"] == row["stack"]
            outside = outside or (each["native_frame"] is not None and self._where(each["native_frame"]) == "OUTSIDE")
            node = each["parent"]
        return False

    def _interpreters(self, native_frame: int) -> bool:
        """True if a frame is in the module of its process that has the evaluation loop, or in another of that path."""
        frame = self.tables["native_frames"][native_frame]
        module = self.tables["modules"][frame["module"]]
        same = (each for each in self.tables["modules"] if each["process"] == module["process"])
        return any(each["interpreter"] and each["path"] == module["path"] for each in same)

    @staticmethod
    def _opcodes(version: str | None) -> dict[int, str]:
        """The class of each opcode that is in one, for a version of CPython; nothing where it is not known."""
        known = json.loads(OPCODES.read_text(encoding="utf-8")).get(".".join((version or "").split(".")[:2]), {})
        classes = {number: name for name, numbers in known.items() for number in numbers.values()}
        return classes | {0: "internal"} if classes else {}


def line_of(table: bytes | None, first_line: int, instruction: int | None) -> int | None:
    """The line of an instruction: SPEC.md, "Line of an instruction"."""
    if instruction is not None and instruction < 0:
        return _valid(first_line)
    if table is None or instruction is None:
        return None
    covered, line, located = 0, first_line, _valid(first_line)
    for entry in re.findall(rb"[\x80-\xff][\0-\x7f]*|^[\0-\x7f]+", table, re.DOTALL):
        step = _step(entry)
        if step is None:
            return None
        line += step
        if entry[0] >> 3 & 15 != NOWHERE:
            located = _valid(line)
        covered += 2 * ((entry[0] & 7) + 1)
        if instruction < covered:
            return located
    return None


def _valid(line: int) -> int | None:
    return line if 1 <= line < 1 << 31 else None


def _step(entry: bytes) -> int | None:
    """How many lines an entry goes on; None if it is not one."""
    form, rest = entry[0] >> 3 & 15, entry[1:]
    if not entry[0] & 0x80:
        return None
    if form < 13:
        whole = len(rest) == (1 if form < 10 else 2)
        return max(0, form - 10) if whole else None
    varints = re.fullmatch(rb"((?:[\x40-\x7f]{0,5}[\0-\x3f]){%d})" % {13: 1, 14: 4, NOWHERE: 0}[form], rest, re.DOTALL)
    if varints is None:
        return None
    value = shift = 0
    for byte in rest[: next((at for at, byte in enumerate(rest, 1) if not byte & 64), 0)]:
        value |= (byte & 63) << shift
        shift += 6
    return -(value >> 1) if value & 1 else value >> 1


def _rows(path: Path) -> list[Row]:
    """The rows of a Parquet file."""
    found = duckdb.connect().read_parquet(path.as_posix())
    names: Sequence[str] = found.columns
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _whole(sums: Mapping[str, float]) -> dict[str, int]:
    """The sums, rounded, that are not 0."""
    return {name: round(amount) for name, amount in sorted(sums.items()) if round(amount)}
