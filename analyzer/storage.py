"""Where the files of a recording lie: a directory, or a zip archive that is unpacked into a temporary one.

Nothing outside of the recording is ever opened: names are matched against a fixed pattern, links are refused, and an
archive cannot claim more room than its size can justify.
"""

from __future__ import annotations

import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from tachograph.format import FormatError

MANIFEST = "manifest.json"

MAX_MEMBERS = 200_000
"""Files in an archive."""

MAX_RATIO = 200
"""Bytes that an archive may unpack to for each of its own."""

ALWAYS_ALLOWED = 1 << 30
"""Bytes that any archive may unpack to: the preallocated tail of a spool segment is all zeros and packs 1000 : 1."""

_WANTED = re.compile(r"manifest\.json|[a-z_]+\.parquet|spool/[\w.-]+(/[\w.-]+){0,2}")


class Storage:
    """The directory that holds a recording's files; a context manager that removes what it unpacked."""

    def __init__(self, directory: Path, size: int, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.directory = directory
        self.size = size
        """Bytes of the recording as the user has it."""
        self._temporary = temporary

    def close(self) -> None:
        """Removes what was unpacked."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_storage(path: Path) -> Storage:
    """Finds the files of the recording at ``path``, a directory or a zip archive of one.

    Errors:
        FormatError: there is nothing, or it is not a recording.
    """
    try:
        if path.is_dir():
            return _open_directory(path)
        if not path.exists():
            raise FormatError(f"{path}: no such recording")
        if not path.is_file():
            raise FormatError(f"{path} is neither a directory nor a file: not a recording")
        if not zipfile.is_zipfile(path):
            raise FormatError(f"{path} is not a recording: neither a .tacho directory nor a zip archive of one")
        return _open_archive(path)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None


def _open_directory(path: Path) -> Storage:
    if not (path / MANIFEST).is_file():
        inner = sorted(path.glob("*.tacho"))
        hint = f"; did you mean {inner[-1]}?" if inner else ""
        raise FormatError(f"{path} is not a recording: it has no {MANIFEST}{hint}")
    size = 0
    for file in path.rglob("*"):
        status = file.lstat()
        if stat.S_ISREG(status.st_mode):
            size += status.st_size
        elif stat.S_ISLNK(status.st_mode) and _WANTED.fullmatch(file.relative_to(path).as_posix()):
            raise FormatError(f"{path}: {file.name} is a symbolic link, which a recording never holds")
    return Storage(path, size)


def _open_archive(path: Path) -> Storage:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            temporary = tempfile.TemporaryDirectory(prefix="tachograph-")
            try:
                for name, member in members.items():
                    _unpack(archive, member, Path(temporary.name) / name)
            except BaseException:
                temporary.cleanup()
                raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise FormatError(f"{path} cannot be unpacked: {error}") from None
    return Storage(Path(temporary.name), path.stat().st_size, temporary)


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The files of the archive that belong to the recording, by their place in it."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MAX_MEMBERS:
        raise FormatError(f"{path} holds {len(entries)} files: too many for a recording")
    for entry in entries:
        parts = PurePosixPath(entry.filename.replace("\\", "/")).parts
        if ".." in parts or entry.filename.startswith(("/", "\\")) or ":" in parts[0]:
            raise FormatError(f"{path} holds a file named {entry.filename!r}, which would leave its folder: refused")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise FormatError(f"{path}: {entry.filename!r} is a symbolic link, which a recording never holds")
    roots = [entry.filename[: -len(MANIFEST)] for entry in entries if PurePosixPath(entry.filename).name == MANIFEST]
    roots = [root for root in roots if root == "" or root.count("/") == 1]
    if len(roots) != 1:
        found = "no manifest.json" if not roots else "more than one manifest.json"
        raise FormatError(f"{path} is not an archive of one recording: it has {found} at its top or one folder below")
    root = roots[0]
    wanted = {
        entry.filename[len(root) :]: entry
        for entry in entries
        if entry.filename.startswith(root) and _WANTED.fullmatch(entry.filename[len(root) :])
    }
    total = sum(entry.file_size for entry in wanted.values())
    if total > max(ALWAYS_ALLOWED, MAX_RATIO * path.stat().st_size):
        raise FormatError(f"{path} would unpack to {total} bytes, absurd for its size: refused")
    if total > shutil.disk_usage(tempfile.gettempdir()).free:
        raise FormatError(f"{path} unpacks to {total} bytes, and {tempfile.gettempdir()} has no room for that")
    return wanted


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    """Copies one member; zipfile itself ends at the size that the member claims."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
