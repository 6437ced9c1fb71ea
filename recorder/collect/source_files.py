"""Reads source files, and the members of zip archives that code was imported from, within bounds.

Python imports from zip files, also where a first line for the shell stands before the archive (zipapp, shiv, pex):
``co_filename`` is then the path of the archive, and that of the member behind it. The archive is read here and not by
the program: nothing of it is called for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from tachograph.recorder.collect.regular_files import open_regular

MAX_DIRECTORY = 64 << 20
"""Bytes of the largest list of members of an archive that is read."""

_PYC_HEADER = 16
_MASK = 0xFFFF_FFFF


class UnreadError(Exception):
    """A file that is there was not read; ``loss`` is the entry of the quality ledger that says why."""

    def __init__(self, loss: str) -> None:
        super().__init__(loss)
        self.loss = loss


@dataclass(frozen=True)
class SourceFile:
    """The bytes of a source file, and when it or its archive was changed last (ns since the epoch).

    ``compiled_from_another`` is True if the compiled file beside it was made of a file of another time or size.
    ``identity`` is equal for paths that lead to one file, None for a member of an archive.
    """

    content: bytes
    changed_ns: int = 0
    compiled_from_another: bool = False
    identity: tuple[int | str, ...] | None = None


def read_source(
    path: str, limit: int, not_after_ns: int | None = None, allowed: Callable[[int], bool] = lambda descriptor: True
) -> SourceFile | None:
    """The file, or the member of an archive, at ``path``; None if there is none.

    Errors:
        UnreadError: it has more than ``limit`` bytes, was modified after ``not_after_ns`` (ns since the epoch), or
            ``allowed``, which is given the open file's descriptor, does not let it be read.
    """
    try:
        descriptor = open_regular(path)
    except NotADirectoryError:
        return _read_member(path, limit, not_after_ns, allowed)
    except (OSError, ValueError):
        return None
    if descriptor is None:
        return None
    try:
        status = os.fstat(descriptor)
        _check(descriptor, status, not_after_ns, allowed)
        if status.st_size > limit:
            raise UnreadError("sources_too_large")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
        identity = _identity(descriptor, status)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise UnreadError("sources_too_large")
    changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    return SourceFile(content, changed_ns, _is_compiled_from_another(path, status), identity)


def _identity(descriptor: int, status: os.stat_result) -> tuple[int | str, ...]:
    """Equal for paths to one entry of one folder: those of a symbolic link, of another mount, of another spelling.

    Tools that save space link equal files of different packages: hard links are different files. Their names tell them
    apart then, which are the same by whatever symbolic link they were opened.
    """
    if status.st_nlink == 1:
        return status.st_dev, status.st_ino
    return status.st_dev, status.st_ino, os.readlink(f"/proc/self/fd/{descriptor}")


def _check(descriptor: int, status: os.stat_result, not_after_ns: int | None, allowed: Callable[[int], bool]) -> None:
    if not_after_ns is not None and status.st_mtime_ns > not_after_ns:
        raise UnreadError("sources_changed")
    if not allowed(descriptor):
        raise UnreadError("sources_withheld")


def _read_member(path: str, limit: int, not_after_ns: int | None, allowed: Callable[[int], bool]) -> SourceFile | None:
    archive = os.path.dirname(path)
    while True:
        try:
            descriptor = open_regular(archive)
            break
        except NotADirectoryError:
            archive = os.path.dirname(archive)
        except (OSError, ValueError):
            return None
    if descriptor is None:
        return None
    import zipfile
    import zlib

    try:
        status = os.fstat(descriptor)
        _check(descriptor, status, not_after_ns, allowed)
        with open(descriptor, "rb", closefd=False) as file, zipfile.ZipFile(_Bounded(file)) as members:
            member = members.getinfo(os.path.relpath(path, archive))
            if member.file_size > limit:
                raise UnreadError("sources_too_large")
            with members.open(member) as opened:
                content = opened.read(limit + 1)
    # What an archive is made of may be anything.
    except (OSError, KeyError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError):
        return None
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise UnreadError("sources_too_large")
    return SourceFile(content, max(status.st_mtime_ns, status.st_ctime_ns))


class _Bounded:
    """A file that gives no more than MAX_DIRECTORY bytes at once: the list of members is read in one piece."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.close, self.seekable = file.seek, file.tell, file.close, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Bytes from the present position. Raises ValueError if they are too many."""
        if size > MAX_DIRECTORY:
            raise ValueError(f"{size} bytes")
        return self._file.read(MAX_DIRECTORY if size < 0 else size)


def _is_compiled_from_another(path: str, status: os.stat_result) -> bool:
    """True if the file's compiled form says that it was made of a file of another time or size."""
    from importlib.util import cache_from_source

    try:
        with open(cache_from_source(path), "rb") as file:
            header = file.read(_PYC_HEADER)
    except (OSError, ValueError, NotImplementedError):  # the last: this interpreter writes no compiled files
        return False
    flags, modified, size = (int.from_bytes(header[at : at + 4], "little") for at in (4, 8, 12))
    if len(header) < _PYC_HEADER or flags:
        return False  # it is checked by its hash, or not at all
    return (modified, size) != (int(status.st_mtime) & _MASK, status.st_size & _MASK)
