"""The Firefox Profiler's processed format, version 48.

docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler says what is in which version. The profiler upgrades
older ones when it loads them, so this one need not follow the profiler's own.
"""

from __future__ import annotations

import gzip
import json
from typing import Any, BinaryIO

import pandas as pd

from ..recording.question_options import Metric
from .exported_rows import NONE
from .extract import Extract, Options, Thread
from .frame_tree import FrameTree

LIMIT = 1_000_000
"""Changes of stack in one file; a browser has to hold them."""

_PROCESSED_VERSION, _GECKO_VERSION = 48, 29
_PYTHON, _NATIVE, _OTHER = range(3)
_CATEGORIES = [
    {"name": "Python", "color": "blue", "subcategories": ["Other"]},
    {"name": "Native", "color": "green", "subcategories": ["Other"]},
    {"name": "Other", "color": "grey", "subcategories": ["Other"]},
]


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes one thread for each thread, with its samples in the order of time; gzipped JSON."""
    tree = extract.tree(lines=True, native=options.native)
    rows = extract.timeline(tree, LIMIT)
    start_ns = extract.recording.start_ns
    threads = [
        _thread(extract, extract.threads[int(number)], int(number), tree, part, start_ns)
        for number, part in rows.groupby("thread", sort=True)
    ]
    threads.sort(key=lambda each: (each["pid"], not each["isMainThread"]))
    document = {"meta": _meta(extract), "libs": [], "pages": [], "threads": threads}
    out.write(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), 6, mtime=0))
    return []


def _meta(extract: Extract) -> dict[str, Any]:
    manifest = extract.recording.manifest
    started = extract.utc_ns
    return {
        "interval": (extract.recording.interval_ns or 1_000_000) / 1e6,
        "startTime": 0 if started is None else started / 1e6,
        "processType": 0,
        "product": f"{extract.program} ({extract.metric.doc})",
        "stackwalk": 0,
        "debug": 0,
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _PROCESSED_VERSION,
        "categories": _CATEGORIES,
        "markerSchema": [],
        "symbolicated": True,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "importedFrom": "tachograph",
        "oscpu": manifest.os or "",
        "logicalCPUs": manifest.cpu_count or 0,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
    }


def _thread(
    extract: Extract, thread: Thread, number: int, tree: FrameTree, rows: pd.DataFrame, start_ns: int
) -> dict[str, Any]:
    """A thread with tables of its own, which hold what its stacks need and no more."""
    tables = _Tables(tree)
    stacks = [tables.stack(node) for node in rows["node"].tolist()]
    times = ((rows["time_ns"] - start_ns) / 1e6).round(6).tolist()
    if extract.metric.unit == "bytes":
        weight_type, weights = "bytes", rows["weight"].tolist()
    else:
        weight_type, weights = "tracing-ms", (rows["weight"] / 1e6).round(6).tolist()
    samples = {"length": len(rows), "stack": stacks, "time": times, "weight": weights, "weightType": weight_type}
    if extract.metric is Metric.CPU:
        samples["threadCPUDelta"] = rows["weight"].tolist()
    return {
        "processType": "default",
        "processName": thread.process_name,
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0 if thread.start_ns is None else max(0, thread.start_ns - start_ns) / 1e6,
        "unregisterTime": None if thread.end_ns is None else max(0, thread.end_ns - start_ns) / 1e6,
        "pausedRanges": [],
        "name": thread.name,
        "isMainThread": thread.main,
        "pid": str(thread.pid),
        "tid": thread.tid if thread.tid is not None else f"none-{number}",
        "samples": samples,
        "markers": _table("data", "name", "startTime", "endTime", "phase", "category"),
        **tables.finished(),
    }


def _table(*columns: str) -> dict[str, Any]:
    return {"length": 0, **{column: [] for column in columns}}


class _Tables:
    """stackTable, frameTable, funcTable and stringArray of one thread; ids are places in their columns."""

    def __init__(self, tree: FrameTree) -> None:
        self._tree = tree
        self._strings: dict[str, int] = {}
        self._funcs: dict[int, int] = {}
        self._frames: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._stack_rows: list[tuple[int, int | None, int]] = []
        self._frame_rows: list[tuple[int, int | None, int]] = []
        self._func_rows: list[tuple[int, int | None, int | None]] = []

    def stack(self, node: int) -> int:
        """The place of a node's stack."""
        for each in self._tree.chain(node):
            if each not in self._stacks:
                above = self._tree.parent[each]
                frame, category = self._frame(self._tree.frame[each])
                self._stacks[each] = len(self._stack_rows)
                self._stack_rows.append((frame, None if above == NONE else self._stacks[above], category))
        return self._stacks[node]

    def finished(self) -> dict[str, Any]:
        """The tables."""
        frame, prefix, stack_category = _columns(self._stack_rows)
        func, line, frame_category = _columns(self._frame_rows)
        name, file, first_line = _columns(self._func_rows)
        frames, funcs = len(func), len(name)
        return {
            "stackTable": {
                "length": len(frame), "frame": frame, "prefix": prefix, "category": stack_category,
                "subcategory": [0] * len(frame),
            },
            "frameTable": {
                "length": frames, "address": [-1] * frames, "inlineDepth": [0] * frames, "category": frame_category,
                "subcategory": [0] * frames, "func": func, "nativeSymbol": [None] * frames,
                "innerWindowID": [0] * frames, "implementation": [None] * frames, "line": line,
                "column": [None] * frames,
            },
            "funcTable": {
                "length": funcs, "name": name, "isJS": [False] * funcs, "relevantForJS": [False] * funcs,
                "resource": [-1] * funcs, "fileName": file, "lineNumber": first_line, "columnNumber": [None] * funcs,
            },
            "resourceTable": _table("lib", "name", "host", "type"),
            "nativeSymbols": _table("libIndex", "address", "name", "functionSize"),
            "stringArray": list(self._strings),
        }  # fmt: skip

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _frame(self, number: int) -> tuple[int, int]:
        """The place of a frame, and its category."""
        frame = self._tree.frames[number]
        function = self._tree.functions[frame.function]
        category = _NATIVE if function.native else _PYTHON if function.file is not None else _OTHER
        if number not in self._frames:
            self._frames[number] = len(self._frame_rows)
            self._frame_rows.append((self._func(frame.function), frame.line, category))
        return self._frames[number], category

    def _func(self, number: int) -> int:
        if number not in self._funcs:
            function = self._tree.functions[number]
            file = None if function.file is None else self._string(function.file)
            self._funcs[number] = len(self._func_rows)
            self._func_rows.append((self._string(function.name), file, function.first_line))
        return self._funcs[number]


def _columns(rows: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    first, second, third = zip(*rows, strict=True) if rows else ((), (), ())
    return list(first), list(second), list(third)
