"""Who writes into a spool: noted by the recording command, asked before a recording is replaced or recovered.

A process id alone may have been given to another process since; together with the start time from /proc it is unique.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tachograph.format.atomic import read_regular_file
from tachograph.format.errors import FormatError
from tachograph.recorder import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTE = "recorder.json"

MAX_NOTE = 1 << 16
"""Bytes of a note that is read: one from elsewhere may hold anything."""

_MAX_STAT = 4096
"""Bytes of /proc/PID/stat: a name of 64 bytes at most, and some 50 numbers."""

_NO_NOTE = (OSError, FormatError, ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What is raised where there is no note, or one that was not ours."""

NOTE_TOOK_NS, CLOCK_NS = 10_000_000_000, 20_000_000
"""How long it takes at most until a note is in its file, and by how much the clock of files is behind."""


def start_time(pid: int) -> int | None:
    """Start of a living process in clock ticks since boot; None if there is no such process."""
    fields = _stat(pid)
    return None if fields is None or _is_zombie(fields) else int(fields[19])


def is_over(pid: int, time_ns: int) -> bool:
    """True if process ``pid``, which lived at ``time_ns`` (CLOCK_MONOTONIC), is known to have ended.

    One that is hidden from us, or has no number here, may live.
    """
    try:
        os.kill(pid, 0)  # before /proc, which takes longer: of thousands, most are gone
    except ProcessLookupError:
        return True
    except OSError:
        pass
    fields = _stat(pid)
    return fields is not None and (_is_zombie(fields) or _began_ns(int(fields[19])) > time_ns)


def ancestors(pid: int) -> list[int]:
    """The process ids of a process, its parent, and so on; as far as they can be had."""
    pids: list[int] = []
    while pid > 0 and pid not in pids and (fields := _stat(pid)) is not None:
        pids.append(pid)
        pid = int(fields[1])
    return pids


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if there is no such process."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            stat = os.read(descriptor, _MAX_STAT)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    # The name may hold blanks and brackets: fields are counted behind the last bracket.
    return stat.rpartition(b")")[2].decode("ascii", "replace").split() or None


def _is_zombie(fields: list[str]) -> bool:
    """True if it writes no more; the first thread may have ended before the others."""
    return fields[0] in "ZX" and int(fields[17]) <= 1


def was_running_at(pid: int, time_ns: int) -> bool:
    """True if process ``pid`` lives and has lived at ``time_ns`` (CLOCK_MONOTONIC): then its id was not given anew."""
    ticks = start_time(pid)
    return ticks is not None and _began_ns(ticks) <= time_ns


def was_begun_by(pid: int, time_ns: int) -> bool:
    """True if process ``pid``, which may have ended but is not forgotten yet, was there at ``time_ns``."""
    fields = _stat(pid)
    return fields is not None and _began_ns(int(fields[19])) <= time_ns


def _began_ns(ticks: int) -> int:
    """A start time of /proc on CLOCK_MONOTONIC, in ns."""
    asleep_ns = clock.boot_ns() - clock.monotonic_ns()
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK") - asleep_ns


def began_at(pid: int) -> int | None:
    """When process ``pid`` began, in ns since the epoch; None if there is none. Earlier by some ms, not later."""
    ticks = start_time(pid)
    return None if ticks is None else clock.utc_ns() - clock.monotonic_ns() + _began_ns(ticks)


def program_began_at(spool: Path) -> int | None:
    """When the program began that was recorded into ``spool``, in ns since the epoch; None if it was not noted."""
    try:
        note = _read_note(spool)
        start = note["processes"][1][1]
        if note["boot"] == boot_id() != "" and start is not None:
            return clock.utc_ns() - clock.monotonic_ns() + _began_ns(int(start))
        return int(note["time_ns"])
    except (*_NO_NOTE, IndexError):
        return None


def boot_id() -> str:
    """A name for this machine since it was started, or an empty string."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def machine() -> str:
    """A name for this machine that outlives a restart and does not tell its id, or an empty string."""
    try:
        identity = Path("/etc/machine-id").read_bytes().strip()
    except OSError:
        return ""
    import hashlib  # OpenSSL takes 20 ms to load

    return hashlib.sha256(b"tachograph " + identity).hexdigest() if identity else ""


def note_recorder(spool: Path, program: int) -> None:
    """Note in the spool that this process records ``program`` (a process id) into it."""
    pids = (os.getpid(), program)
    processes = [[pid, start_time(pid)] for pid in pids]
    note = {
        "boot": boot_id(),
        "processes": processes,
        "directory": os.fsdecode(Path.cwd()),
        "machine": machine(),
        "inode": spool.stat().st_ino,
        "time_ns": clock.utc_ns(),
    }
    descriptor = os.open(spool / NOTE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        json.dump(note, file)


def _read_note(spool: Path) -> Any:
    return json.loads(read_regular_file(spool / NOTE, MAX_NOTE).decode("ascii"))


def was_made_here(spool: Path) -> bool:
    """True if the recording was made on this machine since it was started: only then are process ids what they were."""
    try:
        return bool(_read_note(spool)["boot"] == boot_id() != "")
    except _NO_NOTE:
        return False


def was_made_here_by_us(spool: Path) -> bool:
    """True if this user made the recording, on this machine and at this place.

    A recording that came from elsewhere may hold a forged note. It cannot tell which inode the directory would have,
    nor when the note would be unpacked: a file's ctime is set by the kernel alone.
    """
    try:
        note = _read_note(spool)
        here = note["boot"] == boot_id() != "" or note["machine"] == machine() != ""
        place, us = spool.stat(), os.geteuid()
        in_time = 0 <= (spool / NOTE).lstat().st_ctime_ns - note["time_ns"] + CLOCK_NS <= NOTE_TOOK_NS
        above = spool.parent.stat()
        ours = {above.st_uid, *(each.lstat().st_uid for each in (spool, *spool.iterdir()))} == {us}
        closed = not (place.st_mode | above.st_mode) & 0o022
        return bool(here and note["inode"] == place.st_ino and in_time and ours and closed)
    except _NO_NOTE:
        return False


def living_processes(spool: Path) -> list[int]:
    """The process ids of the recording command and of its program, as far as they are alive."""
    try:
        note = _read_note(spool)
        if note["boot"] != boot_id():
            return []
        return [int(pid) for pid, start in note["processes"] if start is not None and start_time(int(pid)) == start]
    except _NO_NOTE:
        return []


def working_directory(spool: Path) -> Path:
    """Where the program was started, as far as that was noted; else the present working directory."""
    try:
        return Path(_read_note(spool)["directory"])
    except _NO_NOTE:
        return Path()


def is_being_recorded(spool: Path) -> bool:
    """True if the recording command or the program still lives."""
    return bool(living_processes(spool))
