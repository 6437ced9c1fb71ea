"""Finds the program that a name on the command line stands for, as a shell would."""

from __future__ import annotations

import os
import stat
import struct
import sys

from tachograph.recorder.command.support import preload_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

_SANITIZERS = (b"libasan.so", b"libclang_rt.asan")
_RUNTIMES = ("libasan.so", "libtsan.so", "libubsan.so", "liblsan.so", "libhwasan.so", "libclang_rt.")
"""Of sanitizers: they are preloaded into programs that were not built with them."""
_MOST_SCRIPTS = 4
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
    """True if ``path`` is a file that this user may run."""
    try:
        return os.path.isfile(path) and os.access(path, os.X_OK)
    except ValueError:
        return False


def why_left_alone(path: str, environment: Mapping[str, str]) -> str | None:
    """Why a program is started as it is and not recorded; None if it can be.

    The native recorder judges the children of the program in the same way (native/shim/spool/loadable.cpp).
    """
    if preloads_sanitizer(environment) and not is_built_with_sanitizer():
        return "LD_PRELOAD has a sanitizer's runtime, which must be loaded first; it ran as it is"
    if needs_sanitizer_first(path):
        return "it is built with AddressSanitizer, whose runtime must be loaded first; it ran as it is"
    if gets_other_rights(path):
        return (
            "it gets other rights than those of its caller (a set-user-ID bit or capabilities of its file), who may not"
            " look into it; it ran as it is"
        )
    return None


def preloads_sanitizer(environment: Mapping[str, str]) -> bool:
    """True if the loader is told to load a sanitizer's runtime before all other libraries."""
    libraries = environment.get("LD_PRELOAD", "").replace(":", " ").split(" ")
    return any(os.path.basename(library).startswith(_RUNTIMES) for library in libraries)


def is_built_with_sanitizer() -> bool:
    """True if our own library is: then the runtime was preloaded for it."""
    library = preload_library()
    return library is not None and needs_sanitizer_first(library)


def gets_other_rights(path: str) -> bool:
    """True if the kernel gives the program in this file other rights than ours: it runs with AT_SECURE then."""
    user, group = os.getuid(), os.getgid()
    if (os.geteuid(), os.getegid()) != (user, group):
        return True
    set_group = stat.S_ISGID | stat.S_IXGRP
    try:
        path = _program_of(path)
        status = os.stat(path)
        if status.st_mode & stat.S_ISUID and status.st_uid != user:
            return True
        if status.st_mode & set_group == set_group and status.st_gid != group:
            return True
        return user != 0 and bool(os.getxattr(path, "security.capability"))
    except (OSError, ValueError):
        return False  # most files have no such attribute


def _program_of(path: str) -> str:
    """The program that runs a script, by its first line; any other file itself."""
    for _ in range(_MOST_SCRIPTS):
        try:
            with open(path, "rb") as file:
                line = file.readline(256)
        except OSError:
            return path  # a program that may be run, but not read
        words = line[2:].split() if line.startswith(b"#!") else []
        if not words:
            return path
        path = os.fsdecode(words[0])
    return path


def needs_sanitizer_first(path: str) -> bool:
    """True if the program in this ELF file is linked with AddressSanitizer, whose runtime must be loaded first."""
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
    """True if a script that begins with ``head`` names the Python of a virtual environment other than this one.

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
