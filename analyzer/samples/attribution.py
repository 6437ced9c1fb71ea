"""Divides CPU time into Python, native and kernel: the one place where that is decided.

The rules are explained in docs/explanation/attribution.md. In short: time in the kernel is measured, so it comes off
first; a rule decides about the rest, or says that it cannot.

A *cell* is one combination of the small columns that the rules look at, packed into a number. There are few cells, so
a rule is called once for a cell, and not once for a sample.

An extension module calls the interpreter's allocator, and the C library copies for it. The program counter is in the
interpreter or in the C library then, and the opcode need not be a call (``a / b`` of two decimals is none), so neither
tells on whose behalf the work is done. The native call path does (``ForeignCallers``): the frames between the program
counter and the activation of the evaluation loop that runs the leaf are what the leaf's instruction called.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import ids
from tachograph.format.enumerations import NativePath, Origin, StackState

from ..recording.call_tree import NOTHING, Tree
from ..recording.compat.linetable import OpcodeClass, classes_of
from ..recording.opened import Recording
from ..recording.process_lifetimes import ENDING, STARTING
from ..recording.question_options import Attribution
from .counter_classes import FrameClass, frame_classes

_KNOWN = (NativePath.WHOLE, NativePath.TRUNCATED, NativePath.TORN)
"""Paths of which the innermost frames are facts; a guessed one decides nothing."""


class ForeignCallers:
    """Finds foreign callers in a recording's native paths; ``classes`` as of ``counter_classes.frame_classes``."""

    def __init__(self, recording: Recording, classes: NDArray[np.integer]) -> None:
        table = recording.table("native_stacks")
        parent, runs = ids(table.column("parent"), NOTHING), ids(table.column("stack"), NOTHING)
        frame = ids(table.column("native_frame"), len(classes) - 1)
        self._leaf = np.append(_served(Tree(parent), runs, classes[frame] == FrameClass.OUTSIDE), NOTHING)
        """By node of a path, and for none: the Python frame whose instruction called foreign code that led there."""

    def of(
        self, stack: NDArray[np.integer], native_stack: NDArray[np.integer], how: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """True if foreign code is between a sample's program counter and the Python frame at its leaf.

        Arguments as columns of ``groups.SampleGroups``, where an id of none is the number of rows of its table.
        """
        foreign: NDArray[np.bool_] = (self._leaf[native_stack] == stack) & np.isin(how, _KNOWN)
        return foreign


def _served(paths: Tree, runs: NDArray[np.int64], outside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each node the innermost Python frame of its activation, if a frame within that is ``outside``."""
    if not len(paths):
        return np.zeros(0, np.int64)
    activation = runs != NOTHING
    activated, first = paths.nearest(activation), paths.nearest(activation | outside)
    between = (activated != NOTHING) & (first != activated)
    return np.where(between, runs[activated], NOTHING)


STATES = ENDING + 2
"""States of stacks: those of the format, the analyzer's own, and one for all that this version does not know."""

_ORIGINS, _KERNEL, _OPCODES, _FRAMES, _CALLERS = 8, 2, 5, len(FrameClass), 2
_SIZES = (
    ("stack_state", STATES),
    ("origin", _ORIGINS),
    ("kernel_known", _KERNEL),
    ("opcode_class", _OPCODES),
    ("frame_class", _FRAMES),
    ("foreign_caller", _CALLERS),
)
"""Columns and how many values each has, the one that changes fastest first."""

_COLLECTS = (FrameClass.MACHINERY, FrameClass.INTERIOR, FrameClass.RUNTIME)
"""Where a thread in a collection may be for its sake. The Python code of finalizers has lines of its own."""

CELLS = STATES * _ORIGINS * _KERNEL * _OPCODES * _FRAMES * _CALLERS


class CellPacker:
    """Packs the columns of one recording's ``cpu``."""

    def __init__(self, recording: Recording) -> None:
        processes = recording.all_processes
        self._frames = frame_classes(recording.table("native_frames"), recording.table("modules"), processes)
        self._opcodes = np.stack([classes_of(version) for version in processes.python_version] or [classes_of(None)])
        self._process = recording.all_threads.process
        self._callers = ForeignCallers(recording, self._frames)

    def pack(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.uint16]:
        """The cell of each group of samples (``groups.SampleGroups``)."""
        values = {
            "stack_state": columns["stack_state"],
            # Values that this version does not know count as the last.
            "origin": np.minimum(columns["origin"], _ORIGINS - 1),
            "kernel_known": columns["kernel_known"],
            # The opcode's meaning depends on the version of the thread's interpreter.
            "opcode_class": self._opcodes[self._process[columns["thread"]], columns["opcode"]],
            "frame_class": self._frames[columns["native"]],
            "foreign_caller": self._callers.of(columns["stack"], columns["native_stack"], columns["native_path"]),
        }
        # Where the sample itself tells, no name is needed: what collections free is theirs, and not all that has such a
        # name is run by them alone.
        frame = values["frame_class"]
        within = (columns["collecting"] == 1) & ~values["foreign_caller"] & np.isin(frame, _COLLECTS)
        without = (columns["collecting"] == 0) & (frame == FrameClass.COLLECTOR)
        values["frame_class"] = np.select([within, without], [FrameClass.COLLECTOR, FrameClass.INTERIOR], frame)
        cell = np.zeros(len(columns["thread"]), np.int64)
        for name, size in reversed(_SIZES):
            cell = cell * size + values[name]
        return cell.astype(np.uint16)


def unpacked(cell: NDArray[np.integer]) -> dict[str, NDArray[np.integer | np.bool_]]:
    """The columns of which cells are made: those of ``_SIZES``."""
    columns: dict[str, NDArray[np.integer | np.bool_]] = {}
    for name, size in _SIZES:
        cell, columns[name] = np.divmod(cell, size)
    for name in ("kernel_known", "foreign_caller"):
        columns[name] = columns[name].astype(np.bool_)
    return columns


READ_STACK = (StackState.WHOLE, StackState.TRUNCATED)
"""Values of ``stack_state`` for a stack whose leaf was read."""

NO_PYTHON_STACK = (StackState.NONE, STARTING, ENDING)
"""Values of ``stack_state`` for a thread without Python frames (tables.toml, and the analyzer's own)."""


class Verdict(enum.IntEnum):
    """Whose time it is, the kernel's part aside."""

    UNKNOWN = 0
    PYTHON = 1
    NATIVE = 2


Columns = Mapping[str, NDArray[Any]]
"""Inputs of rules, by name: frame_class, foreign_caller, opcode_class, origin, stack_state (``unpacked``)."""

_Floats = NDArray[np.float64]


class Parts(NamedTuple):
    """CPU nanoseconds by whose time they are: they add up to the weight."""

    python: _Floats
    native: _Floats
    kernel: _Floats
    unknown: _Floats


class Division:
    """One rule, applied once to each cell: all figures of Python and native time come from here."""

    def __init__(self, rule: Attribution) -> None:
        self._rule = rule
        self._learned = np.zeros(CELLS, np.bool_)
        self._verdict = np.zeros(CELLS, np.int8)
        self._delayed = np.zeros(CELLS, np.bool_)

    def parts(self, cell: NDArray[np.integer], weight: _Floats, system: _Floats | None, delay: _Floats | None) -> Parts:
        """The parts of weights, which are samples' or sums of samples of one cell; None is 0 everywhere.

        ``system`` is the kernel's part, 0 where it was not recorded: then the others hold all of the time.

        Errors:
            FormatError: the rule needs rows of the signal sampler and there are others.
        """
        self._learn(cell)
        delayed = self._delayed[cell] if self._delayed.any() else None
        return divide(self._verdict[cell], delayed, weight, system, delay)

    def _learn(self, cell: NDArray[np.integer]) -> None:
        present = np.flatnonzero(np.bincount(cell, minlength=1) if len(cell) else np.zeros(1))
        new = present[~self._learned[present]]
        if len(new):
            columns = unpacked(new)
            self._verdict[new] = decide(columns, self._rule)
            self._delayed[new] = by_delay(columns, self._rule)
            self._learned[new] = True


def divide(
    verdict: NDArray[np.integer],
    delayed: NDArray[np.bool_] | None,
    weight: _Floats,
    system: _Floats | None,
    delay: _Floats | None,
) -> Parts:
    """Divides weights: the kernel's part comes off first, then a verdict has the rest, or the delay is native."""
    kernel = np.zeros(len(weight)) if system is None else system
    rest = weight - kernel
    native = np.where(verdict == Verdict.NATIVE, rest, 0.0)
    unknown = np.where(verdict == Verdict.UNKNOWN, rest, 0.0)
    if delayed is not None:
        native = np.where(delayed, np.minimum(0.0 if delay is None else delay, rest), native)
        unknown = np.where(delayed, 0.0, unknown)
    return Parts(rest - native - unknown, native, kernel, unknown)


def decide(columns: Columns, rule: Attribution) -> NDArray[np.int64]:
    """The verdict on each row.

    Errors:
        FormatError: the rule needs rows of the signal sampler and there are others.
    """
    signal = np.isin(columns["origin"], (Origin.SIGNAL, Origin.SIGNAL_THREAD))
    if rule is Attribution.DELAY and not signal.all():
        raise FormatError(
            "--attribution delay needs a recording of the signal sampler (tachograph record --sampler signal)"
        )
    if rule in (Attribution.AUTO, Attribution.DELAY):
        return np.where(signal, opcode_rule(columns), native_rule(columns))
    if rule is Attribution.OPCODE:
        return opcode_rule(columns)
    return pc_only_rule(columns) if rule is Attribution.PC_ONLY else native_rule(columns)


def by_delay(columns: Columns, rule: Attribution) -> NDArray[np.bool_]:
    """True for rows divided by the delay of their signal, whatever the verdict: the signal sampler's main thread's."""
    signal: NDArray[np.bool_] = columns["origin"] == Origin.SIGNAL
    return signal & (rule in (Attribution.AUTO, Attribution.DELAY))


def native_rule(columns: Columns) -> NDArray[np.int64]:
    """Decide from the program counter, its callers and the opcode (recordings of the native sampler).

    Native is what runs outside of the interpreter, but for the C library while the leaf executes an opcode that
    never runs foreign code: then it is the interpreter that copies or allocates. Native is also what either does when
    the native call path shows that code outside of both called it. Inside of it, what runs outside of
    the evaluation loop while the leaf executes a call that was specialised for a C function, or a call that was not
    specialised and the function is none of those with which CPython makes calls. Everything else in the interpreter
    is Python, the garbage collector too, whichever call set it off. Without a program counter nothing is known;
    inside of the interpreter but outside of the loop the opcode is needed, unless the thread has no Python frames,
    whose time (starting and ending the interpreter) is Python's. Code without a file, while CPython's JIT compiler
    is on, is Python's unless the leaf may call foreign code: then the code may also be another compiler's.
    """
    frame, opcode, served = columns["frame_class"], _opcode_classes(columns), columns["foreign_caller"]
    no_stack = np.isin(columns["stack_state"], NO_PYTHON_STACK)
    foreign = (frame == FrameClass.OUTSIDE) | ((frame == FrameClass.RUNTIME) & (opcode != OpcodeClass.INTERNAL))
    called = (frame == FrameClass.INTERIOR) & (opcode >= OpcodeClass.ANY_CALL)
    called |= (frame == FrameClass.MACHINERY) & (opcode == OpcodeClass.NATIVE_CALL)
    called |= np.isin(frame, (FrameClass.INTERIOR, FrameClass.MACHINERY, FrameClass.RUNTIME)) & served
    undecided = (frame == FrameClass.INTERIOR) & (opcode == OpcodeClass.UNKNOWN) & ~no_stack & ~served
    undecided |= (frame == FrameClass.JIT) & ((opcode >= OpcodeClass.ANY_CALL) | (opcode == OpcodeClass.UNKNOWN))
    verdicts = np.where(foreign | called, Verdict.NATIVE, Verdict.PYTHON)
    return np.where((frame == FrameClass.UNKNOWN) | undecided, Verdict.UNKNOWN, verdicts)


def _opcode_classes(columns: Columns) -> NDArray[np.integer]:
    """The class of the opcode at the leaf; unknown where no leaf was read."""
    read = np.isin(columns["stack_state"], READ_STACK)
    return np.where(read, columns["opcode_class"], OpcodeClass.UNKNOWN)


def opcode_rule(columns: Columns) -> NDArray[np.int64]:
    """Decide from the opcode alone: a thread that is stuck in a call runs native code (Scalene 2023, section 2.2)."""
    opcode = _opcode_classes(columns)
    verdicts = np.where(opcode >= OpcodeClass.ANY_CALL, Verdict.NATIVE, Verdict.PYTHON)
    return np.where(opcode == OpcodeClass.UNKNOWN, Verdict.UNKNOWN, verdicts)


def pc_only_rule(columns: Columns) -> NDArray[np.int64]:
    """Decide from the program counter alone: all code in the interpreter's module is Python, built-in functions too."""
    frame = columns["frame_class"]
    verdicts = np.where(np.isin(frame, (FrameClass.OUTSIDE, FrameClass.RUNTIME)), Verdict.NATIVE, Verdict.PYTHON)
    return np.where(np.isin(frame, (FrameClass.UNKNOWN, FrameClass.JIT)), Verdict.UNKNOWN, verdicts)
