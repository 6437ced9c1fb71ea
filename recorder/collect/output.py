"""Where a recording goes: its name and its directory, replacing an old one, room on the disk."""

from __future__ import annotations

import errno
import mmap
import os

from tachograph.recorder.problems import Refused, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.format import Manifest

    StrPath = str | os.PathLike[str]

SUFFIX = ".tacho"
SPOOL = "spool"
MANIFEST = "manifest.json"

SEGMENT_SIZE = 1 << 20
ROOM_AT_START = 3 * SEGMENT_SIZE
"""Bytes that must be free: two segments, and the tables that are made of them."""

_PROBED = b"TACHTEST"


def default_path(stem: str) -> str:
    """``STEM-001.tacho`` in the working directory, with the first number after those that are there."""
    try:
        names = os.listdir()
    except OSError as error:
        raise Refused(f"cannot list the working directory: {reason(error)}; use -o") from None
    numbers = [number for name in names if (number := _number(name, stem)) is not None]
    return f"{stem}-{max(numbers, default=0) + 1:03}{SUFFIX}"


def _number(name: str, stem: str) -> int | None:
    """The number in ``STEM-001.tacho`` or ``STEM-001.tacho.zip``; None of any other name."""
    digits = name.removeprefix(f"{stem}-").removesuffix(".zip").removesuffix(SUFFIX)
    whole = name in (f"{stem}-{digits}{SUFFIX}", f"{stem}-{digits}{SUFFIX}.zip")
    return int(digits) if whole and len(digits) >= 3 and digits.isascii() and digits.isdecimal() else None


def claim(path: StrPath, manifest: Manifest, *, force: bool) -> str:
    """Make the directory of the recording (mode 0700), its manifest and its spool; the spool's absolute path.

    The manifest is there before the spool is, so that whatever kills us leaves a recording.

    Raises Refused if something is there already (with ``force``: something that is not a finished recording), or if
    the directory cannot be made.
    """
    path = os.fspath(path)
    try:
        _make_way(path, force=force)
        return _fill(path, manifest)
    except OSError as error:
        raise _cannot_write(path, error) from None


def claim_numbered(stem: str, manifest: Manifest) -> tuple[str, str]:
    """Like :func:`claim`, for the next free number; the recording's path and its spool's."""
    while True:
        path = default_path(stem)
        try:
            make_private(path)
            return path, _fill(path, manifest)
        except FileExistsError:
            continue  # another recording has taken the number at this moment
        except OSError as error:
            raise _cannot_write(path, error) from None


def _fill(path: str, manifest: Manifest) -> str:
    spool = os.path.join(os.getcwd(), path, SPOOL)
    try:
        manifest.write(os.path.join(path, MANIFEST))
        make_private(spool)
    except OSError:
        discard(path)
        raise
    return spool


def _cannot_write(path: str, error: OSError) -> Refused:
    room = ROOM_AT_START >> 20
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refused(
            f"the disk of {path} is full: recording needs {room} MB at the start; name another place with -o"
        )
    if error.errno == errno.EFBIG:
        return Refused(f"files of {room} MB may not be written here (ulimit -f), and recording needs them")
    if error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV, errno.ENOSYS):
        return Refused(
            f"the file system of {path} has no fallocate or no shared mappings; use -o with a place on a local disk"
        )
    return Refused(f"cannot write the recording {path}: {reason(error)}; say where to put it with -o")


def make_private(directory: StrPath) -> None:
    """Make a directory with mode 0700, whatever the umask."""
    os.mkdir(directory, mode=0o700)
    os.chmod(directory, 0o700)


def _make_way(path: str, *, force: bool) -> None:
    try:
        make_private(path)
    except FileExistsError:
        if os.path.islink(path):
            raise Refused(f"{path} is a symbolic link; name a place for a new recording with -o") from None
        if not os.path.isdir(path):
            raise Refused(f"{path} exists and is not a recording; name another place with -o") from None
        # Its owner could put anything into it later, or in the place of what we have put there.
        if os.stat(path).st_uid != os.geteuid():
            raise Refused(f"{path} belongs to another user; name another place with -o") from None
        if os.listdir(path):
            if not force:
                raise Refused(f"{path} exists; use --force to replace it, or name another place with -o") from None
            from tachograph.recorder.collect.removal import remove_recording

            remove_recording(path)
            make_private(path)
        os.chmod(path, 0o700)


def discard(path: StrPath) -> None:
    """Take back a directory that :func:`claim` made, because nothing was recorded."""
    from tachograph.recorder.collect.removal import remove_spool

    remove_spool(os.path.join(path, SPOOL))
    try:
        if os.path.lexists(os.path.join(path, MANIFEST)):
            os.unlink(os.path.join(path, MANIFEST))
        os.rmdir(path)
    except OSError:
        return  # something is in it, so it stays


def probe(spool: StrPath) -> None:
    """Refuse if the disk below ``spool`` has no room, or cannot allocate blocks beforehand and map them."""
    file = os.path.join(spool, "probe.tmp")
    folder = os.path.dirname(os.fspath(spool))
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM_AT_START)
            with mmap.mmap(descriptor, 8) as mapped:
                mapped[:8] = _PROBED
            same = os.pread(descriptor, 8, 0) == _PROBED
        finally:
            os.close(descriptor)
            os.unlink(file)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    if not same:
        raise Refused(f"the file system of {folder} does not share mappings; use -o with a place on a local disk")
