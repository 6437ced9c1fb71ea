"""Writes the spool in pure Python, for the signal sampler: SPOOL.md.

The native recorder has its own writer of the same layout. This one is used under the GIL by one thread at a time; the
reader may look at the files at any moment, so a record's header is stored after the rest of it. Stacks are copied from
the interpreter's frames, and each of their nodes is written once.

Runs in the profiled process, in the handler of its timer: only small modules are imported.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Container, Sequence
from opcode import opmap
from types import CodeType, FrameType
from typing import NamedTuple

from tachograph.recorder import clock
from tachograph.recorder.inprocess.own_mapping import OwnMapping
from tachograph.recorder.inprocess.spool_layout import (
    CODE,
    CODE_BODY,
    CONTROL_HEAD,
    CONTROL_MAGIC,
    CONTROL_SIZE,
    CONTROL_STATE_ENDED,
    CONTROL_STATE_RECORDING,
    CONTROL_STATE_STOPPED_EARLY,
    CURRENT_SEGMENT_AT,
    END_NS_AT,
    HANDLER_CPU_NS_AT,
    LOSS_RECORDING_STOPPED,
    LOSS_RECORDS_DROPPED,
    LOSS_STACKS_TRUNCATED,
    LOSSES_AT,
    META_BODY,
    NONE,
    PAUSED_AT,
    SAMPLES_AT,
    SEGMENT_HEAD,
    SEGMENT_HEADER,
    SEGMENT_MAGIC,
    SEGMENT_REQUESTED_AT,
    SNAPSHOTS_REQUESTED_AT,
    SPAN_BODY,
    STACK,
    STACK_BODY,
    STACK_STATE_LOST,
    STACK_STATE_NONE,
    STACK_STATE_TRUNCATED,
    STACK_STATE_WHOLE,
    STATE_AT,
    STOP_ERRNO_AT,
)
from tachograph.recorder.inprocess.unforked_ranges import Range

_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")


def record_header(length: int, kind: int, offset: int, sequence: int) -> int:
    """The header of a record of ``length`` bytes at ``offset`` of segment ``sequence``, with its check."""
    check = (0xA5C3 ^ (length >> 3) ^ (kind * 0x1F35) ^ ((offset >> 3) * 0x2545) ^ (sequence * 0x3D4D)) & 0xFFFF
    return length | kind << 32 | check << 48


def text_bytes(text: str) -> tuple[int, bytes]:
    """Bytes per character (1 Latin-1, 2 UCS-2, 4 UCS-4) and the characters, as CODE records hold them."""
    widest = max(map(ord, text), default=0)
    if widest < 0x100:
        return 1, text.encode("latin-1")
    if widest < 0x10000:
        return 2, text.encode("utf-16-le", "surrogatepass")
    return 4, text.encode("utf-32-le", "surrogatepass")


def code_body(number: int, code: CodeType) -> bytes:
    """A CODE record's bytes after its header."""
    (file_width, file), (name_width, name) = text_bytes(code.co_filename), text_bytes(code.co_qualname)
    table = code.co_linetable
    head = (number, code.co_firstlineno, code.co_flags, len(table), len(code.co_filename), file_width, name_width)
    return struct.pack(CODE_BODY, *head, len(code.co_qualname), 0) + file + name + table


def meta_body(key: str, value: str) -> bytes:
    """A META record's bytes after its header."""
    name, text = key.encode(), value.encode("utf-8", "replace")
    return struct.pack(META_BODY, len(name), len(text)) + name + text


def span_body(name: str, fields: str, start_ns: int, end_ns: int, thread: int, number: int, parent: int) -> bytes:
    """A SPAN record's bytes after its header."""
    title, more = name.encode("utf-8", "replace"), fields.encode("utf-8", "replace")
    head = (start_ns, end_ns, thread, number, parent, len(title), len(more))
    return struct.pack(SPAN_BODY, *head) + title + more


