"""Classes of native program counters: in the evaluation loop, elsewhere in the interpreter, or outside of it."""

from __future__ import annotations

import enum
import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ..recording.definitions import Processes


class FrameClass(enum.IntEnum):
    """Where a program counter lies."""

    UNKNOWN = 0
    """No program counter was recorded."""
    OUTSIDE = 1
    """Outside of the module that holds the interpreter: an extension module, the C library, generated code."""
    LOOP = 2
    """In CPython's evaluation loop."""
    MACHINERY = 3
    """In the interpreter, in code that prepares or ends calls."""
    INTERIOR = 4
    """Elsewhere in the interpreter: built-in types and functions, the allocator."""
    RUNTIME = 6
    """In the C library, which extension modules call, and the interpreter for its own ends as well."""
    COLLECTOR = 5
    """In the interpreter's garbage collector, which runs on whatever line happens to allocate."""
    JIT = 7
    """Code without a file, in a process whose interpreter has its JIT compiler on."""


LOOP = re.compile(r"_PyEval_EvalFrameDefault|_TAIL_CALL_")
"""Functions of the evaluation loop: one big one, or one for each opcode in builds with tail calls (3.14 on)."""

MACHINERY = re.compile(
    r"_?PyEval_|_PyFunction_Vectorcall|_PyFrame|_?PyObject_Call|_?PyObject_Vectorcall|_PyObject_MakeTpCall|_?PyVectorcall"
    r"|_PyThreadState_(Push|Pop)Frame|_PyStack_|_Py_CheckFunctionResult|_Py_Specialize|_PyEvalFrame|_PyCode"
    r"|method_vectorcall\b|object_vacall\b|initialize_locals\b|clear_(thread|gen)_frame\b|slot_tp_(call|init|new)\b"
    r"|type_call\b|vectorcall_(method|maybe)\b|specialize\b"
    r"|_Py_VectorCall\w*_StackRefSteal|_Py(_Builtin|_|)Call\w*_StackRef"
)
"""Functions that CPython runs to make a call of any callable, a Python function too."""

COLLECTOR = re.compile(
    r"_?PyGC_|_Py_RunGC|gc_|visit_(decref|reachable|move|add_to|strongly|all|clear)|\w*_?traverse\b|update_refs\b"
    r"|subtract_refs\b|(deduce|move|handle)_\w*(unreachable|finalizers|weakrefs)|untrack_(tuples|dicts)\b|mark_\w+"
    r"|delete_garbage\b|finalize_garbage\b|PyObject_IS_GC\b|type_is_gc\b|_PyDict_MaybeUntrack\b|_PyTuple_MaybeUntrack\b"
    r"|_PyObject_VisitInstanceAttributes\b|PyObject_VisitManagedDict\b|_PyObject_VisitManagedDict\b"
)
"""Functions that only, or nearly only, a collection runs."""

RUNTIME = re.compile(
    r"(libc|libm|libpthread|librt|libdl|ld-linux[\w-]*|ld-musl[\w-]*)(-[\d.]+)?\.so(\.\d+)*$|\[vdso\]$"
)
"""Names of the modules of the C library."""

RECORDER = re.compile(r"(.*/)?(libtachograph(-cpu)?\.so|tachograph/recorder/_native\.[^/]*\.so)$")
"""Paths of the recorder's own modules. Its hooks stand where the function behind them would be: in the C library for
those of ``HOOKED``, else in the interpreter's allocator; what hooks call, such as a walk of the stack, too."""

HOOKED = re.compile(
    r"(malloc|calloc|realloc|reallocarray|free|free_sized|free_aligned_sized|posix_memalign|aligned_alloc|memalign"
    r"|valloc|pvalloc|mmap|mmap64|munmap|mremap|(__)?mem(cpy|move|pcpy)(_chk)?)$"
)
"""Functions of the C library that the recorder's library interposes."""

NAMELESS = 0.1
"""The part of the places seen in an interpreter that may be without a name; in a stripped one it is most of them."""

