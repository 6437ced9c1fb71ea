"""Stacks for the signal sampler: copied from the interpreter's frames, and written into the spool when they are new."""

# Runs in the profiled process, in the handler of its timer.

from __future__ import annotations

import struct
from collections.abc import Container
from opcode import opmap
from types import CodeType, FrameType
from typing import NamedTuple

from tachograph.recorder.inprocess.spool_layout import (
    CODE,
    LOSS_STACKS_TRUNCATED,
    NONE,
    STACK,
    STACK_BODY,
    STACK_STATE_LOST,
    STACK_STATE_NONE,
    STACK_STATE_TRUNCATED,
    STACK_STATE_WHOLE,
)
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body

# stack_state in tables.toml.

MAX_DEPTH = 1024
"""Frames kept of one stack; the innermost ones."""

CALL_OPCODES = frozenset(number for name, number in opmap.items() if name.startswith("CALL"))
"""The instructions that may run native code on a thread (section 2.2: "a map of all such bytecodes at startup")."""


class Stack(NamedTuple):
    """Code objects with the offset of their instruction, innermost first, and whether there were more of them."""

    calls: list[tuple[CodeType, int]]
    truncated: bool


def copy_stack(frame: FrameType | None, passed_over: Container[str]) -> Stack:
    """The stack whose innermost frame is ``frame``, without leading frames of the files in ``passed_over``.

    A copy, and no frame is kept: a frame that is referenced outlives its function, and keeps the function's objects
    alive. The program could see that, in the order in which its objects go.
    """
    while frame is not None and frame.f_code.co_filename in passed_over:
        frame = frame.f_back
    calls: list[tuple[CodeType, int]] = []
    while frame is not None and len(calls) < MAX_DEPTH:
        calls.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return Stack(calls, frame is not None)


def call_opcode(stack: Stack) -> int:
    """The opcode at the innermost instruction if that is a call, else 0."""
    if not stack.calls:
        return 0
    code, at = stack.calls[0]
    instructions = code.co_code
    opcode = instructions[at] if 0 <= at < len(instructions) else 0
    return opcode if opcode in CALL_OPCODES else 0


class ContextTable:
    """Gives code objects and calling contexts their ids, and writes their records when they are first seen."""

    def __init__(self, writer: SpoolWriter) -> None:
        self._writer = writer
        self._codes: dict[int, int] = {}
        # Holding the code objects keeps their addresses from being used again.
        self._kept: list[CodeType] = []
        self._nodes: dict[tuple[int, int, int], int] = {}

    def number(self, stack: Stack) -> tuple[int, int]:
        """The id of a stack, and its stack_state."""
        if not stack.calls:
            return NONE, STACK_STATE_NONE
        node = NONE
        for code, instruction in reversed(stack.calls):
            node = self._node(node, self._code(code), instruction)
            if node == NONE:
                return NONE, STACK_STATE_LOST
        if not stack.truncated:
            return node, STACK_STATE_WHOLE
        self._writer.count_loss(LOSS_STACKS_TRUNCATED)
        return node, STACK_STATE_TRUNCATED

    def _node(self, parent: int, code: int, instruction: int) -> int:
        key = (parent, code, instruction)
        node = self._nodes.get(key)
        if node is None:
            node = len(self._nodes)
            if not self._writer.append(STACK, struct.pack(STACK_BODY, node, parent, code, max(instruction, -1))):
                return NONE
            self._nodes[key] = node
        return node

    def _code(self, code: CodeType) -> int:
        number = self._codes.get(id(code))
        if number is None:
            number = len(self._kept)
            if not self._writer.append(CODE, code_body(number, code)):
                return NONE
            self._codes[id(code)] = number
            self._kept.append(code)
        return number
