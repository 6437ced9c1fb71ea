"""The step from one window of a rotated recording to the next: noted before it is made, so that it is made once.

The recording of a closed window takes its name (``NAME.0007.tacho`` beside ``NAME.tacho``) in one moment. From then on
its part of the spool is to be replaced by what the next window needs, the process log included; a process that finds a
journal completes that (``settle``), or, if the window never took its name, leaves the spool as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph.format import FormatError, Manifest, SpoolDirectory
from tachograph.format.atomic import UNFINISHED, read_regular_file, write_bytes
from tachograph.format.spool.directory import ControlFile
from tachograph.format.spool.layout import LOSS_COUNTERS
from tachograph.format.spool.process_log import (
    BEGINNINGS,
    CUT_LOG_NAME,
    KEPT_LOG_NAME,
    Event,
    LogRecord,
    ProcessLog,
    encode_record,
)
from tachograph.recorder.collect.output import MANIFEST, SPOOL, SUFFIX
from tachograph.recorder.collect.removal import discard_window
from tachograph.recorder.collect.running import was_running_at
from tachograph.recorder.rotation.window_handover import WindowCut, remove_carried, remove_process, write_carry

if TYPE_CHECKING:
    from tachograph.recorder.collect.held_folder import HeldFolder


JOURNAL = "rotation.json"

_COUNTERS = ("helper_cpu_ns", "handler_cpu_ns", "samples", "wait_ticks", "losses")
_NAME = re.compile(r"[^/\0]{1,255}")
_PREFIX = re.compile(r"\d{1,9}-\d{1,18}")
_MAX_SIZE = 1 << 28


@dataclass(frozen=True)
class Journal:
    """A window that is being closed: its recording, beside the present one, and how far each process belongs to it."""

    name: str
    uuid: str
    window: int
    end_ns: int
    gpu_before: int
    turned: Mapping[str, WindowCut]

    def write(self, spool: Path) -> None:
        """Note it in the spool. Raises OSError."""
        processes = {
            prefix: {
                "last": turned.last,
                "over": turned.over,
                "counters": None if turned.control is None else [getattr(turned.control, name) for name in _COUNTERS],
            }
            for prefix, turned in self.turned.items()
        }
        about = {"name": self.name, "uuid": self.uuid, "window": self.window, "end_ns": self.end_ns}
        document = {**about, "gpu_before": self.gpu_before, "processes": processes}
        write_bytes(spool / JOURNAL, json.dumps(document).encode("ascii"))

    @classmethod
    def read(cls, spool: SpoolDirectory) -> Journal | None:
        """The journal of a spool; None if there is none, or one that is none. Raises OSError or FormatError."""
        try:
            document = json.loads(read_regular_file(spool.path / JOURNAL, _MAX_SIZE))
            window, end_ns, gpu_before = (document[name] for name in ("window", "end_ns", "gpu_before"))
            whole = all(type(number) is int for number in (window, end_ns, gpu_before))
            if not whole or not _NAME.fullmatch(document["name"]):
                return None
            turned = {prefix: _turned(spool, prefix, entry) for prefix, entry in document["processes"].items()}
            return cls(document["name"], str(document["uuid"]), window, end_ns, gpu_before, turned)
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def _turned(spool: SpoolDirectory, prefix: str, entry: Mapping[str, Any]) -> WindowCut:
    if not _PREFIX.fullmatch(prefix):  # files of that name are going to be removed
        raise TypeError(prefix)
    control = spool.control(prefix)
    if control is not None and entry["counters"] is not None:
        control = with_counters(control, entry["counters"])
    if type(entry["last"]) is not int or type(entry["over"]) is not bool:
        raise TypeError(prefix)
    return WindowCut(entry["last"], control, entry["over"])


def with_counters(control: ControlFile, counters: list[Any]) -> ControlFile:
    """A control file with other counters. Raises TypeError or ValueError if they are none."""
    *numbers, losses = counters
    if not all(type(number) is int for number in (*numbers, *losses)) or len(losses) != LOSS_COUNTERS:
        raise TypeError("not counters")
    return replace_counters(control, (*numbers, tuple(losses)))


def replace_counters(control: ControlFile, values: tuple[Any, ...]) -> ControlFile:
    """A control file with these values of the fields in ``_COUNTERS``."""
    return control._replace(**dict(zip(_COUNTERS, values, strict=True)))


def go_on(folder: HeldFolder) -> None:
    """Finish a step that was begun and not ended in the spool of a recording.

    Raises OSError or FormatError.
    """
    assert folder.parent is not None
    spool, beside = SpoolDirectory(Path(folder.here, SPOOL)), Path(folder.parent.here, folder.name)
    discard_hidden(beside)
    journal = Journal.read(spool)
    if journal is not None and was_published(beside.with_name(journal.name), journal.uuid):
        settle(spool, journal, os.getpid())
    (spool.path / JOURNAL).unlink(missing_ok=True)


def present_window(spool: SpoolDirectory, window: dict[str, Any] | None) -> dict[str, Any] | None:
    """The manifest's entry for the window in the spool; ``window`` is its entry when it was last written."""
    begun = spool.process_log().window
    if window is None or begun is None:
        return window
    return {**window, "number": begun.first, "start_ns": begun.time_ns}


def was_published(path: Path, uuid: str) -> bool:
    """True if the recording at ``path`` is that of a closed window, and whole."""
    try:
        manifest = Manifest.read(path / MANIFEST)
    except FormatError:
        return False
    return manifest.uuid == uuid and manifest.state == "complete" and not path.is_symlink()


