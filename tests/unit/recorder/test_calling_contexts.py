"""Stacks of the signal sampler: what is copied of frames, and what is written of it."""

import sys
import weakref
from pathlib import Path
from types import FrameType

import pytest

from support.spools import contents
from tachograph.format import SpoolDirectory
from tachograph.format.spool import layout
from tachograph.recorder.inprocess.calling_contexts import (
    CALL_OPCODES,
    MAX_DEPTH,
    ContextTable,
    Stack,
    call_opcode,
    copy_stack,
)
from tachograph.recorder.inprocess.spool_layout import (
    LOSS_STACKS_TRUNCATED,
    NONE,
    STACK_STATE_NONE,
    STACK_STATE_TRUNCATED,
    STACK_STATE_WHOLE,
)
from tachograph.recorder.inprocess.spool_writer import SpoolWriter


class Thing:
    """Something that can be watched going."""


def here() -> FrameType:
    return sys._getframe(1)


def test_nothing_of_the_program_is_kept_alive() -> None:
    def program() -> tuple[Stack, weakref.ref[Thing]]:
        thing = Thing()
        return copy_stack(here(), ()), weakref.ref(thing)

    stack, thing = program()
    assert thing() is None
    assert stack.calls[0][0] is program.__code__
    assert stack.calls[1][0] is sys._getframe().f_code


def test_leading_frames_of_ours_are_passed_over() -> None:
    frame = here()
    assert copy_stack(frame, {frame.f_code.co_filename}).calls[0][0].co_filename != frame.f_code.co_filename
    assert copy_stack(frame, ()).calls[0][0] is frame.f_code
    assert copy_stack(None, ()) == Stack([], truncated=False)


def test_a_deep_stack_keeps_its_innermost_frames() -> None:
    def deep(levels: int) -> Stack:
        return deep(levels - 1) if levels else copy_stack(here(), ())

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(MAX_DEPTH + 500)
    try:
        stack = deep(MAX_DEPTH + 10)
    finally:
        sys.setrecursionlimit(limit)
    assert (len(stack.calls), stack.truncated) == (MAX_DEPTH, True)
    assert {code for code, _ in stack.calls} == {deep.__code__}


def test_the_opcode_of_a_call() -> None:
    stacks: list[Stack] = []

    def calls() -> None:
        frame = here()
        # While a function written in C runs: only then does the frame stand at its call.
        stacks.extend(map(copy_stack, [frame], [()]))

    calls()
    (stack,) = stacks
    assert call_opcode(stack) in CALL_OPCODES
    code = stack.calls[0][0]
    assert call_opcode(Stack([(code, 0)], truncated=False)) == 0
    assert call_opcode(Stack([(code, -1)], truncated=False)) == 0
    assert call_opcode(Stack([(code, 1 << 20)], truncated=False)) == 0
    assert call_opcode(Stack([], truncated=False)) == 0


@pytest.mark.parametrize(("truncated", "state"), [(False, STACK_STATE_WHOLE), (True, STACK_STATE_TRUNCATED)])
def test_contexts_are_written_once(tmp_path: Path, truncated: bool, state: int) -> None:
    writer = SpoolWriter(str(tmp_path), 1 << 16)
    table = ContextTable(writer)
    outer, inner = compile("1", "a.py", "exec"), compile("2", "b.py", "exec")
    first = table.number(Stack([(inner, 4), (outer, 2)], truncated=truncated))
    again = table.number(Stack([(inner, 4), (outer, 2)], truncated=truncated))
    other = table.number(Stack([(inner, 6), (outer, 2)], truncated=truncated))
    assert (first, again, other) == ((1, state), (1, state), (2, state))
    assert table.number(Stack([], truncated=False)) == (NONE, STACK_STATE_NONE)
    writer.close()
    (process,) = SpoolDirectory(tmp_path).processes()
    records = contents(process.segment(0))
    codes = [record.filename for record in records if isinstance(record, layout.Code)]
    stacks = [record for record in records if isinstance(record, layout.Stack)]
    assert codes == ["a.py", "b.py"]
    assert [(each.stack, each.parent, each.code, each.instruction) for each in stacks] == [
        (0, NONE, 0, 2),
        (1, 0, 1, 4),
        (2, 0, 1, 6),
    ]
    assert process.control is not None
    assert process.control.losses[LOSS_STACKS_TRUNCATED] == (3 if truncated else 0)
