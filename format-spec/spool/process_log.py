"""The process log of a spool, and the images that it tells of: programs in processes, from beginning to end.

Every process under the recording appends its records: it began, it forked, it replaces its program, it ended. A process
that replaces its program (exec) has several images, one after the other; each is a row of ``processes``.
"""

from __future__ import annotations

import re
import shlex
import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .layout import LOG_BOUND, PROCESS_FIELDS, PROCESS_MAGIC, ProcessEvent, Refusal
from .masking import mask_arguments

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
    status_field = UNKNOWN_STATUS if status is None else status
    head = (PROCESS_MAGIC, event, pid, parent_pid, status_field, time_ns, *numbers, len(executable), len(arguments))
    return PROCESS_FIELDS.pack(*head, executable + arguments)


def shortened(record: bytes) -> bytes:
    """A record of ``RECORD_SIZE`` without the room behind its texts; other bytes are returned unchanged."""
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


MAX_COMMAND = 400
"""Characters kept of a command line."""

SLACK_NS = 1_000_000_000
"""How long after its END record a process may still be seen as a parent: END is written before the end."""


LEAST_UNLISTED_NS = 10_000_000
"""CPU time of a child from which it counts as unlisted: one whose program could not be started takes less."""


@dataclass(eq=False, slots=True)
class Image:
    """One image; None stands for "unknown". ``replaced`` is the image that it took the place of.

    ``ancestor`` names the nearest process that is in the log by its pid and the time of its beginning. ``refused`` is
    why it was not armed (``Refusal``), ``exec_ns`` when it last began to replace its program. ``reaped`` says that its
    parent was told how it ended.
    """

    pid: int
    parent_pid: int | None
    start_ns: int
    origin: str | None
    executable: str | None
    command: str | None
    ancestor: tuple[int, int] | None = None
    replaced: Image | None = None
    exec_ns: int | None = None
    end_ns: int | None = None
    exit_status: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    max_resident_bytes: int | None = None
    refused: int | None = None
    reaped: bool = False

    def apply(self, record: LogRecord) -> None:
        """Take over what a later record of the same process says; of several ends the first counts."""
        match record.event:
            case Event.END if self.end_ns is None:
                self.end_ns, self.exit_status = record.time_ns, record.status
                self.user_ns, self.system_ns = _known(record.first), _known(record.second)
                self.max_resident_bytes = _known(record.third)
            case Event.END if self.exit_status is None:
                self.exit_status = record.status
            case Event.REAPED if not self.reaped:
                self._apply_reaped(record)
            case Event.EXEC:
                self.exec_ns = record.time_ns
            case Event.REFUSED:
                self.refused = record.status or Refusal.FAILED

    def _apply_reaped(self, record: LogRecord) -> None:
        """Takes over what the kernel told the parent: it counts more than the process's own END record."""
        self.reaped = True
        if self.end_ns is None:
            self.end_ns = record.time_ns
        if record.status is not None:
            self.exit_status = record.status
        if record.first >= 0 and record.second >= 0:
            self.user_ns, self.system_ns = record.first, record.second
        if self.max_resident_bytes is None and self.replaced is None:  # else it may be that of the earlier program
            self.max_resident_bytes = _known(record.third)

    def gives_way_to(self, record: LogRecord) -> bool:
        """True if the beginning in ``record`` is that of the program that took this one's place; ends it if so."""
        if record.event is not Event.START or self.exec_ns is None or self.end_ns is not None:
            return False
        self.end_ns = self.exec_ns
        return True


