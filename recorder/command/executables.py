"""Finds the program that a name on the command line stands for, as a shell would."""

from __future__ import annotations

import os
import sys


def find_command(name: str, search: str | None) -> str | None:
    """Path of the executable file that ``name`` stands for; None if there is none.

    ``search`` is the value of PATH. As everywhere, a name with a slash is a path and is not searched for. This is
    ``shutil.which``, whose module takes longer to import than all that is done before the program starts.
    """
    if "/" in name:
        return name if is_executable(name) else None
    if not name or "\0" in name:
        return None
    folders = (os.defpath if search is None else search).split(os.pathsep)
    return next((path for folder in folders if is_executable(path := os.path.join(folder, name))), None)


def is_executable(path: str) -> bool:
    """Whether ``path`` is a file that this user may run."""
    try:
        return os.path.isfile(path) and os.access(path, os.X_OK)
    except ValueError:
        return False


def belongs_elsewhere(head: bytes) -> bool:
    """Whether a script that begins with ``head`` names the Python of a virtual environment other than this one.

    Such a script (``.venv/bin/gunicorn``) needs the packages that are installed there.
    """
    first_line = head.partition(b"\n")[0]
    if not first_line.startswith(b"#!/"):
        return False
    words = first_line[2:].split()
    folder, name = os.path.split(os.fsdecode(words[0]) if words else "")
    if not name.startswith("python") or _same(folder, os.path.dirname(sys.executable)):
        return False
    return os.path.isfile(os.path.join(os.path.dirname(folder), "pyvenv.cfg"))


def _same(folder: str, other: str) -> bool:
    try:
        return os.path.samefile(folder, other)
    except (OSError, ValueError):
        return False
