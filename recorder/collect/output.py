"""Where a recording goes: its name and its directory, replacing an old one, room on the disk."""

from __future__ import annotations

import errno
import mmap
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format.atomic import UNFINISHED, unfinished
from tachograph.recorder.problems import Refused, reason

if TYPE_CHECKING:
    from tachograph.format import Manifest

SUFFIX = ".tacho"
SPOOL = "spool"
MANIFEST = "manifest.json"

SEGMENT_SIZE = 1 << 20
ROOM_AT_START = 3 * SEGMENT_SIZE
"""Bytes that must be free: two segments, and the tables that are made of them."""

_PROBED = b"TACHTEST"

# What we leave in the directory of a recording and in its spool. Whatever else is there is not ours. Compiled when
# needed: the program is not kept waiting for that.
_HIDDEN = re.escape(UNFINISHED)
_UNFINISHED = _HIDDEN + r"[\w.-]+"
_OURS = r"manifest\.json|[a-z_]+\.parquet|\.?[\w.-]+\.tmp|" + _UNFINISHED
_OURS_IN_SPOOL = (
    r"\d+-\d+\.(ctl|\d{6,}\.seg)|gpu\.\d{6,}\.seg|arm-error\.txt|probe\.tmp|recorder\.json"
    r"|processes(\.kept|\.cut)?\.log|texts\.\d{6,}\.jsonl|rotation\.json|" + _UNFINISHED
)
_OURS_IN_PARTS = f"({_HIDDEN})?" + r"\d+-\d+\.\d{6,}-\d{6,}(\.\d+)?"
_OURS_IN_PART = r"[a-z_]+\.parquet|definitions\.seg|\.?[\w.-]+\.tmp|" + _UNFINISHED


def default_path(stem: str) -> Path:
    """``STEM-001.tacho`` in the working directory, with the first number after those that are there."""
    taken = re.compile(re.escape(stem) + r"-(\d{3,})\.tacho(\.zip)?")
    try:
        names = os.listdir()
    except OSError as error:
        raise Refused(f"cannot list the working directory: {reason(error)}; use -o") from None
    numbers = [int(match[1]) for name in names if (match := taken.fullmatch(name))]
    return Path(f"{stem}-{max(numbers, default=0) + 1:03}{SUFFIX}")


def claim(path: Path, manifest: Manifest, *, force: bool) -> Path:
    """Make the directory of the recording (mode 0700), its manifest and its spool; the spool's absolute path.

    The manifest is there before the spool is, so that whatever kills us leaves a recording.

    Raises Refused if something is there already (with ``force``: something that is not a finished recording), or if
    the directory cannot be made.
    """
    try:
        _make_way(path, force=force)
        return _fill(path, manifest)
    except OSError as error:
        raise _cannot_write(path, error) from None


def claim_numbered(stem: str, manifest: Manifest) -> tuple[Path, Path]:
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


def _fill(path: Path, manifest: Manifest) -> Path:
    spool = path.absolute() / SPOOL
    try:
        manifest.write(path / MANIFEST)
        make_private(spool)
    except OSError:
        discard(path)
        raise
    return spool


def _cannot_write(path: Path, error: OSError) -> Refused:
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


def make_private(directory: Path) -> None:
    """Make a directory with mode 0700, whatever the umask."""
    directory.mkdir(mode=0o700)
    directory.chmod(0o700)


def _make_way(path: Path, *, force: bool) -> None:
    try:
        make_private(path)
    except FileExistsError:
        if path.is_symlink():
            raise Refused(f"{path} is a symbolic link; name a place for a new recording with -o") from None
        if not path.is_dir():
            raise Refused(f"{path} exists and is not a recording; name another place with -o") from None
        # Its owner could put anything into it later, or in the place of what we have put there.
        if path.stat().st_uid != os.geteuid():
            raise Refused(f"{path} belongs to another user; name another place with -o") from None
        if any(path.iterdir()):
            if not force:
                raise Refused(f"{path} exists; use --force to replace it, or name another place with -o") from None
            remove_recording(path)
            make_private(path)
        path.chmod(0o700)


