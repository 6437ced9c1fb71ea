"""Where a recording goes: its name and its directory, replacing an old one, room on the disk."""

from __future__ import annotations

import errno
import mmap
import os
import stat

from tachograph.recorder.collect.held_folder import hold_parent
from tachograph.recorder.problems import Refused, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.format import Manifest
    from tachograph.recorder.collect.held_folder import HeldFolder

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


def claim(path: StrPath, manifest: Manifest, *, force: bool) -> HeldFolder:
    """Make the directory of the recording (mode 0700), its manifest and its spool; the directory, with its parent.

    The manifest is there before the spool is, so that whatever kills us leaves a recording.

    Raises Refused if something is there already (with ``force``: something that is not a finished recording), or if
    the directory cannot be made.
    """
    path = os.fspath(path)
    try:
        parent, name = hold_parent(path)
        try:
            return _fill(_made_way(parent, name, path, force=force), path, manifest)
        except BaseException:
            parent.close()
            raise
    except OSError as error:
        raise _cannot_write(path, error) from None


def claim_numbered(stem: str, manifest: Manifest) -> tuple[str, HeldFolder]:
    """Like :func:`claim`, for the next free number; the recording's path and its directory."""
    while True:
        path = default_path(stem)
        try:
            parent, name = hold_parent(path)
            return path, _fill(parent.make(name), path, manifest)
        except FileExistsError:
            parent.close()
            continue  # another recording has taken the number at this moment
        except OSError as error:
            raise _cannot_write(path, error) from None


def spool_of(folder: HeldFolder) -> str:
    """The path of a recording's spool by which its processes look for it."""
    return os.path.join(folder.path, SPOOL)


def place_of_spool(folder: HeldFolder) -> str:
    """The identity of the spool that processes get, so that they make files in no other folder."""
    status = os.stat(os.path.join(folder.here, SPOOL))
    return f"{status.st_dev}:{status.st_ino}"


def _fill(folder: HeldFolder, path: str, manifest: Manifest) -> HeldFolder:
    folder.take_parent()
    try:
        if not folder.is_anchored and others_may_replace(folder.path):
            raise Refused(
                f"others may put something in the place of {path} while it is recorded, which cannot be seen without"
                " /proc; name another place with -o"
            )
        manifest.write(os.path.join(folder.here, MANIFEST))
        folder.make(SPOOL).close()
    except (OSError, Refused):
        discard(folder)
        raise
    return folder


def others_may_replace(path: str) -> bool:
    """True if another user, who is not root, may rename what lies at ``path``."""
    above = os.stat(os.path.dirname(path))
    shared = above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    return above.st_uid not in (0, os.geteuid()) or bool(shared)


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


def _made_way(parent: HeldFolder, name: str, path: str, *, force: bool) -> HeldFolder:
    """The directory of the recording, empty and readable by this user only."""
    try:
        return parent.make(name)
    except FileExistsError:
        pass
    try:
        folder = parent.enter(name)
    except NotADirectoryError:
        if os.path.islink(os.path.join(parent.here, name)):
            raise Refused(f"{path} is a symbolic link; name a place for a new recording with -o") from None
        raise Refused(f"{path} exists and is not a recording; name another place with -o") from None
    try:
        # Its owner could put anything into it later, or in the place of what we have put there.
        if folder.owner != os.geteuid():
            raise Refused(f"{path} belongs to another user; name another place with -o")
        if os.listdir(folder.here):
            if not force:
                raise Refused(f"{path} exists; use --force to replace it, or name another place with -o")
            from tachograph.recorder.collect.removal import empty_recording

            empty_recording(folder, path)
        os.chmod(folder.here, 0o700)
    except BaseException:
        folder.close()
        raise
    return folder


def discard(folder: HeldFolder) -> None:
    """Take back a directory that :func:`claim` made, because nothing was recorded; and let it go."""
    from tachograph.recorder.collect.removal import remove_folder, remove_spool

    try:
        remove_spool(os.path.join(folder.here, SPOOL))
        if os.path.lexists(os.path.join(folder.here, MANIFEST)):
            os.unlink(os.path.join(folder.here, MANIFEST))
        remove_folder(folder)
    except OSError:
        return  # something is in it, so it stays
    finally:
        folder.close()


def probe(folder: HeldFolder) -> None:
    """Refuse if a recording's disk has no room, or cannot allocate blocks beforehand and map them."""
    file = os.path.join(folder.here, SPOOL, "probe.tmp")
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
        raise _cannot_write(folder.path, error) from None
    if not same:
        raise Refused(f"the file system of {folder.path} does not share mappings; use -o with a place on a local disk")