def settle(spool: SpoolDirectory, journal: Journal, command: int) -> None:
    """Put what the next window needs in the place of what belongs to the one that was closed, and end the step.

    ``command`` is the process id of the recording command, or of the one that recovers what it left. What was done
    already is not done again. Raises OSError or FormatError.
    """
    if spool.parts_path.is_symlink():
        raise FormatError("the parts of its spool are a symbolic link")
    listed = {process.prefix: process for process in spool.processes()}
    number = journal.window + 1
    for prefix, turned in journal.turned.items():
        if turned.over:
            remove_process(spool, prefix)
        elif turned.last >= 0 and prefix in listed and turned.control is not None:
            write_carry(listed[prefix], turned.last, number, journal.end_ns, turned.control, spool.parts_path)
            remove_carried(spool, prefix, turned.last, number)
    for sequence in spool.gpu_segments():
        if sequence < journal.gpu_before:
            (spool.path / f"gpu.{sequence:06}.seg").unlink()
    _settle_log(spool, journal, set(listed), command)
    (spool.path / JOURNAL).unlink()


def _settle_log(spool: SpoolDirectory, journal: Journal, prefixes: set[str], command: int) -> None:
    if (log := spool.process_log()).window_ns == journal.end_ns:
        (spool.path / CUT_LOG_NAME).unlink(missing_ok=True)
        return
    over = {prefix for prefix, turned in journal.turned.items() if turned.over}
    going_on = {int(prefix.partition("-")[0]) for prefix in prefixes - over}

    def lives(record: LogRecord) -> bool:
        return record.pid in going_on or was_running_at(record.pid, record.time_ns)

    # What is in the log that is being written stays there: of what stands in both, one counts.
    kept = carried_log(log, command, journal.end_ns, journal.window + 1, lives)
    write_bytes(spool.path / KEPT_LOG_NAME, kept)
    with suppress(FileNotFoundError):
        (spool.path / CUT_LOG_NAME).unlink()


def window_name(directory: Path, number: int) -> str:
    """The name of the recording of a window of the recording in ``directory``."""
    stem, suffix = _parts(directory)
    return f"{stem}.{number:04}{suffix}"


def first_number(directory: Path) -> int:
    """The number of the first window: 1, or the one after those that an earlier run has left."""
    return max(_windows(directory).values(), default=0) + 1


def discard_hidden(directory: Path) -> None:
    """Delete what a recording command that was killed has left of windows with a hidden name."""
    for path in _windows(directory, UNFINISHED):
        discard_window(path)


def _windows(directory: Path, before: str = "") -> dict[Path, int]:
    stem, suffix = _parts(directory)
    name = re.compile(re.escape(before + stem) + r"\.(\d{4,9})" + re.escape(suffix))
    try:
        return {path: int(match[1]) for path in directory.parent.iterdir() if (match := name.fullmatch(path.name))}
    except OSError:
        return {}  # a folder that may be written but not listed: a name that is taken is found out later


def _parts(directory: Path) -> tuple[str, str]:
    return (directory.stem, SUFFIX) if directory.suffix == SUFFIX else (directory.name, "")


def carried_log(log: ProcessLog, pid: int, start_ns: int, number: int, lives: Callable[[LogRecord], bool]) -> bytes:
    """The log with which window ``number`` begins at ``start_ns``; ``pid`` is that of the recording command.

    It has all that was written since, and of what came before the programs that live on. ``lives`` is asked about the
    record of the beginning of one that has not said that it ended.
    """
    begun = {(record.pid, record.time_ns): record for record in log.records if record.event in BEGINNINGS}
    latest: dict[int, LogRecord] = {}
    for record in sorted(log.records, key=lambda record: record.time_ns):
        if record.time_ns <= start_ns:
            if record.event in BEGINNINGS:
                latest[record.pid] = record
            elif record.event is Event.END or _is_told(record, latest.get(record.pid)):
                latest.pop(record.pid, None)
    # A process that has ended since then lived at that moment, whether or not it is found now.
    since_then = {record.pid for record in log.records if record.time_ns > start_ns and record.event not in BEGINNINGS}
    alive = {number: record for number, record in latest.items() if number in since_then or lives(record)}
    kept = [encode_record(Event.WINDOW, pid, 0, start_ns, numbers=(number, -1, -1))]
    for record in log.records:
        since = alive.get(record.pid)
        ours = record.event is Event.FIRST or (since is not None and record.time_ns >= since.time_ns)
        if record.event is not Event.WINDOW and (ours or record.time_ns > start_ns):
            kept.append(_encoded(_with_program(record, begun)))
    return b"".join(kept)


def _is_told(record: LogRecord, begun: LogRecord | None) -> bool:
    """True if a record says that the parent of a process was told of its end."""
    return record.event is Event.REAPED and begun is not None and record.parent_pid == begun.parent_pid


def _with_program(record: LogRecord, begun: dict[tuple[int, int], LogRecord]) -> LogRecord:
    """A FORK with the program of its parent, which may be over and no longer in the log."""
    at: LogRecord | None = record
    visited: set[tuple[int, int]] = set()
    while at is not None and at.event is Event.FORK and not at.arguments and (at.pid, at.time_ns) not in visited:
        visited.add((at.pid, at.time_ns))
        at = begun.get((at.first, at.second))
    if record.event is not Event.FORK or record.arguments or at is None:
        return record
    return replace(record, executable=at.executable, arguments=at.arguments)


def _encoded(record: LogRecord) -> bytes:
    return encode_record(
        record.event,
        record.pid,
        record.parent_pid,
        record.time_ns,
        status=record.status,
        numbers=(record.first, record.second, record.third),
        executable=record.executable.encode("utf-8", "replace"),
        arguments="\0".join(record.arguments).encode("utf-8", "replace"),
    )
