"""The spool that Python code writes, with the stacks of the signal sampler."""

import resource
import struct
import subprocess
import sys
import weakref
from pathlib import Path
from types import FrameType

import pytest

from support.spools import contents
from tachograph.format import SpoolDirectory
from tachograph.format.spool import layout
from tachograph.format.spool.layout import Code, Meta, State
from tachograph.recorder.inprocess.spool_layout import (
    CODE,
    LOSS_RECORDING_STOPPED,
    LOSS_RECORDS_DROPPED,
    LOSS_STACKS_TRUNCATED,
    META,
    NONE,
    STACK_STATE_NONE,
    STACK_STATE_TRUNCATED,
    STACK_STATE_WHOLE,
    STATE,
)
from tachograph.recorder.inprocess.spool_writer import (
    CALL_OPCODES,
    MAX_DEPTH,
    ContextTable,
    SpoolWriter,
    Stack,
    call_opcode,
    code_body,
    copy_stack,
    meta_body,
    text_bytes,
)


def read(spool: Path) -> list[object]:
    (process,) = SpoolDirectory(spool).processes()
    return [record for sequence in process.segments for record in contents(process.segment(sequence))]


def test_the_control_file(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    writer.count_loss(3, 5)
    writer.count_sample(70)
    writer.set_paused(True)
    writer.ask_for_snapshot()
    writer.ask_for_snapshot()
    (process,) = SpoolDirectory(tmp_path).processes()
    control = process.control
    assert control is not None
    assert (control.pid, control.start_ns, control.segment_size) == (process.pid, process.start_ns, 4096)
    assert (control.state, control.paused, control.samples, control.handler_cpu_ns) == (1, True, 1, 70)
    assert control.snapshots_requested == 2
    assert control.losses[3] == 5
    writer.close()
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert (control.state, control.end_ns > control.start_ns) == (2, True)


def test_files_are_private(tmp_path: Path) -> None:
    SpoolWriter(str(tmp_path), 4096)
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}


def test_records_are_read_back(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    assert writer.append(META, meta_body("key", "wért"))
    assert writer.append(STATE, struct.pack("<qII", 5, 1, 0))
    assert read(tmp_path) == [Meta("key", "wért"), State(5, 1, 0)]


@pytest.mark.parametrize("name", ["plain", "schön", "Ω", "🐍", "\ud800", ""])
def test_names_of_every_width(tmp_path: Path, name: str) -> None:
    writer = SpoolWriter(str(tmp_path), 8192)
    code = compile("def f(): pass", name or "x", "exec").replace(co_qualname=name)
    assert writer.append(CODE, code_body(7, code))
    (record,) = read(tmp_path)
    assert isinstance(record, Code)
    assert (record.code, record.filename, record.qualname) == (7, name or "x", name)
    assert record.line_table == code.co_linetable


@pytest.mark.parametrize(("text", "width"), [("a", 1), ("é", 1), ("Ω", 2), ("\udc80", 2), ("🐍", 4), ("", 1)])
def test_width_of_characters(text: str, width: int) -> None:
    assert text_bytes(text)[0] == width
    assert len(text_bytes(text)[1]) == width * len(text)


def test_segments_follow_each_other(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    for number in range(500):
        assert writer.append(STATE, struct.pack("<qII", number, 1, 0))
    (process,) = SpoolDirectory(tmp_path).processes()
    assert process.control is not None
    assert process.segments == list(range(process.control.current_segment + 1))
    assert [record.time_ns for record in read(tmp_path) if isinstance(record, State)] == list(range(500))


def test_a_record_larger_than_a_segment_is_counted(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    assert not writer.append(META, bytes(4096))
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert control.losses[LOSS_RECORDS_DROPPED] == 1
    assert writer.append(META, meta_body("k", "v"))


FILL = """
import resource, struct, sys
from tachograph.recorder.inprocess.spool_layout import STATE
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body, meta_body
writer = SpoolWriter(sys.argv[1], 4096)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(sum(writer.append(STATE, struct.pack("<qII", n, 1, 0)) for n in range(500)), writer.open)
"""


def test_a_full_disk_stops_the_recording_only(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    kept, still_open = done.stdout.split()
    assert still_open == "False"
    assert int(kept) == len(read(tmp_path)) == (4096 - 64) // 24
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert (control.state, control.stop_errno) == (3, 27)  # EFBIG
    assert control.losses[LOSS_RECORDING_STOPPED] == 1
    assert control.losses[LOSS_RECORDS_DROPPED] == 500 - int(kept)


def test_no_room_at_the_start_is_an_error(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            SpoolWriter(str(tmp_path), 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


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
