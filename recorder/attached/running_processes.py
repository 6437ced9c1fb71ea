"""Running processes as /proc describes them: Python or not, whose, where, and whether they can be entered."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder.problems import Refused

_PYTHON = re.compile(r"(?:lib)?python(\d+)\.(\d+)")
_LIBRARY = re.compile(rb"/libpython(\d+)\.(\d+)[^/\n]*$", re.MULTILINE)
_RECORDS = b"/memfd:tachograph"
"""Of the mappings of a process that is being recorded."""

_NAMESPACES = ("mnt", "net", "pid", "user")
_ELF_32 = b"\x7fELF\x01"
MOST_MAPS = 64 << 20
"""Bytes of a list of mappings that are read."""


class Process(NamedTuple):
    """A process: ``version`` is CPython's (None: not Python, or not told), ``elsewhere`` one of another container.

    ``stopped`` by a signal; ``tracer`` is the process that traces it, 0 for none.
    """

    pid: int
    user: int
    executable: str
    command: tuple[str, ...]
    version: tuple[int, int] | None
    bits: int
    recorded: bool
    elsewhere: bool
    stopped: bool = False
    tracer: int = 0

    @property
    def title(self) -> str:
        """A name for people: that of the script or module, else of the executable."""
        names = [part for part in self.command[1:] if not part.startswith("-")]
        if "-c" in self.command[1:]:
            return "python-c"
        return os.path.basename(names[0] if names else self.executable) or "program"

    @property
    def is_python(self) -> bool:
        """True if it runs Python, as far as the names of its files tell."""
        return self.version is not None or os.path.basename(self.executable).startswith("python")


def look(pid: int) -> Process:
    """The process ``pid``. Raises Refused if there is none."""
    folder = Path("/proc", str(pid))
    try:
        status = dict(line.split(":", 1) for line in _text(folder / "status").splitlines() if ":" in line)
        process, user = int(status["Tgid"]), int(status["Uid"].split()[1])
    except (OSError, KeyError, ValueError):
        raise Refused(f"there is no process {pid}") from None
    if process != pid:
        raise Refused(f"{pid} is a thread of process {process}: name that")
    if status["State"].split()[0] in "ZX":
        raise Refused(f"process {pid} has ended")
    maps, executable = b"", ""
    with suppress(OSError):
        executable = os.readlink(folder / "exe").removesuffix(" (deleted)")
        with (folder / "maps").open("rb") as file:
            maps = file.read(MOST_MAPS)
    command: tuple[str, ...] = ()
    with suppress(OSError):
        command = tuple(_text(folder / "cmdline").rstrip("\0").split("\0"))
    return Process(
        pid,
        user,
        executable,
        command,
        _version(executable, maps),
        _bits(folder / "exe"),
        _RECORDS in maps,
        _is_elsewhere(folder),
        status["State"].split()[0] == "T",
        int(status.get("TracerPid", "0")),
    )


def python_processes() -> list[Process]:
    """All processes that run Python and may be seen, but for this one."""
    processes = []
    for name in sorted(filter(str.isdecimal, os.listdir("/proc")), key=int):
        with suppress(Refused):  # it has ended meanwhile
            process = look(int(name))
            if process.is_python and any(process.command) and process.pid != os.getpid():
                processes.append(process)
    return processes


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _version(executable: str, maps: bytes) -> tuple[int, int] | None:
    library = _LIBRARY.search(maps)
    if library is not None:
        return int(library[1]), int(library[2])
    name = _PYTHON.match(os.path.basename(executable))
    return None if name is None else (int(name[1]), int(name[2]))


def _bits(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return 32 if file.read(5) == _ELF_32 else 64
    except OSError:
        return 64


def _is_elsewhere(folder: Path) -> bool:
    for name in _NAMESPACES:
        with suppress(OSError):  # another user's are not shown
            if os.readlink(folder / "ns" / name) != os.readlink(f"/proc/self/ns/{name}"):
                return True
    return False


def user_name(number: int) -> str:
    """The name of a user, or the number if it has none here."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
