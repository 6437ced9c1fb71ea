"""The native functions of a recording: names and libraries of program counters and of their callers.

Frames of the interpreter that say no more than the Python frames beside them are *folded*: they have no function, and
their time counts as their caller's. Folded are

- the evaluation loop (in its place stand the Python frames that it ran) and the functions that make a call of any
  callable (``counter_classes.LOOP``, ``MACHINERY``, and ``PLUMBING`` here),
- functions of the interpreter that have no name, where it is stripped,
- the recorder's own functions, which interpose the C library's.

Everything else is shown: built-in functions and types, the garbage collector, extension modules, the C library.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import known

from ..recording.call_tree import NOTHING
from ..recording.native_names import cython_name, library_name, plain_name
from ..recording.opened import Recording
from ..recording.text import printable
from .counter_classes import FrameClass, frame_classes, recorders

PLUMBING = re.compile(
    r"_?Py_?(Object|Vectorcall|Function|CFunction|Method|CMethod)_?(Call|Vectorcall|FastCall)\w*$|cfunction_\w*call\w*$"
    r"|(method|wrapper|slot|classmethod|methoddescr|partial|descr|instancemethod|property)\w*_(vectorcall|call|descr_get)"
    r"\w*$|wrap_\w+$|object_vacall$|_PyEval_\w+$|PyEval_\w+$|slot_tp_\w+$|slot_\w+$|vectorcall_\w+$|gen_send_ex2?$"
    r"|gen_iternext$|_PyGen_\w+$|PyIter_Send$|_PyObject_GenericGetAttrWithDict$|call_unbound\w*$|lookup_maybe_method$"
    r"|PyObject_Call\w*$|_PyObject_Call\w*$|PyNumber_\w+$|binary_op1?$|PyObject_RichCompare(Bool)?$"
    r"|PyObject_[GS]et(Attr|Item)\w*$|_?PyImport_\w+$|import_\w+$|builtin_(exec|eval|__import__)(_impl)?$|PyRun_\w+$"
    r"|_PyRun_\w+$|run_(mod|eval_code_obj)$"
)
"""Functions of the interpreter that pass a call, an operator or an import on to what has it."""

_START = re.compile(r"_start$|main$|Py_(Bytes)?Main$|Py_RunMain$|pymain_\w+$")
"""Functions that start a program, the C library's aside."""


class NativeFunctions:
    """Native functions by number, in ``names``, ``libraries`` and ``paths``; text is printable."""

    def __init__(self, recording: Recording) -> None:
        frames, modules = recording.table("native_frames"), recording.table("modules")
        classes = frame_classes(frames, modules, recording.all_processes)
        paths = [printable(path, 4096) for path in modules.column("path").to_pylist()]
        libraries = list(map(library_name, paths))
        recorder = recorders(modules)
        self.names: list[str] = []
        self.libraries: list[str | None] = []
        """File names of the modules that hold them; None where no module is known."""
        self.paths: list[str | None] = []
        self.of_frame: NDArray[np.int64] = np.full(frames.num_rows + 1, NOTHING, np.int64)
        """By row of ``native_frames``; NOTHING for folded ones, and at the end for none."""
        nameless = np.append(~known(frames.column("symbol")), False)
        in_loop = np.isin(classes, (FrameClass.LOOP, FrameClass.JIT))
        self.loop: NDArray[np.bool_] = in_loop | (nameless & (classes == FrameClass.INTERIOR))
        """True for rows of ``native_frames`` in the evaluation loop, or perhaps in it; the last entry is for none."""
        self.starting: list[bool] = []
        """True for functions of the C library, and those with which a program begins."""
        self.joined: list[bool] = []
        """True for functions that stand for several which call each other: all functions of a library that have no
        names, or what Cython makes of one function."""
        self.sources: list[str | None] = []
        """Their source files, as their compilers were called with them; None where there was no debug information."""
        self.lines: list[int | None] = []
        """By function the line in its source file where it begins."""
        numbers: dict[tuple[str, str | None], int] = {}
        columns = (frames.column(name).to_pylist() for name in ("module", "symbol", "function_source", "function_line"))
        for row, (module, symbol, source, line, kind) in enumerate(zip(*columns, classes[:-1].tolist(), strict=True)):
            if _folded(kind, symbol) or (module is not None and recorder[module]):
                continue
            path = None if module is None else paths[module]
            library = None if module is None else libraries[module]
            name = f"[{library or 'unknown'}]" if symbol is None else plain_name(symbol)
            number = numbers.setdefault((name, path), len(self.names))
            if number == len(self.names):
                self.names.append(name)
                self.paths.append(path)
                self.libraries.append(library)
                self.starting.append(kind == FrameClass.RUNTIME or _START.match(name) is not None)
                self.joined.append(symbol is None or cython_name(symbol) is not None)
                self.sources.append(None)
                self.lines.append(None)
            if self.sources[number] is None and source is not None:
                self.sources[number], self.lines[number] = printable(source, 4096), line
            self.of_frame[row] = number

    def __len__(self) -> int:
        return len(self.names)

    def place(self, function: int) -> str | None:
        """Where a function begins, as ``FILE:N``; None where that is not known."""
        source = self.sources[function]
        return None if source is None else f"{source}:{self.lines[function]}"


def _folded(kind: int, symbol: str | None) -> bool:
    if kind in (FrameClass.UNKNOWN, FrameClass.LOOP, FrameClass.MACHINERY, FrameClass.JIT):
        return True
    return kind == FrameClass.INTERIOR and (symbol is None or PLUMBING.match(symbol) is not None)