class SpoolWriter:
    """The control file and the segments of this process.

    Raises OSError if the first files cannot be made. Later a segment that cannot be made ends the recording (state 3
    with the errno, in the control file); records are then dropped and the program goes on. ``place`` is which folder
    the spool is, where that was looked at before; ``holes`` are ranges that nothing is to be mapped into.
    """

    def __init__(
        self, spool: str, segment_size: int, place: tuple[int, int] | None = None, holes: Sequence[Range] = ()
    ) -> None:
        self.start_ns = clock.monotonic_ns()
        self.pid = os.getpid()
        self._spool, self.place = spool, _identity(spool) if place is None else place
        self._prefix = f"{self.pid}-{self.start_ns}"
        self._segment_size = segment_size
        self._holes = holes
        self._sequence = 0
        self._offset = SEGMENT_HEADER
        # The segment before the control file: a control file promises a segment.
        self._segment_file = self._make_segment(0)
        self._control_file = self._make_control()
        self._segment, self._control = self._segment_file.map, self._control_file.map
        self._released = False
        self.open = True

    def append(self, kind: int, body: bytes) -> bool:
        """Append one record (``body`` is what follows the header); False if it was dropped, which is counted."""
        length = (8 + len(body) + 7) & ~7
        if not self.open or length > self._segment_size - SEGMENT_HEADER:
            self.count_loss(LOSS_RECORDS_DROPPED)
            return False
        # The recording command may want the segment before it is full, to take it away.
        full = self._offset + length > self._segment_size
        turn = full or _U32.unpack_from(self._control, SEGMENT_REQUESTED_AT)[0] > self._sequence
        if turn and not self._next_segment():
            self.count_loss(LOSS_RECORDS_DROPPED)
            return False
        start = self._offset
        self._segment[start + 8 : start + 8 + len(body)] = body
        _U64.pack_into(self._segment, start, record_header(length, kind, start, self._sequence))
        self._offset = start + length
        return True

    def count_loss(self, loss: int, count: int = 1) -> None:
        """Add to one of the loss counters."""
        self._add(LOSSES_AT + 8 * loss, count)

    def count_sample(self, handler_cpu_ns: int) -> None:
        """Count one tick and the CPU time that it took."""
        self._add(SAMPLES_AT, 1)
        self._add(HANDLER_CPU_NS_AT, handler_cpu_ns)

    def set_paused(self, paused: bool) -> None:
        """Say in the control file whether the recording is paused."""
        _U32.pack_into(self._control, PAUSED_AT, paused)

    def ask_for_snapshot(self) -> None:
        """Ask the recording command to keep what it has."""
        count = _U32.unpack_from(self._control, SNAPSHOTS_REQUESTED_AT)[0]
        _U32.pack_into(self._control, SNAPSHOTS_REQUESTED_AT, (count + 1) & NONE)

    def close(self) -> None:
        """End the recording cleanly, unless it had stopped before."""
        if self.open:
            self._finish(CONTROL_STATE_ENDED, 0)

    def keep(self) -> None:
        """Nothing more is written: when these objects end, no descriptor of the program's is closed."""
        self._segment_file.keep()
        self._control_file.keep()

    def release(self) -> None:
        """Unmap the files, where that closes no descriptor of the program's; nothing can be written any more."""
        self.open, self._released = False, True
        self._segment_file.release()
        self._control_file.release()

    def _finish(self, state: int, error: int) -> None:
        self.open = False
        _I64.pack_into(self._control, END_NS_AT, clock.monotonic_ns())
        _U32.pack_into(self._control, STOP_ERRNO_AT, error)
        _U32.pack_into(self._control, STATE_AT, state)

    def _next_segment(self) -> bool:
        try:
            segment = self._make_segment(self._sequence + 1)
        except OSError as error:
            self.count_loss(LOSS_RECORDING_STOPPED)
            self._finish(CONTROL_STATE_STOPPED_EARLY, error.errno or 0)
            return False
        self._segment_file.release()
        self._segment_file, self._segment = segment, segment.map
        self._sequence += 1
        self._offset = SEGMENT_HEADER
        _U32.pack_into(self._control, CURRENT_SEGMENT_AT, self._sequence)
        return True

    def _make_segment(self, sequence: int) -> OwnMapping:
        segment = self._map_new_file(f"{self._prefix}.{sequence:06d}.seg", self._segment_size)
        head = (SEGMENT_MAGIC, sequence, self._segment_size, self.pid, self.start_ns, 0)
        struct.pack_into(SEGMENT_HEAD, segment.map, 0, *head)
        return segment

    def _make_control(self) -> OwnMapping:
        control = self._map_new_file(f"{self._prefix}.ctl", CONTROL_SIZE)
        # The two clocks are read one after the other; what lies between them is under a microsecond.
        monotonic, utc = clock.monotonic_ns(), clock.utc_ns()
        utc_at_start = utc - (monotonic - self.start_ns)
        head = (
            1,
            0,
            self.pid,
            os.getppid(),
            self.start_ns,
            utc_at_start,
            self._segment_size,
            0,
            CONTROL_STATE_RECORDING,
        )
        rest = [0] * (len(struct.unpack_from(CONTROL_HEAD, control.map)) - 1 - len(head))
        struct.pack_into(CONTROL_HEAD, control.map, 0, CONTROL_MAGIC, *head, *rest)
        return control

    def _map_new_file(self, name: str, size: int) -> OwnMapping:
        """A new file of the spool; OSError also if another folder, or a link, is in the spool's place by now."""
        if _identity(self._spool) != self.place:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return _map_new_file(os.path.join(self._spool, name), size, self._holes)

    def _add(self, offset: int, amount: int) -> None:
        if not self._released:
            _U64.pack_into(self._control, offset, _U64.unpack_from(self._control, offset)[0] + amount)


def _identity(folder: str) -> tuple[int, int]:
    status = os.stat(folder, follow_symlinks=False)
    return status.st_dev, status.st_ino


def _map_new_file(path: str, size: int, holes: Sequence[Range]) -> OwnMapping:
    """A new file of ``size`` zero bytes, with its blocks on the disk, mapped; OSError if there is no room."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
        os.fchmod(descriptor, 0o600)
        return OwnMapping(descriptor, size, holes)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


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