class Images:
    """The images of a log, in the order of their beginning."""

    def __init__(self) -> None:
        self.found: list[Image] = []
        self.unlisted_ns = 0
        """CPU time of children that ended, each with at least ``LEAST_UNLISTED_NS``, and wrote nothing themselves."""
        self._by_pid: dict[int, list[Image]] = {}

    def add(self, image: Image) -> None:
        """Append an image; it began no earlier than the others."""
        self.found.append(image)
        self._by_pid.setdefault(image.pid, []).append(image)

    def latest(self, pid: int, time_ns: int) -> Image | None:
        """The last image of process ``pid`` that had begun at ``time_ns``."""
        images = self._by_pid.get(pid, [])
        at = bisect_right(images, time_ns, key=lambda image: image.start_ns)
        return images[at - 1] if at else None

    def alive(self, pid: int, time_ns: int, slack_ns: int = 0) -> Image | None:
        """The latest image of a process, unless it is known to have ended longer than ``slack_ns`` before."""
        image = self.latest(pid, time_ns)
        ended = image is not None and image.end_ns is not None and image.end_ns < time_ns - slack_ns
        return None if ended else image

    def may_reap(self, pid: int, image: Image, time_ns: int) -> bool:
        """True if process ``pid`` can have been told of the end of an image: it is its parent, or adopted an orphan.

        In a namespace of process ids another process may have the number.
        """
        if image.parent_pid is None or image.parent_pid == pid:
            return image.parent_pid is not None
        parent = self.latest(image.parent_pid, time_ns)
        return parent is not None and parent.end_ns is not None

    def note_unlisted(self, record: LogRecord) -> None:
        """Add the CPU time in a record of a child's end to that of the children that are in no other record."""
        used_ns = record.first + record.second if record.first >= 0 and record.second >= 0 else 0
        if record.event is Event.REAPED and used_ns >= LEAST_UNLISTED_NS:
            self.unlisted_ns += used_ns

    @property
    def have_own_ids(self) -> bool:
        """True if a process has its id in a namespace of its own: then its parent knows it by another one."""
        return any(image.parent_pid == 0 for image in self.found)

    def parent(self, image: Image) -> Image | None:
        """The nearest image in the log that created this one, or that it took the place of."""
        if image.replaced is not None:
            return image.replaced
        if image.ancestor is not None:
            return self.latest(*image.ancestor)
        return None if image.parent_pid is None else self.alive(image.parent_pid, image.start_ns, SLACK_NS)


def images_of(log: ProcessLog) -> Images:
    """Put the records of a log together."""
    images = Images()
    first = next((record for record in log.records if record.event is Event.FIRST), None)
    for record in sorted(log.records, key=lambda record: record.time_ns):
        latest = images.latest(record.pid, record.time_ns)
        if record.event is Event.FIRST:
            # The recording command speaks, in case that the program cannot.
            if record is first and not any(_is_first(other, record) for other in log.records):
                images.add(_image(record, None, images))
        elif record.event in BEGINNINGS:
            images.add(_image(record, latest, images))
        elif latest is None or (
            record.event is Event.REAPED and not images.may_reap(record.parent_pid, latest, record.time_ns)
        ):
            images.note_unlisted(record)
        else:
            latest.apply(record)
    if first is not None:
        for image in images.found:
            if image.pid == first.pid and image.start_ns >= first.time_ns:
                image.origin = "first"
                break
    return images


def _is_first(record: LogRecord, first: LogRecord) -> bool:
    return record.event is Event.START and record.pid == first.pid and record.time_ns >= first.time_ns


def _image(record: LogRecord, latest: Image | None, images: Images) -> Image:
    replaced = latest if latest is not None and latest.gives_way_to(record) else None
    image = Image(
        pid=record.pid,
        parent_pid=record.parent_pid,
        start_ns=record.time_ns,
        origin={Event.START: "exec", Event.FORK: "fork"}.get(record.event),
        executable=record.executable or None,
        command=_command(record),
        replaced=replaced,
    )
    if record.event in BEGINNINGS and record.first >= 0 and record.second >= 0:
        image.ancestor = record.first, record.second
    if record.event is Event.FORK and not record.arguments:
        parent = images.parent(image)
        if parent is not None:
            image.executable, image.command = parent.executable, parent.command
    return image


def _command(record: LogRecord) -> str | None:
    """The command line as a shell would take it, without secrets."""
    if not record.arguments:
        return None
    text = shlex.join(mask_arguments(record.arguments))
    return text[: MAX_COMMAND - 1] + "…" if record.cut or len(text) > MAX_COMMAND else text


def _known(value: int) -> int | None:
    return value if value >= 0 else None
