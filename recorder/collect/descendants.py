"""Notes the first process in the process log, and stops recording in the descendants that live on after it.

A recording ends with its first process. Descendants that live on are asked to stop recording, which is all that they
notice of it. A process that stopped recording before it ended gives the reason in its control file.
"""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format import ControlFile, FormatError, SpoolDirectory
from tachograph.format.spool.layout import SEGMENT_REQUESTED_AT, STOP_REQUESTED_AT, ControlState
from tachograph.format.spool.process_log import LOG_NAME, Event, encode_record
from tachograph.recorder import clock
from tachograph.recorder.collect.memory_files import MemoryFiles

if TYPE_CHECKING:
    from tachograph.format import SpoolDirectory, SpoolProcess


PATIENCE_S = 0.2
"""How long the end of a recording waits for descendants to write what they have."""

GRACE_S = 0.05
"""How much of that they have to end by themselves: many a helper process ends when it sees that its parent has gone."""

POLL_S = 0.005


def note_start(spool: Path, pid: int, start_ns: int, path: str, arguments: Sequence[str]) -> None:
    """Write into the process log which process is the first, since when (monotonic), and what it executes."""
    append(
        spool,
        encode_record(
            Event.FIRST,
            pid,
            os.getpid(),
            start_ns,
            executable=os.fsencode(path),
            arguments=b"\0".join(map(os.fsencode, arguments)),
        ),
    )


def note_end(spool: Path, pid: int, exit_status: int | None, ended_ns: int) -> None:
    """Write into the process log how the first process ended; the time is used if it could not tell one itself."""
    append(spool, encode_record(Event.END, pid, os.getpid(), ended_ns, status=exit_status))


def reaped(pid: int, exit_status: int, told_ns: int, numbers: tuple[int, int, int]) -> bytes:
    """A record of the process log: how a child of the recording command ended, as the kernel told at ``told_ns``.

    ``numbers`` are its CPU time in user mode and in the kernel, ns, and its largest resident set; negative: unknown.
    """
    return encode_record(Event.REAPED, pid, os.getpid(), told_ns, status=exit_status, numbers=numbers)


def stop_recording(spool: SpoolDirectory, memory: MemoryFiles | None = None) -> int:
    """Ask the recorded processes that still live to stop, and wait a little until they have; how many there are."""
    begin = time.monotonic()
    memory = MemoryFiles(spool.path) if memory is None else memory
    memory.copy()
    living = _still_recording(spool, memory, spool.processes())
    living = _wait(spool, memory, living, begin + GRACE_S)
    for process in living:
        with suppress(OSError):  # it has been taken away, or the disk has gone: then nothing is recorded any more
            _ask(spool.path, process.prefix, memory)
    _wait(spool, memory, living, begin + PATIENCE_S)
    return len(living)


def _wait(
    spool: SpoolDirectory, memory: MemoryFiles, processes: list[SpoolProcess], deadline: float
) -> list[SpoolProcess]:
    """Wait until all of them have ended or stopped recording; those that have not at the ``deadline``."""
    while processes := _still_recording(spool, memory, processes):
        if time.monotonic() >= deadline:
            break
        clock.rest(POLL_S)
        memory.copy()
    return processes


def _still_recording(
    spool: SpoolDirectory, memory: MemoryFiles, processes: Iterable[SpoolProcess]
) -> list[SpoolProcess]:
    recording = []
    for process in processes:
        if process.archived:
            continue  # it had ended before
        control = spool.control(process.prefix)
        if control is not None and control.recording and memory.lives(process.prefix, process.pid, control.start_ns):
            recording.append(process)
    return recording


def still_records(spool: Path, pid: int) -> bool:
    """True if process ``pid`` lives, is the program that began to record (no exec), and has not said that it stopped.

    Its control file may not be copied yet, or be copied just now: that says nothing.
    """
    directory = SpoolDirectory(spool)
    try:
        own = [process for process in directory.processes() if process.pid == pid]
        maps = Path(f"/proc/{pid}/maps").read_bytes()
    except (FormatError, OSError):
        return False
    mapped = b"/memfd:tachograph" in maps or os.fsencode(spool) in maps
    controls = [directory.control(process.prefix) for process in own]
    return mapped and not (controls and all(each is not None and not each.recording for each in controls))


def ask_to_turn(spool: Path, prefix: str, segment: int, memory: MemoryFiles) -> None:
    """Ask a process to go on in segment ``segment``, if it is in an earlier one.

    Errors:
        OSError: its control file cannot be written.
    """
    _ask(spool, prefix, memory, segment, SEGMENT_REQUESTED_AT)


def _ask(spool: Path, prefix: str, memory: MemoryFiles, value: int = 1, at: int = STOP_REQUESTED_AT) -> None:
    if memory.tell(prefix, value, at):
        return
    descriptor = os.open(spool / f"{prefix}.ctl", os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, struct.pack("<I", value), at)
    finally:
        os.close(descriptor)


def append(spool: Path, record: bytes) -> None:
    """Append a record to the process log of a spool.

    Errors:
        OSError: there is no room for it, for example.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(spool / LOG_NAME, flags, 0o600)
    try:
        os.write(descriptor, record)
    finally:
        os.close(descriptor)


_WHY = {
    errno.ENOTCONN: "the program closed all its descriptors, and so the connection of 'attach'",
    errno.EPERM: "the program put a seccomp filter on itself, and any call of ours might have been its end",
    errno.EACCES: "permission denied, and no recording command made its files (it may have become another user)",
}


def closed_connection(spool: Path, pid: int) -> bool:
    """True if process ``pid`` stopped recording because it had closed the connection of ``attach``."""
    return any(
        control.pid == pid and control.state == ControlState.STOPPED_EARLY and control.stop_errno == errno.ENOTCONN
        for control in recorded_processes(spool)
    )


def recorded_processes(spool: Path) -> list[ControlFile]:
    """The control files of a spool that can be read."""
    try:
        processes = SpoolDirectory(spool).processes()
    except FormatError:
        return []
    return [process.control for process in processes if process.control is not None]


def why_stopped_early(controls: Sequence[ControlFile]) -> str | None:
    """A sentence about the processes that could not go on recording; None if all could."""
    stopped = [control for control in controls if control.state == ControlState.STOPPED_EARLY]
    if not stopped:
        return None
    first = stopped[0]
    why = _WHY.get(first.stop_errno) or (os.strerror(first.stop_errno).lower() if first.stop_errno else "of an error")
    where = f" in {len(stopped)} of {len(controls)} processes" if len(controls) > 1 else ""
    after = f" after {(first.end_ns - first.start_ns) / 1e9:.1f} s" if first.end_ns else ""
    return f"recording stopped{after}, before the program ended{where}: {why}"
