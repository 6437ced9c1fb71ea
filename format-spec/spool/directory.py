"""The spool directory: which processes it holds, their control files, segments and parts."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain
from pathlib import Path

from ..atomic import read_regular_file
from ..enumerations import DOMAINS
from ..errors import FormatError, NewerVersionError
from ..manifest import MOST_INTEGER
from .ended_files import EndedFiles
from .layout import (
    BLOCK,
    BLOCK_ROWS,
    CONTROL_FIELDS,
    CONTROL_MAGIC,
    CONTROL_SIZE,
    LOSS_COUNTERS,
    PENDING_SIZE,
    Control,
    ControlState,
)
from .process_log import CUT_LOG_NAME, KEPT_LOG_NAME, LOG_NAME, MAX_LOG_SIZE, ProcessLog, decode_log, joined
from .records import record_header
from .segment import Segment, read_segment
from .told_texts import TEXTS_NAME, ToldText, read_texts

SPOOL_NAME = "spool"
"""Name of the spool in a recording."""

PARTS_NAME = "parts"
"""Name of the directory of parts in a spool."""

MAX_SEGMENT_SIZE = 1 << 28
_MAX_CONTROL_SIZE = 1 << 18

_PROCESS_OF_CONTROL = struct.Struct("<8sIIi4xq")

_SEGMENT_NAME = re.compile(r"(\d{1,9}-\d{1,18})\.(\d{6,10})\.seg")
_CONTROL_NAME = re.compile(r"(\d{1,9}-\d{1,18})\.ctl")
_GPU_NAME = re.compile(r"gpu\.(\d{6,10})\.seg")
_PART_NAME = re.compile(r"(\d{1,9}-\d{1,18})\.(\d{6,10})-(\d{6,10})(?:\.(\d{1,9}))?")


class ControlFile(Control):
    """The control file of a process (SPOOL.md, "Control file"); ``end_ns`` is 0 if unknown."""

    __slots__ = ()

    @property
    def recording(self) -> bool:
        """True if the process says that it records."""
        return self.state == ControlState.RECORDING

    @property
    def behind(self) -> bool:
        """True if what the process wrote last may not be in its files: they are copies of memory that it held."""
        return self.recording and self.copied_ns != 0

    @property
    def on_disk(self) -> bool:
        """True if the process itself writes into its files."""
        return self.copied_ns == 0 and self.segments_copied == 0

    @property
    def ended(self) -> bool:
        """True if the process has written all that it had."""
        return self.state == ControlState.ENDED


def decode_control(data: bytes) -> ControlFile:
    """Decode a control file.

    Errors:
        FormatError: it is none, or too short.
        NewerVersionError: it has another major version.
    """
    _check_control(data)
    _, *numbers = CONTROL_FIELDS.unpack_from(data)
    # A counter that no run can have reached is damaged; a manifest could not hold it.
    fields = numbers if max(numbers) <= MOST_INTEGER else [min(value, MOST_INTEGER) for value in numbers]
    losses = Control._fields.index("losses")
    behind, last = losses + LOSS_COUNTERS, len(fields) - 2 * len(DOMAINS)
    control = ControlFile._make(
        (*fields[:losses], tuple(fields[losses:behind]), *fields[behind:last], tuple(fields[last:]))
    )
    _check_version(control.major, control.minor)
    return control


def process_of(data: bytes) -> tuple[int, int]:
    """The process id and the start time in a control file, which is not decoded otherwise.

    Errors:
        as decode_control.
    """
    _check_control(data)
    _, major, minor, pid, start_ns = _PROCESS_OF_CONTROL.unpack_from(data)
    _check_version(major, minor)
    return pid, start_ns


def _check_control(data: bytes) -> None:
    if len(data) < CONTROL_FIELDS.size or data[:8] != CONTROL_MAGIC:
        raise FormatError("not a spool control file: it does not begin with TACHCTL1")


def _check_version(major: int, minor: int) -> None:
    if major != 1:
        version = f"{major}.{minor}"
        raise NewerVersionError(f"the spool has version {version}, this tachograph reads 1.x: use a newer tachograph")


def pending_blocks(data: bytes) -> bytes:
    """The BLOCK records behind a control file, joined: blocks that live, and that no segment tells of yet."""
    # Earlier versions have shorter records there; no place of one length looks like one of another.
    places = (
        (at, length)
        for length in BLOCK_ROWS.lengths
        for at in range(CONTROL_SIZE, CONTROL_SIZE + PENDING_SIZE - length + 1, length)
    )
    return b"".join(
        data[at : at + length].ljust(BLOCK_ROWS.length, b"\0")
        for at, length in places
        if data[at : at + 8] == struct.pack("<Q", record_header(at, length, BLOCK, 0))
    )


@dataclass(frozen=True, order=True)
class Part:
    """Segments ``first`` to ``last`` of a process, turned into Parquet; ``path`` is a directory.

    ``window`` is 0, or the number of the window that begins after them: then the part has what is carried over into it.
    """

    first: int
    last: int
    path: Path
    window: int = 0


@dataclass(slots=True)
class SpoolProcess:
    """The files of one process in the spool; ``segments`` are the sequence numbers that no part covers.

    Where a window is being closed, ``later`` are those that belong to the next one, and ``until_ns`` is the end of the
    window, if what they tell of blocks from before it is wanted. ``ended`` has files of it that are not by themselves.
    """

    prefix: str
    directory: Path
    control: ControlFile | None = None
    segments: list[int] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    later: list[int] = field(default_factory=list)
    until_ns: int | None = None
    ended: EndedFiles | None = None

    @property
    def pid(self) -> int:
        """The process id in the prefix."""
        return int(self.prefix.partition("-")[0])

    @property
    def start_ns(self) -> int:
        """The monotonic start time in the prefix."""
        return int(self.prefix.partition("-")[2])

    @property
    def control_path(self) -> Path:
        """Where the control file lies."""
        return self.directory / f"{self.prefix}.ctl"

    @property
    def archived(self) -> bool:
        """True if its files are in the archive: it had ended before, and they do not change."""
        return self.ended is not None and self.ended.holds(f"{self.prefix}.ctl")

    def segment_path(self, seq: int) -> Path:
        """Where segment ``seq`` lies."""
        return self.directory / f"{self.prefix}.{seq:06}.seg"

    def segment_data(self, seq: int) -> bytes:
        """The bytes of segment ``seq``.

        Errors:
            FormatError: it is larger than a segment may be, for example.
            OSError: as ``segment``.
        """
        path = self.segment_path(seq)
        return _file_or_member(path, self.ended, MAX_SEGMENT_SIZE)

    def segment(self, seq: int) -> Segment:
        """Read segment ``seq``.

        Errors:
            FormatError: it is not a segment of that number.
            OSError: it cannot be read, or has been made into a part in the meantime (FileNotFoundError).
        """
        segment = read_segment(self.segment_data(seq))
        if segment.seq != seq:
            raise FormatError(f"{self.segment_path(seq).name} says that it is segment {segment.seq}")
        return segment


def covered(seq: int, parts: list[Part]) -> bool:
    """True if one of the parts holds segment ``seq``."""
    return any(part.first <= seq <= part.last for part in parts)


def outermost(parts: list[Part]) -> list[Part]:
    """The parts without those that lie within one that was carried over: it took their place."""
    carried = max((part for part in parts if part.window), key=lambda part: (part.window, part.last), default=None)
    if carried is None:
        return sorted(parts)
    return [carried, *sorted(part for part in parts if part.last > carried.last)]


def _file_or_member(path: Path, ended: EndedFiles | None, limit: int) -> bytes:
    data = None if ended is None else ended.read(path.name, limit)
    return read_regular_file(path, limit) if data is None else data


class SpoolDirectory:
    """A spool directory; nothing is kept open, and only places in the archive are cached: it can grow meanwhile."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._ended = EndedFiles(self.path)

    @property
    def parts_path(self) -> Path:
        """Directory of the parts; it exists once there is one."""
        return self.path / PARTS_NAME

    def processes(self, without: Container[str] = ()) -> list[SpoolProcess]:
        """The processes of the spool, by start time; those whose prefix is in ``without`` are not looked at.

        Errors:
            FormatError: the directory cannot be listed.
        """
        processes: dict[str, SpoolProcess] = {}

        def process(prefix: str) -> SpoolProcess:
            return processes.setdefault(prefix, SpoolProcess(prefix, self.path, ended=self._ended))

        # Segments before parts: a segment that becomes a part in between is then in one of the two lists or in both.
        names = {
            name for name in chain(_names(self.path), self._ended.names()) if name.partition(".")[0] not in without
        }
        for name in sorted(names):
            if match := _SEGMENT_NAME.fullmatch(name):
                process(match[1]).segments.append(int(match[2]))
            elif match := _CONTROL_NAME.fullmatch(name):
                process(match[1]).control = self.control(match[1])
        for prefix, part in self._parts():
            if prefix not in without:
                process(prefix).parts.append(part)
        for each in processes.values():
            each.parts = outermost(each.parts)
            each.segments = sorted(seq for seq in each.segments if not covered(seq, each.parts))
        return sorted(processes.values(), key=lambda each: (each.start_ns, each.pid))

    def has_more_than(self, most: int) -> bool:
        """True if there are more than ``most`` segments, those in parts included. Reads only as many names as needed.

        Errors:
            FormatError: the directory cannot be listed.
        """
        names = chain(_names(self.path), self._ended.names())
        segments = (1 for name in names if _SEGMENT_NAME.fullmatch(name))
        of_parts = (part.last - part.first + 1 for _, part in self._parts())
        return any(count > most for count in accumulate(chain(segments, of_parts)))

    def parts(self, prefix: str) -> list[Part]:
        """The parts of a process, listed now."""
        return outermost([part for _, part in self._parts(f"{prefix}.")])

    def all_parts(self, prefix: str) -> list[Part]:
        """The parts of a process, those too in whose place another one has come."""
        return [part for _, part in self._parts(f"{prefix}.")]

    def gpu_segments(self) -> list[int]:
        """The numbers of the segments of GPU readings, in order.

        Errors:
            FormatError: the directory cannot be listed.
        """
        return sorted(int(match[1]) for name in _names(self.path) if (match := _GPU_NAME.fullmatch(name)))

    def gpu_segment(self, seq: int) -> Segment:
        """Read a segment of GPU readings.

        Errors:
            FormatError: it is not a segment of that number.
            OSError: it cannot be read.
        """
        segment = read_segment(read_regular_file(self.path / f"gpu.{seq:06}.seg", MAX_SEGMENT_SIZE))
        if segment.seq != seq:
            raise FormatError(f"gpu.{seq:06}.seg says that it is segment {segment.seq}")
        return segment

    def told_texts(self) -> tuple[dict[str, ToldText], int]:
        """The texts of code that no file has, by ``co_filename``; and how many of them are damaged.

        Errors:
            FormatError: the directory cannot be listed.
        """
        names = sorted((int(match[1]), name) for name in _names(self.path) if (match := TEXTS_NAME.fullmatch(name)))
        return read_texts([self.path / name for _, name in names])

    def _parts(self, beginning: str = "") -> Iterator[tuple[str, Part]]:
        if self.parts_path.is_dir() and not self.parts_path.is_symlink():
            for name in _names(self.parts_path):
                if name.startswith(beginning) and (match := _PART_NAME.fullmatch(name)):
                    yield match[1], Part(int(match[2]), int(match[3]), self.parts_path / name, int(match[4] or 0))

    def process_log(self) -> ProcessLog:
        """The process log; without records if there is none that can be read."""
        return joined([self._log(name) for name in (KEPT_LOG_NAME, CUT_LOG_NAME, LOG_NAME)])

    def _log(self, name: str) -> ProcessLog:
        try:
            return decode_log(read_regular_file(self.path / name, MAX_LOG_SIZE))
        except (OSError, FormatError):
            return ProcessLog()

    def control(self, prefix: str) -> ControlFile | None:
        """The control file of a process, read now; None if it is missing or damaged.

        Errors:
            NewerVersionError: it has another major version.
        """
        try:
            return decode_control(self._control_data(prefix))
        except NewerVersionError:
            raise
        except (OSError, FormatError):
            return None

    def pending_blocks(self, prefix: str) -> bytes:
        """The BLOCK records behind the control file of a process that has not ended; none if it cannot be read."""
        try:
            data = self._control_data(prefix)
            return b"" if decode_control(data).ended else pending_blocks(data)
        except (OSError, FormatError):
            return b""

    def _control_data(self, prefix: str) -> bytes:
        return _file_or_member(self.path / f"{prefix}.ctl", self._ended, _MAX_CONTROL_SIZE)


def _names(directory: Path) -> Iterator[str]:
    """One after the other: there may be files of a hundred thousand processes that are not asked for."""
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                yield entry.name
    except OSError as error:
        raise FormatError(f"cannot list {directory.name}: {error.strerror}") from error
