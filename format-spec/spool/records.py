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
MEMORY, BLOCK, FREED, COPY = range(11, 15)
SPAN = 15
GPU_DEVICE, GPU, LOSS = 16, 17, 18
CARRIED, THREAD_CARRIED = 19, 20
TASK_STACK = 21
EXITING = 6
"""Event of a STATE record: the interpreter began to shut down."""
ABANDONED = 255
"""Kind of a record whose room was taken and not used."""
ROW_LENGTHS = {CPU: 56, WAIT: 56, MEMORY: 160, BLOCK: 72, FREED: 24, COPY: 64, GPU: 64}
"""Length in bytes of the records that become rows of tables, by kind; all others are definitions."""


def record_header(offset: int, length: int, kind: int, seq: int) -> int:
    """The header of a record at ``offset`` bytes in segment ``seq``: 16 check bits, its kind and its length."""
    check = (0xA5C3 ^ (length >> 3) ^ (kind * 0x1F35) ^ ((offset >> 3) * 0x2545) ^ (seq * 0x3D4D)) & 0xFFFF
    return check << 48 | kind << 32 | length


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
    """A node of the calling context tree; ``parent`` and ``code`` may be NONE, ``instruction`` may be -1.

    ``task`` is the name of the asyncio task that was made of this frame's coroutine.
    """

    stack: int
    parent: int
    code: int
    instruction: int
    task: str | None = None


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


class Memory(NamedTuple):
    """A reading of the process's books of memory, as in the spool: bytes by domain since the previous one."""

    time_ns: int
    footprint_bytes: int
    peak_bytes: int
    native_allocated_bytes: int
    native_freed_bytes: int
    mapped_allocated_bytes: int
    mapped_freed_bytes: int
    raw_allocated_bytes: int
    raw_freed_bytes: int
    mem_allocated_bytes: int
    mem_freed_bytes: int
    obj_allocated_bytes: int
    obj_freed_bytes: int
    resident_bytes: int
    minor_faults: int
    major_faults: int
    pc: int
    thread: int
    stack: int
    kept_frames: int
    event: int
    stack_state: int


class Block(NamedTuple):
    """The birth of a sampled block, as in the spool; ``block`` is its id in the process."""

    time_ns: int
    size_bytes: int
    requested_bytes: int
    mean_bytes: int
    weight_bytes: int
    pc: int
    block: int
    thread: int
    stack: int
    domain: int
    stack_state: int
    followed: int


class Freed(NamedTuple):
    """The death of a sampled block."""

    time_ns: int
    block: int
    thread: int


class Copy(NamedTuple):
    """A sampled copy, as in the spool."""

    time_ns: int
    bytes: int
    size_bytes: int
    mean_bytes: int
    pc: int
    thread: int
    stack: int
    stack_state: int


class State(NamedTuple):
    """Something happened to the recording: 1 paused, 2 resumed, 3 forked, 4 exec, 5 stopped, 6 exiting."""

    time_ns: int
    event: int
    detail: int


class Span(NamedTuple):
    """A stretch of a thread's time that the program gave a name; ``fields`` is JSON or empty."""

    start_ns: int
    end_ns: int
    thread: int
    span: int
    parent: int
    name: str
    fields: str


class Carried(NamedTuple):
    """Where the present window of a process begins, and what its control file's counters were then."""

    start_ns: int
    helper_cpu_ns: int
    handler_cpu_ns: int
    samples: int
    ticks: int
    losses: tuple[int, ...]


class ThreadCarried(NamedTuple):
    """The CPU time of a thread that is in the samples of earlier windows; -1 unknown."""

    thread: int
    cpu_ns: int


class GpuDevice(NamedTuple):
    """A GPU; ``number`` is the driver's number of it, ``memory_bytes`` is -1 where unknown, and texts may be empty."""

    device: int
    number: int
    memory_bytes: int
    name: str
    uuid: str
    driver: str


class GpuReading(NamedTuple):
    """A reading of a GPU, as in the spool; ``pid`` 0 is all that uses it."""

    time_ns: int
    since_ns: int
    memory_bytes: int
    power_mw: int
    device: int
    pid: int
    temperature_c: int
    users: int
    busy_percent: int
    memory_busy_percent: int


class LossCount(NamedTuple):
    """Something could not be recorded, so many ``times``; told by the recording command."""

    times: int
    loss: str


Definition = (
    Meta
    | ThreadStart
    | ThreadName
    | ThreadEnd
    | Code
    | Stack
    | Module
    | State
    | Span
    | GpuDevice
    | LossCount
    | Carried
    | ThreadCarried
)
Record = Definition | Cpu | Wait | Memory | Block | Freed | Copy | GpuReading

