"""Finds the program that a name on the command line stands for, as a shell would."""

from __future__ import annotations

import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_SANITIZERS = (b"libasan.so", b"libclang_rt.asan")
_LOAD, _DYNAMIC, _NEEDED, _STRING_TABLE = 1, 2, 1, 5
"""Types of an ELF file's segments and of the entries of its dynamic section."""
_MOST_ENTRIES = 4096


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


def needs_sanitizer_first(path: str) -> bool:
    """Whether the program in this ELF file is linked with AddressSanitizer, whose runtime must be loaded first.

    No library can be preloaded into it. The native recorder looks at the children of the program in the same way.
    """
    try:
        with open(path, "rb") as file:
            return any(name.startswith(_SANITIZERS) for name in _needed(file))
    except (OSError, struct.error, ValueError):
        return False


def _needed(file: BinaryIO) -> Iterator[bytes]:
    head = file.read(64)
    if head[:5] != b"\x7fELF\x02":
        return
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    file.seek(offset)
    table = file.read(size * count)
    segments = [struct.unpack_from("<IIQQQQ", table, size * index) for index in range(count)]
    loads = [(start, length, at) for kind, _, at, start, _, length in segments if kind == _LOAD]
    for kind, _, at, _, _, length in segments:
        if kind != _DYNAMIC:
            continue
        file.seek(at)
        data = file.read(min(length, 16 * _MOST_ENTRIES))
        entries = list(struct.iter_unpack("<QQ", data[: len(data) // 16 * 16]))
        strings = next((value for tag, value in entries if tag == _STRING_TABLE), 0)
        place = next((at + strings - start for start, length, at in loads if start <= strings < start + length), None)
        for tag, value in entries:
            if tag == _NEEDED and place is not None:
                file.seek(place + value)
                yield file.read(32)


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
