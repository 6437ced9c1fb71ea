"""Divides CPU time into Python, native and kernel: pure functions from facts to facts with conclusions.

The rules are explained in docs/explanation/attribution.md. In short: time in the kernel is measured, so it comes off
first; a rule decides about the rest, or says that it cannot.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.compat.opcodes import OpcodeClass
from ..recording.interpreter_phases import ENDING, STARTING
from .native_frames import FrameClass

SIGNAL, SIGNAL_THREAD = 2, 3
"""Values of ``origin`` for the rows of the signal sampler (tables.toml)."""

READ_STACK = (0, 3)
"""Values of ``stack_state`` for a stack whose leaf was read."""

NO_PYTHON_STACK = (1, STARTING, ENDING)
"""Values of ``stack_state`` for a thread without Python frames (tables.toml, and the analyzer's own)."""


class Attribution(enum.StrEnum):
    """The rules that ``--attribution`` offers."""

    AUTO = "auto"
    NATIVE = "native"
    DELAY = "delay"
    OPCODE = "opcode"
    PC_ONLY = "pc-only"


class Verdict(enum.IntEnum):
    """Whose time it is, the kernel's part aside."""

    UNKNOWN = 0
    PYTHON = 1
    NATIVE = 2


def attribute(cpu: pd.DataFrame, rule: Attribution) -> pd.DataFrame:
    """``cpu`` with the columns python_ns, native_ns, kernel_ns and unknown_ns, which add up to cpu_ns in every row.

    Where the kernel's part was not recorded (``kernel_known`` is false) kernel_ns is 0 and the others hold all of
    the time.

    Errors:
        FormatError: the rule needs rows of the signal sampler and there are others.
    """
    signal = cpu["origin"].isin((SIGNAL, SIGNAL_THREAD)).to_numpy()
    if rule is Attribution.DELAY and not signal.all():
        raise FormatError(
            "--attribution delay needs a recording of the signal sampler (tachograph record --sampler signal)"
        )
    kernel = np.where(cpu["kernel_known"], cpu["system_ns"], 0.0)
    rest = cpu["cpu_ns"].to_numpy() - kernel
    main = cpu["origin"].to_numpy() == SIGNAL
    if rule in (Attribution.AUTO, Attribution.DELAY):
        verdicts = np.where(signal, opcode_rule(cpu), native_rule(cpu))
    else:
        verdicts = _RULES[rule](cpu)
        main = np.zeros(len(cpu), np.bool_)
    delay = np.where(main, np.minimum(cpu["delay_ns"], rest), 0.0)
    python = np.where(verdicts == Verdict.PYTHON, rest, 0.0)
    native = np.where(verdicts == Verdict.NATIVE, rest, 0.0)
    python, native = np.where(main, rest - delay, python), np.where(main, delay, native)
    unknown = np.where(~main & (verdicts == Verdict.UNKNOWN), rest, 0.0)
    return cpu.assign(python_ns=python, native_ns=native, kernel_ns=kernel, unknown_ns=unknown)


def native_rule(cpu: pd.DataFrame) -> NDArray[np.int64]:
    """By program counter and opcode (recordings of the native sampler).

    Native is what runs outside of the interpreter, but for the C library while the leaf executes an opcode that
    never runs foreign code: then it is the interpreter that copies or allocates. Inside of it, what runs outside of
    the evaluation loop while the leaf executes a call that was specialised for a C function, or a call that was not
    specialised and the function is none of those with which CPython makes calls. Everything else in the interpreter
    is Python, the garbage collector too, whichever call set it off. Without a program counter nothing is known;
    inside of the interpreter but outside of the loop the opcode is needed, unless the thread has no Python frames,
    whose time (starting and ending the interpreter) is Python's.
    """
    frame, opcode = cpu["frame_class"].to_numpy(), _opcode_classes(cpu)
    no_stack = cpu["stack_state"].isin(NO_PYTHON_STACK).to_numpy()
    foreign = (frame == FrameClass.OUTSIDE) | ((frame == FrameClass.RUNTIME) & (opcode != OpcodeClass.INTERNAL))
    called = (frame == FrameClass.INTERIOR) & (opcode >= OpcodeClass.ANY_CALL)
    called |= (frame == FrameClass.MACHINERY) & (opcode == OpcodeClass.NATIVE_CALL)
    undecided = (frame == FrameClass.INTERIOR) & (opcode == OpcodeClass.UNKNOWN) & ~no_stack
    verdicts = np.where(foreign | called, Verdict.NATIVE, Verdict.PYTHON)
    return np.where((frame == FrameClass.UNKNOWN) | undecided, Verdict.UNKNOWN, verdicts)


def _opcode_classes(cpu: pd.DataFrame) -> NDArray[np.integer]:
    """The class of the opcode at the leaf; unknown where no leaf was read."""
    read = cpu["stack_state"].isin(READ_STACK).to_numpy()
    return np.where(read, cpu["opcode_class"].to_numpy(), OpcodeClass.UNKNOWN)


def opcode_rule(cpu: pd.DataFrame) -> NDArray[np.int64]:
    """By opcode alone: a thread that is stuck in a call runs native code (Scalene 2023, section 2.2)."""
    opcode = _opcode_classes(cpu)
    verdicts = np.where(opcode >= OpcodeClass.ANY_CALL, Verdict.NATIVE, Verdict.PYTHON)
    return np.where(opcode == OpcodeClass.UNKNOWN, Verdict.UNKNOWN, verdicts)


def pc_only_rule(cpu: pd.DataFrame) -> NDArray[np.int64]:
    """By program counter alone: whatever runs in the interpreter's own module is Python, built-in functions too."""
    frame = cpu["frame_class"].to_numpy()
    verdicts = np.where(np.isin(frame, (FrameClass.OUTSIDE, FrameClass.RUNTIME)), Verdict.NATIVE, Verdict.PYTHON)
    return np.where(frame == FrameClass.UNKNOWN, Verdict.UNKNOWN, verdicts)


_RULES: dict[Attribution, Callable[[pd.DataFrame], NDArray[np.int64]]] = {
    Attribution.NATIVE: native_rule,
    Attribution.OPCODE: opcode_rule,
    Attribution.PC_ONLY: pc_only_rule,
}