GPU_DRIVER = re.compile(r"lib(cuda|nvidia-|amdhip64|hsa-runtime64|ze_)")
"""Names of the user-space drivers through which a thread waits for a GPU."""


def frame_classes(frames: pa.Table, modules: pa.Table, processes: Processes) -> NDArray[np.uint8]:
    """The class of each row of ``native_frames``, then UNKNOWN for rows without a native frame."""
    interpreter = _interpreter_modules(modules)
    module = ids(frames.column("module"), modules.num_rows)
    inside = np.append(interpreter, False)[module]
    classes = np.full(frames.num_rows + 1, FrameClass.OUTSIDE, np.uint8)
    classes[np.append(_fileless_with_jit(modules, processes), False)[module].nonzero()] = FrameClass.JIT
    classes[np.append(matching(modules, RUNTIME), False)[module].nonzero()] = FrameClass.RUNTIME
    classes[-1] = FrameClass.UNKNOWN
    symbols = frames.column("symbol")
    for index in np.flatnonzero(np.append(recorders(modules), False)[module]):
        classes[index] = FrameClass.RUNTIME if HOOKED.match(symbols[index].as_py() or "") else FrameClass.INTERIOR
    for index in np.flatnonzero(inside):
        classes[index] = _interpreter_class(symbols[index].as_py())
    return classes


def stripped(frames: pa.Table, modules: pa.Table) -> bool:
    """True if the interpreter has only names that it exports: its collector, for one, cannot be recognised then."""
    inside = np.append(_interpreter_modules(modules), False)[ids(frames.column("module"), modules.num_rows)]
    nameless = np.array([symbol is None for symbol in frames.column("symbol").to_pylist()], np.bool_)
    return bool((inside & nameless).sum() > NAMELESS * inside.sum())


def gpu_frames(frames: pa.Table, modules: pa.Table) -> NDArray[np.bool_]:
    """True for rows of ``native_frames`` in a GPU driver, then False for rows without one."""
    drivers = np.append(matching(modules, GPU_DRIVER), False)
    module = ids(frames.column("module"), modules.num_rows)
    return np.append(drivers[module], False)


def matching(modules: pa.Table, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """True for modules whose file name begins with the pattern."""
    names = (path.rstrip("/").rpartition("/")[2] for path in modules.column("path").to_pylist())
    return np.array([bool(pattern.match(name)) for name in names], np.bool_)


def recorders(modules: pa.Table) -> NDArray[np.bool_]:
    """True for the recorder's own modules."""
    return np.array([bool(RECORDER.match(path)) for path in modules.column("path").to_pylist()], np.bool_)


def _fileless_with_jit(modules: pa.Table, processes: Processes) -> NDArray[np.bool_]:
    """True for modules of code without a file, in a process whose interpreter has its JIT compiler on."""
    rows = zip(modules.column("path").to_pylist(), modules.column("process").to_pylist(), strict=True)
    return np.array([path == "[anonymous]" and processes.jit[process] for path, process in rows], np.bool_)


@lru_cache(maxsize=8192)  # recordings of one interpreter have the same few thousand names
def _interpreter_class(symbol: str | None) -> FrameClass:
    if symbol is None:
        return FrameClass.INTERIOR
    if LOOP.match(symbol):
        return FrameClass.LOOP
    if COLLECTOR.match(symbol):
        return FrameClass.COLLECTOR
    return FrameClass.MACHINERY if MACHINERY.match(symbol) else FrameClass.INTERIOR


def _interpreter_modules(modules: pa.Table) -> NDArray[np.bool_]:
    """True for the interpreter's modules: the mapping with the evaluation loop, and others of the same file."""
    keys = list(zip(modules.column("process").to_pylist(), modules.column("path").to_pylist(), strict=True))
    marked = modules.column("interpreter").to_pylist()
    files = {key for key, interpreter in zip(keys, marked, strict=True) if interpreter}
    return np.array([key in files for key in keys], np.bool_)
