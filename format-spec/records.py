"""The records of a spool segment: their layouts, as in SPEC.md "Record", and one decoder for each kind."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

NONE = 0xFFFFFFFF
"""The id that stands for "none" in the spool."""

SEGMENT_MAGIC = b"TACHSEG1"
SEGMENT_HEADER = 64
DEFINITIONS_SEQ = 0xFFFFFFFF
"""Sequence number of the segment of definitions in a part."""

META, THREAD_START, THREAD_NAME, THREAD_END, CODE, STACK, MODULE, CPU, WAIT, STATE = range(1, 11)
ABANDONED = 255
"""Kind of a record whose room was taken and not used."""
ROW_LENGTH = 56
"""Length in bytes of a CPU and of a WAIT record."""


def record_check(offset: int, length: int, kind: int, seq: int) -> int:
    """The 16 check bits of the header of a record at ``offset`` bytes in segment ``seq``."""
    return (0xA5C3 ^ (length >> 3) ^ (kind * 0x1F35) ^ ((offset >> 3) * 0x2545) ^ (seq * 0x3D4D)) & 0xFFFF


class Meta(NamedTuple):
    """A fact about the process, such as its Python version."""

    key: str
    value: str


class ThreadStart(NamedTuple):
    """A thread was seen for the first time."""

    thread: int
    tid: int
    time_ns: int
    main: bool


class ThreadName(NamedTuple):
    """The name of a thread; ``source`` is 1 for Python's name and 2 for the system's."""

    thread: int
    source: int
    name: str


class ThreadEnd(NamedTuple):
    """A thread ended, having used ``cpu_ns`` of CPU time while it was recorded."""

    thread: int
    time_ns: int
    cpu_ns: int


class Code(NamedTuple):
    """A code object."""

    code: int
    first_line: int
    flags: int
    filename: str
    qualname: str
    line_table: bytes | None


class Stack(NamedTuple):
    """A node of the calling context tree; ``parent`` and ``code`` may be NONE, ``instruction`` may be -1."""

    stack: int
    parent: int
    code: int
    instruction: int


class Module(NamedTuple):
    """An executable mapping."""

    module: int
    interpreter: bool
    start: int
    end: int
    file_offset: int
    time_ns: int
    build_id: str
    path: str


class Cpu(NamedTuple):
    """A CPU sample, as in the spool: -1, 0, 2 and NONE stand for "unknown" as SPEC.md says."""

    time_ns: int
    cpu_ns: int
    system_ns: int
    pc: int
    thread: int
    stack: int
    overruns: int
    gil: int
    opcode: int
    origin: int
    stack_state: int


class Wait(NamedTuple):
    """A span of off-CPU time, as in the spool."""

    start_ns: int
    end_ns: int
    off_cpu_ns: int
    pc: int
    thread: int
    stack: int
    syscall: int
    target: int
    stack_state: int


class State(NamedTuple):
    """Something happened to the recording: 1 paused, 2 resumed, 3 forked, 4 exec, 5 stopped."""

    time_ns: int
    event: int
    detail: int


Definition = Meta | ThreadStart | ThreadName | ThreadEnd | Code | Stack | Module | State
Record = Definition | Cpu | Wait

_META = struct.Struct("<HHI")
_THREAD_START = struct.Struct("<IiqI")
_THREAD_NAME = struct.Struct("<IHH")
_THREAD_END = struct.Struct("<IIqq")
_CODE = struct.Struct("<IiIIIBBHII")
_STACK = struct.Struct("<IIIi")
_MODULE = struct.Struct("<IIQQQqHHI")
_CPU = struct.Struct("<qqqQIIIBBBB")
_WAIT = struct.Struct("<qqqQIIiBB")
_STATE = struct.Struct("<qII")
_BODY = 8
_WIDTHS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def decode_record(kind: int, data: bytes) -> Record | None:
    """Decode one whole record (header included); None if it is of an unknown kind or contradicts itself."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    try:
        return decoder(data)
    except (struct.error, _ContradictionError):
        return None


class _ContradictionError(Exception):
    """Lengths inside a record reach beyond its end."""


def _take(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise _ContradictionError
    return data[start : start + length]


def _utf8(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _characters(data: bytes, width: int) -> str:
    try:
        return data.decode(_WIDTHS[width], "surrogatepass")
    except UnicodeDecodeError:
        return data.decode(_WIDTHS[width], "replace")
    except KeyError:
        raise _ContradictionError from None


def _meta(data: bytes) -> Meta:
    key_length, _, value_length = _META.unpack_from(data, _BODY)
    return Meta(_utf8(_take(data, 16, key_length)), _utf8(_take(data, 16 + key_length, value_length)))


def _thread_start(data: bytes) -> ThreadStart:
    thread, tid, time_ns, flags = _THREAD_START.unpack_from(data, _BODY)
    return ThreadStart(thread, tid, time_ns, bool(flags & 1))


def _thread_name(data: bytes) -> ThreadName:
    thread, source, length = _THREAD_NAME.unpack_from(data, _BODY)
    return ThreadName(thread, source, _utf8(_take(data, 16, length)))


def _thread_end(data: bytes) -> ThreadEnd:
    thread, _, time_ns, cpu_ns = _THREAD_END.unpack_from(data, _BODY)
    return ThreadEnd(thread, time_ns, cpu_ns)


def _code(data: bytes) -> Code:
    code, line, flags, table_length, filename_length, filename_width, qualname_width, _, qualname_length, _ = (
        _CODE.unpack_from(data, _BODY)
    )
    filename = _take(data, 40, filename_length * filename_width)
    qualname = _take(data, 40 + len(filename), qualname_length * qualname_width)
    table = None if table_length == NONE else _take(data, 40 + len(filename) + len(qualname), table_length)
    return Code(code, line, flags, _characters(filename, filename_width), _characters(qualname, qualname_width), table)


def _stack(data: bytes) -> Stack:
    return Stack._make(_STACK.unpack_from(data, _BODY))


def _module(data: bytes) -> Module:
    module, flags, start, end, offset, time_ns, id_length, path_length, _ = _MODULE.unpack_from(data, _BODY)
    build_id = _take(data, 56, id_length).hex()
    return Module(
        module, bool(flags & 1), start, end, offset, time_ns, build_id, _utf8(_take(data, 56 + id_length, path_length))
    )


def _cpu(data: bytes) -> Cpu:
    return Cpu._make(_CPU.unpack_from(data, _BODY))


def _wait(data: bytes) -> Wait:
    return Wait._make(_WAIT.unpack_from(data, _BODY))


def _state(data: bytes) -> State:
    return State._make(_STATE.unpack_from(data, _BODY))


_DECODERS: dict[int, Callable[[bytes], Record]] = {
    META: _meta,
    THREAD_START: _thread_start,
    THREAD_NAME: _thread_name,
    THREAD_END: _thread_end,
    CODE: _code,
    STACK: _stack,
    MODULE: _module,
    CPU: _cpu,
    WAIT: _wait,
    STATE: _state,
}
