"""Threads and processes as typed arrays: null rules, and that nothing else reads the two tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tachograph.analyzer
from tachograph.analyzer.recording.definitions import Processes, Threads
from tachograph.format import load_specification

ANALYZER = Path(tachograph.analyzer.__file__).parent
AT_MOST = 4


def table(name: str, **columns: list[Any]) -> pa.Table:
    """A table of the format; columns that are not given are null, or 0 where they cannot be."""
    spec, rows = load_specification().tables[name], len(next(iter(columns.values())))
    values = {column.name: columns.get(column.name, [None if column.nullable else 0] * rows) for column in spec.columns}
    return pa.table(values, schema=spec.schema)


def test_what_is_unknown_of_threads_is_null() -> None:
    threads = Threads(table("threads", process=[0, 2, 2]), 4)
    assert len(threads) == 3
    assert threads.process.tolist() == [0, 2, 2]
    assert threads.per_process.tolist() == [1, 0, 2, 0]
    assert threads.name == [None] * 3
    for column in (threads.tid, threads.start_ns, threads.end_ns, threads.cpu_ns):
        assert column.tolist() == [None] * 3
    assert threads.main.tolist() == [False] * 3
    assert threads.native.tolist() == [False] * 3


def test_native_threads_are_neither_main_nor_named_by_python() -> None:
    threads = Threads(
        table(
            "threads",
            process=[0] * 5,
            main=[True, False, False, False, None],
            python_name=[None, None, False, True, False],
        ),
        1,
    )
    assert threads.main.tolist() == [True, False, False, False, False]
    assert threads.native.tolist() == [False, True, True, False, False]


def test_unknown_numbers_are_filled_as_the_reader_needs_them() -> None:
    threads = Threads(table("threads", process=[0, 0], end_ns=[7, None], cpu_ns=[None, 1 << 40]), 1)
    assert threads.end_ns.filled(9).tolist() == [7, 9]
    assert threads.end_ns.tolist() == [7, None]
    assert np.array_equal(threads.cpu_ns.floats(), [np.nan, float(1 << 40)], equal_nan=True)


def test_what_is_unknown_of_processes_is_null() -> None:
    processes = Processes(
        table("processes", pid=[5, 6], start_ns=[1, 2], end_ns=[None, 3]), ["/usr/bin/python", "a.py"]
    )
    assert len(processes) == 2
    assert processes.pid.tolist() == [5, 6]
    assert processes.start_ns.tolist() == [1, 2]
    assert processes.end_ns.tolist() == [None, 3]
    for numbers in (
        processes.parent,
        processes.parent_pid,
        processes.exiting_ns,
        processes.exit_status,
        processes.user_ns,
        processes.system_ns,
        processes.max_resident_bytes,
    ):
        assert numbers.tolist() == [None, None]
    for texts in (
        processes.executable,
        processes.command,
        processes.python_version,
        processes.sampler,
        processes.recorded,
        processes.origin,
    ):
        assert texts == [None, None]
    assert processes.jit.tolist() == [False, False]
    assert processes.name == ["a.py", "unnamed"]


def test_a_reader_cannot_change_what_others_read() -> None:
    threads = Threads(table("threads", process=[0], tid=[3], main=[True]), 1)
    processes = Processes(table("processes", pid=[5]), [])
    for array in (
        threads.process,
        threads.per_process,
        threads.main,
        threads.native,
        threads.tid.values,
        threads.tid.unknown,
        processes.pid,
        processes.jit,
        processes.parent.values,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def readers(source: str) -> Iterator[str]:
    """Every call that asks a recording for one of the two tables, whole or in parts."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        name = node.args[0]
        if node.func.attr in ("table", "rows", "batches", "read", "read_group", "row_groups") and (
            isinstance(name, ast.Constant) and name.value in ("threads", "processes")
        ):
            yield f"line {node.lineno}: {node.func.attr}({name.value!r})"


def test_few_places_read_the_two_tables() -> None:
    found = [
        f"{path.relative_to(ANALYZER)}, {place}"
        for path in sorted(ANALYZER.rglob("*.py"))
        for place in readers(path.read_text(encoding="utf-8"))
    ]
    assert any(place.startswith("recording/opened.py") for place in found), "the search no longer finds anything"
    assert len(found) <= AT_MOST, "\n".join(found)
