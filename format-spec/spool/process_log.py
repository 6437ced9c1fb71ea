"""Reads the process log of a spool: what every process under the recording said of its beginning and its end."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .layout import LOG_BOUND, PROCESS_FIELDS, PROCESS_MAGIC, ProcessEvent

LOG_NAME = "processes.log"
"""Name of the process log in a spool."""

KEPT_LOG_NAME = "processes.kept.log"
"""What a log that was cut said of the processes that lived on."""

CUT_LOG_NAME = "processes.cut.log"
"""A log that is being cut."""

RECORD_SIZE = PROCESS_FIELDS.size
SHORT_MAGIC = b"TACHPRC2"
"""What a record begins with that has no room behind its texts: most have none, and half a kilobyte for them."""

BOUND = LOG_BOUND
"""Bytes of the log from which on a process appends one byte in place of a record."""

MAX_LOG_SIZE = 2 * BOUND
"""Bytes of the largest log that is read."""

UNKNOWN_STATUS = -(1 << 31)

_ROOM = len(PROCESS_FIELDS.unpack(bytes(RECORD_SIZE))[-1])
_HEAD_SIZE = RECORD_SIZE - _ROOM
_LENGTHS = struct.Struct("<II")
_LENGTHS_AT = _HEAD_SIZE - _LENGTHS.size
_BEGINNING = re.compile(b"|".join((PROCESS_MAGIC, SHORT_MAGIC)))
_OVER = len(PROCESS_MAGIC) - 1

Event = ProcessEvent

_KINDS = frozenset(Event)
BEGINNINGS = (Event.START, Event.FORK)


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record; ``status`` is None where it is unknown, ``first`` to ``third`` are what SPEC.md says of its kind.

    ``cut`` says that the arguments may have been longer than what is there.
    """

    event: Event
    pid: int
    parent_pid: int
    status: int | None
    time_ns: int
    first: int
    second: int
    third: int
    executable: str
    arguments: tuple[str, ...]
    cut: bool


@dataclass(frozen=True)
class ProcessLog:
    """The records of a log in the order in which they were written.

    ``torn`` counts runs of bytes that are no records, ``unlisted`` the beginnings that came after the log was full.
    """

    records: tuple[LogRecord, ...] = ()
    torn: int = 0
    unlisted: int = 0

    @property
    def window(self) -> LogRecord | None:
        """The beginning of the present window; None in the first, and where nothing is rotated."""
        begun = (record for record in self.records if record.event is Event.WINDOW)
        return max(begun, key=lambda record: record.time_ns, default=None)

    @property
    def window_ns(self) -> int | None:
        """When the present window began; None in the first, and where nothing is rotated."""
        return None if self.window is None else self.window.time_ns

    def without_records(self) -> ProcessLog:
        """The same log with the beginning of the window and the last of all its records only: there may be millions."""
        last = max(self.records, key=lambda record: record.time_ns, default=None)
        kept = dict.fromkeys(record for record in (self.window, last) if record is not None)
        return ProcessLog(tuple(kept), self.torn, self.unlisted)


def decode_log(data: bytes) -> ProcessLog:
    """Decode a process log; damage is counted, never an error. Unknown kinds of records are skipped."""
    records: list[LogRecord] = []
    torn = unlisted = at = 0
    while at < len(data):
        end = _end(data, at)
        # In a record that a full disk cut short the next one begins, with its last bytes perhaps.
        if end is not None and end <= len(data) and _BEGINNING.search(data, at + 1, end + _OVER) is None:
            record = _decode(data[at:end])
            if record is not None:
                records.append(record)
            at = end
            continue
        begins = _BEGINNING.search(data, at + 1)
        after = len(data) if begins is None else begins.start()
        if at >= BOUND:
            unlisted += sum(data.count(kind, at, after) for kind in BEGINNINGS)
        else:
            torn += 1
        at = after
    return ProcessLog(tuple(records), torn, unlisted)


def joined(logs: Sequence[ProcessLog]) -> ProcessLog:
    """Several logs as one; what stands in two of them counts once, as the first has it."""
    records: dict[tuple[Event, int, int], LogRecord] = {}
    for record in (record for log in logs for record in log.records):
        records.setdefault((record.event, record.pid, record.time_ns), record)
    return ProcessLog(tuple(records.values()), sum(log.torn for log in logs), sum(log.unlisted for log in logs))


def encode_record(
    event: Event,
    pid: int,
    parent_pid: int,
    time_ns: int,
    *,
    status: int | None = None,
    numbers: tuple[int, int, int] = (-1, -1, -1),
    executable: bytes = b"",
    arguments: bytes = b"",
) -> bytes:
    """A record as the recording command writes it; ``numbers`` are its last three, the texts are cut to fit."""
    executable = executable[:_ROOM]
    arguments = arguments[: _ROOM - len(executable)]
    known = UNKNOWN_STATUS if status is None else status
    head = (PROCESS_MAGIC, event, pid, parent_pid, known, time_ns, *numbers, len(executable), len(arguments))
    return PROCESS_FIELDS.pack(*head, executable + arguments)


def shortened(record: bytes) -> bytes:
    """A record of ``RECORD_SIZE`` without the room behind its texts; what is none stays as it is."""
    if not record.startswith(PROCESS_MAGIC):
        return record
    executable, arguments = _LENGTHS.unpack_from(record, _LENGTHS_AT)
    executable = min(executable, _ROOM)
    arguments = min(arguments, _ROOM - executable)
    end = _HEAD_SIZE + executable + arguments
    lengths = _LENGTHS.pack(executable, arguments)
    return SHORT_MAGIC + record[len(SHORT_MAGIC) : _LENGTHS_AT] + lengths + record[_HEAD_SIZE:end]


def _end(data: bytes, at: int) -> int | None:
    """Where the record ends that begins at ``at``; None if none does."""
    if data.startswith(PROCESS_MAGIC, at):
        return at + RECORD_SIZE
    if not data.startswith(SHORT_MAGIC, at) or at + _HEAD_SIZE > len(data):
        return None
    length = sum(_LENGTHS.unpack_from(data, at + _LENGTHS_AT))
    return at + _HEAD_SIZE + length if length <= _ROOM else None


def _decode(data: bytes) -> LogRecord | None:
    record = PROCESS_FIELDS.unpack(data.ljust(RECORD_SIZE, b"\0"))
    _, kind, pid, parent, status, time_ns, first, second, third, executable, command, text = record
    if kind not in _KINDS:
        return None
    executable = min(executable, _ROOM)
    command = min(command, _ROOM - executable)
    return LogRecord(
        event=Event(kind),
        pid=pid,
        parent_pid=parent,
        status=None if status == UNKNOWN_STATUS else status,
        time_ns=time_ns,
        first=first,
        second=second,
        third=third,
        executable=_text(text[:executable]),
        arguments=_arguments(text[executable : executable + command]),
        cut=executable + command == _ROOM,
    )


# Thousands of processes may have the same arguments: they share one text.
@lru_cache(maxsize=256)
def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


@lru_cache(maxsize=256)
def _arguments(data: bytes) -> tuple[str, ...]:
    """The arguments, each ended or parted by a NUL."""
    return tuple(_text(each) for each in data.removesuffix(b"\0").split(b"\0")) if data else ()
