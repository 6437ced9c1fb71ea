"""Pythons that cannot be recorded, by their executable files: the reason why a process is only listed.

That is looked up where the program ran: a reader of the recording does not have those files.
"""

from __future__ import annotations

import os
import stat

from tachograph.recorder.inprocess.process_filter import join_patterns, passes_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

OLDEST, NEWEST = (3, 11), (3, 15)
"""Versions of CPython that are recorded. The build (cmake/recording_support.py) and noxfile.py read this line."""

_BOOTLOADER = b"MEI\014\013\012\013\016"
"""Where PyInstaller's bootloader finds what was put behind it: near the end of its file."""

_END = 64 << 10


def losses_of(processes: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> dict[str, int]:
    """Counts for the quality ledger of rows of the table ``processes``, of those that were to be recorded."""
    include, exclude = (join_patterns(parameters.get(name, ())) for name in ("include", "exclude"))
    found: dict[str, int] = {}
    why: dict[str, str | None] = {}
    for row in processes:
        executable = row["executable"]
        wanted = parameters.get("children", True) or row["parent"] is None
        if row["recorded"] != "listed" or not executable or not wanted:
            continue
        if executable not in why:
            why[executable] = why_unrecorded(executable)
        if (loss := why[executable]) is not None and passes_filter(include, exclude, (row["command"] or "").split()):
            found[loss] = found.get(loss, 0) + 1
    return found


def why_unrecorded(executable: str) -> str | None:
    """The entry of the quality ledger for processes of an executable file; None if it is none, or may be recorded."""
    version = version_of(executable)
    if version is not None:
        return None if OLDEST <= version <= NEWEST else "pythons_of_other_versions"
    return "applications_frozen" if is_frozen(executable) else None


def version_of(executable: str) -> tuple[int, int] | None:
    """The version of CPython by the name of an executable file, or of what it links to; None if it has none."""
    try:
        names = [os.path.basename(path) for path in (executable, os.path.realpath(executable))]
    except (OSError, ValueError):
        return None
    for name in names:
        major, dot, minor = name.removeprefix("python").partition(".")
        if name.startswith("python") and dot and major.isdecimal() and minor.isdecimal():
            return int(major), int(minor)
    return None


def is_frozen(executable: str) -> bool:
    """True for an application that PyInstaller has made."""
    try:
        descriptor = os.open(executable, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return False
        return _BOOTLOADER in os.pread(descriptor, _END, max(status.st_size - _END, 0))
    except OSError:
        return False
    finally:
        os.close(descriptor)


def words_for(loss: str | None) -> str | None:
    """Why a program was not recorded, in words."""
    if loss == "pythons_of_other_versions":
        supported = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
        return f"its Python is of another version than those that tachograph records (CPython {supported})"
    if loss == "applications_frozen":
        return "it is a frozen application (PyInstaller), into which no recorder is loaded: record it from its sources"
    return None