def remove_recording(path: Path) -> None:
    """Delete a recording, but only if all that is in its directory is ours and it is not being recorded.

    Raises Refused otherwise, before anything is deleted.
    """
    if not (path / MANIFEST).is_file() and not (path / SPOOL).is_dir():
        raise Refused(f"{path} is not a recording, so --force does not replace it; name another place with -o")
    from tachograph.recorder.collect.running import is_being_recorded

    if is_being_recorded(path / SPOOL):
        raise Refused(f"{path} is being recorded at this moment; name another place with -o")
    doomed = _contents(path, _OURS)
    remove(doomed)
    path.rmdir()


def discard_window(path: Path) -> None:
    """Delete what there is of a recording that was not finished and has no name yet, except for what is not ours."""
    try:
        if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.geteuid():
            remove(_contents(path, _OURS))
            path.rmdir()
    except (Refused, OSError):
        return  # the window is then not closed, and the manifest says so


def drop_window(path: Path) -> None:
    """Delete the recording of a window, but not if something in it is not ours. A half of it is never seen."""
    hidden = path.with_name(unfinished(path.name))
    discard_window(hidden)
    try:
        _contents(path, _OURS)
        path.rename(hidden)
    except (Refused, OSError):
        return  # it holds something else now, or is gone
    discard_window(hidden)


def remove_spool(path: Path) -> None:
    """Delete a spool, except for what is not ours in it."""
    try:
        remove(_contents(path, _OURS_IN_SPOOL, missing_ok=True))
        path.rmdir()
    except (Refused, OSError):
        return  # it is no longer needed and does no harm


def remove(paths: list[Path]) -> None:
    """Delete files and empty directories, in this order."""
    for each in paths:
        if each.is_dir() and not each.is_symlink():
            each.rmdir()
        else:
            each.unlink(missing_ok=True)


def _contents(directory: Path, ours: str, *, missing_ok: bool = False) -> list[Path]:
    """All that is below ``directory``, deepest first; Refused if anything there is not ours."""
    if missing_ok and not directory.is_dir():
        return []
    found: list[Path] = []
    for entry in sorted(directory.iterdir()):
        below = _patterns_below(directory, entry)
        if entry.is_dir() and not entry.is_symlink() and below is not None:
            found += _contents(entry, below)
        elif not re.fullmatch(ours, entry.name) or not stat.S_ISREG(entry.lstat().st_mode):
            raise Refused(f"{entry} is not part of a recording, so --force deletes nothing; name another place with -o")
        found.append(entry)
    return found


def _patterns_below(directory: Path, entry: Path) -> str | None:
    if entry.name == SPOOL and directory.name != SPOOL:
        return _OURS_IN_SPOOL
    if entry.name == "parts" and directory.name == SPOOL:
        return _OURS_IN_PARTS
    if directory.name == "parts" and re.fullmatch(_OURS_IN_PARTS, entry.name):
        return _OURS_IN_PART
    return None


def discard(path: Path) -> None:
    """Take back a directory that :func:`claim` made, because nothing was recorded."""
    remove_spool(path / SPOOL)
    try:
        (path / MANIFEST).unlink(missing_ok=True)
        path.rmdir()
    except OSError:
        return  # something is in it, so it stays


def probe(spool: Path) -> None:
    """Refuse if the disk below ``spool`` has no room, or cannot allocate blocks beforehand and map them."""
    file = spool / "probe.tmp"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM_AT_START)
            with mmap.mmap(descriptor, 8) as mapped:
                mapped[:8] = _PROBED
            same = os.pread(descriptor, 8, 0) == _PROBED
        finally:
            os.close(descriptor)
            file.unlink()
    except OSError as error:
        raise _cannot_write(spool.parent, error) from None
    if not same:
        raise Refused(f"the file system of {spool.parent} does not share mappings; use -o with a place on a local disk")