_META = struct.Struct("<HHI")
_THREAD_START = struct.Struct("<IiqI")
_THREAD_NAME = struct.Struct("<IHH")
_THREAD_END = struct.Struct("<IIqq")
_CODE = struct.Struct("<IiIIIBBHII")
_STACK = struct.Struct("<IIIi")
_TASK_STACK = struct.Struct("<IIIiIB")
_MODULE = struct.Struct("<IIQQQqHHI")
_CPU = struct.Struct("<qqqQIIIBBBB")
_WAIT = struct.Struct("<qqqQIIiBB")
_STATE = struct.Struct("<qII")
_MEMORY = struct.Struct("<16qQIIIBB")
_BLOCK = struct.Struct("<qqqqqQIIIBBB")
_FREED = struct.Struct("<qII")
_COPY = struct.Struct("<qqqqQIIB")
_SPAN = struct.Struct("<qqIIIHHII")
_GPU_DEVICE = struct.Struct("<IIqHHHH")
_GPU = struct.Struct("<qqqqIiiIBB")
_LOSS = struct.Struct("<QHHI")
_CARRIED = struct.Struct("<qqqQQ64Q")
_THREAD_CARRIED = struct.Struct("<IIq")
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
    return Stack(*_STACK.unpack_from(data, _BODY))


def _task_stack(data: bytes) -> Stack:
    stack, parent, code, instruction, length, width = _TASK_STACK.unpack_from(data, _BODY)
    return Stack(stack, parent, code, instruction, _characters(_take(data, 32, length * width), width))


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


def _memory(data: bytes) -> Memory:
    return Memory._make(_MEMORY.unpack_from(data, _BODY))


def _block(data: bytes) -> Block:
    return Block._make(_BLOCK.unpack_from(data, _BODY))


def _freed(data: bytes) -> Freed:
    return Freed._make(_FREED.unpack_from(data, _BODY))


def _copy(data: bytes) -> Copy:
    return Copy._make(_COPY.unpack_from(data, _BODY))


def _span(data: bytes) -> Span:
    start_ns, end_ns, thread, span, parent, name_length, _, fields_length, _ = _SPAN.unpack_from(data, _BODY)
    name, fields = _take(data, 48, name_length), _take(data, 48 + name_length, fields_length)
    return Span(start_ns, end_ns, thread, span, parent, _utf8(name), _utf8(fields))


def _gpu_device(data: bytes) -> GpuDevice:
    device, index, memory_bytes, *lengths, _ = _GPU_DEVICE.unpack_from(data, _BODY)
    texts, start = [], 32
    for length in lengths:
        texts.append(_utf8(_take(data, start, length)))
        start += length
    return GpuDevice(device, index, memory_bytes, *texts)


def _gpu(data: bytes) -> GpuReading:
    return GpuReading._make(_GPU.unpack_from(data, _BODY))


def _loss(data: bytes) -> LossCount:
    count, length, _, _ = _LOSS.unpack_from(data, _BODY)
    return LossCount(count, _utf8(_take(data, 24, length)))


def _carried(data: bytes) -> Carried:
    start_ns, helper_cpu_ns, handler_cpu_ns, samples, ticks, *losses = _CARRIED.unpack_from(data, _BODY)
    return Carried(start_ns, helper_cpu_ns, handler_cpu_ns, samples, ticks, tuple(losses))


def _thread_carried(data: bytes) -> ThreadCarried:
    thread, _, cpu_ns = _THREAD_CARRIED.unpack_from(data, _BODY)
    return ThreadCarried(thread, cpu_ns)


def carried_body(carried: Carried) -> bytes:
    """A CARRIED record's bytes after its header."""
    return _CARRIED.pack(*carried[:5], *carried.losses)


def thread_carried_body(carried: ThreadCarried) -> bytes:
    """A THREAD_CARRIED record's bytes after its header."""
    return _THREAD_CARRIED.pack(carried.thread, 0, carried.cpu_ns)


_DECODERS: dict[int, Callable[[bytes], Record]] = {
    META: _meta,
    THREAD_START: _thread_start,
    THREAD_NAME: _thread_name,
    THREAD_END: _thread_end,
    CODE: _code,
    STACK: _stack,
    TASK_STACK: _task_stack,
    MODULE: _module,
    CPU: _cpu,
    WAIT: _wait,
    STATE: _state,
    MEMORY: _memory,
    BLOCK: _block,
    FREED: _freed,
    COPY: _copy,
    SPAN: _span,
    GPU_DEVICE: _gpu_device,
    GPU: _gpu,
    LOSS: _loss,
    CARRIED: _carried,
    THREAD_CARRIED: _thread_carried,
}
