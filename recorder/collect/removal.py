"""Deletes recordings, windows and spools, but nothing that is not ours."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from enum import Enum
from pathlib import Path

from tachograph.format import FormatError, Manifest
from tachograph.format.atomic import UNFINISHED, unfinished
from tachograph.format.spool.directory import PARTS_NAME
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.collect.output import MANIFEST, SPOOL
from tachograph.recorder.problems import Refused

# What we leave in the directory of a recording and in its spool. Whatever else is there is not ours.
_HIDDEN = re.escape(UNFINISHED)
_UNFINISHED = _HIDDEN + r"[\w.-]+"


class Contents(Enum):
    """The names of the files that are ours in a folder of this kind."""

    RECORDING = r"manifest\.json|[a-z_]+\.parquet|\.?[\w.-]+\.tmp|" + _UNFINISHED
    SPOOL = (
        r"\d+-\d+\.(ctl|\d{6,}\.seg)|ended\.tar|gpu\.\d{6,}\.seg|arm-error\.txt|probe\.tmp|recorder\.json"
        r"|processes(\.kept|\.cut)?\.log|texts\.\d{6,}\.jsonl|rotation\.json|" + _UNFINISHED
    )
    PARTS = f"({_HIDDEN})?" + r"\d+-\d+\.\d{6,}-\d{6,}(\.\d+)?"
    PART = r"[a-z_]+\.parquet|definitions\.seg|\.?[\w.-]+\.tmp|" + _UNFINISHED

    def below(self, name: str) -> Contents | None:
        """The kind of a folder of this name in one of this kind; None if it is not ours."""
        if self is Contents.RECORDING and name == SPOOL:
            return Contents.SPOOL
        if self is Contents.SPOOL and name == PARTS_NAME:
            return Contents.PARTS
        if self is Contents.PARTS and re.fullmatch(self.value, name):
            return Contents.PART
        return None


def empty_recording(folder: HeldFolder, path: str) -> None:
    """Delete what is in the directory of a recording, if all of it is ours and it is not being recorded.

    ``path`` is what its user calls it. Raises Refused otherwise, before anything is deleted.
    """
    here = Path(folder.here)
    if not (here / MANIFEST).is_file() and not (here / SPOOL).is_dir():
        raise Refused(f"{path} is not a recording, so --force does not replace it; name another place with -o")
    from tachograph.recorder.collect.running import is_being_recorded

    if is_being_recorded(here / SPOOL):
        raise Refused(f"{path} is being recorded at this moment; name another place with -o")
    _remove_contents(folder, Contents.RECORDING, path)


def remove_recording(folder: HeldFolder) -> None:
    """Delete a recording, if all that is in its directory is ours and it is not being recorded; Refused otherwise."""
    empty_recording(folder, folder.path)
    remove_folder(folder)


def remove_folder(folder: HeldFolder) -> None:
    """Delete an empty folder, unless another one has its name.

    Errors:
        OSError: something is in it, for example.
    """
    assert folder.parent is not None
    if folder.has_its_name():
        os.rmdir(os.path.join(folder.parent.here, folder.name))


def discard_window(place: str | os.PathLike[str]) -> None:
    """Delete what there is of a recording that was not finished and has no name yet, except for what is not ours."""
    try:
        with HeldFolder.open(place) as folder:
            discard_held(folder)
    except OSError:
        return  # there is none, or it is a link


def discard_held(folder: HeldFolder) -> None:
    """Delete the contents of a held folder like ``discard_window``, also if another folder has its name now."""
    try:
        if folder.owner == os.geteuid():
            _remove_contents(folder, Contents.RECORDING, folder.path)
            remove_folder(folder)
    except (Refused, OSError):
        return  # the window is then not closed, and the manifest says so


def drop_window(place: str | os.PathLike[str], uuid: str | None = None) -> None:
    """Delete the recording of a window, but not if something in it is not ours. A half of it is never seen.

    With ``uuid`` only the finished recording that has it is deleted.
    """
    try:
        with HeldFolder.open(place) as folder:
            assert folder.parent is not None
            if uuid is not None and not has_uuid(folder, uuid):
                return
            hidden = os.path.join(folder.parent.here, unfinished(folder.name))
            discard_window(hidden)
            _go_through(folder, Contents.RECORDING, folder.path, delete=False)
            os.rename(os.path.join(folder.parent.here, folder.name), hidden)
            folder.path = os.path.join(folder.parent.path, unfinished(folder.name))
            discard_held(folder)
    except (Refused, OSError):
        return  # it holds something else now, or is gone


def has_uuid(folder: HeldFolder, uuid: str) -> bool:
    """True if a folder is the recording that has this uuid, and finished."""
    try:
        manifest = Manifest.read(os.path.join(folder.here, MANIFEST))
    except FormatError:
        return False
    return manifest.uuid == uuid and manifest.state != "recording"


def remove_spool(place: str | os.PathLike[str]) -> None:
    """Delete a spool, except for what is not ours in it; a link in its place is left as it is."""
    try:
        with HeldFolder.open(place) as folder:
            _remove_contents(folder, Contents.SPOOL, folder.path)
            remove_folder(folder)
    except (Refused, OSError):
        return  # it is no longer needed and does no harm


def remove_part(place: str | os.PathLike[str]) -> None:
    """Delete a part.

    Errors:
        OSError: it cannot be removed, or something is in it that is not ours.
    """
    try:
        with HeldFolder.open(place) as folder:
            _remove_contents(folder, Contents.PART, folder.path)
            remove_folder(folder)
    except Refused as refused:
        raise OSError(errno.ENOTEMPTY, refused.message) from None


def _remove_contents(folder: HeldFolder, contents: Contents, shown: str) -> None:
    """Delete what is in a folder; Refused, before anything is deleted, if something there is not ours."""
    _go_through(folder, contents, shown, delete=False)
    _go_through(folder, contents, shown, delete=True)


def _go_through(folder: HeldFolder, contents: Contents, shown: str, *, delete: bool) -> None:
    """See that all below a folder is ours, or delete it; ``shown`` is what the user calls it."""
    for name in sorted(os.listdir(folder.here)):
        path = os.path.join(folder.here, name)
        below = contents.below(name)
        status = os.lstat(path)
        if below is not None and stat.S_ISDIR(status.st_mode):
            with folder.enter(name) as inner:
                _go_through(inner, below, os.path.join(shown, name), delete=delete)
            if delete:
                os.rmdir(path)
        elif not re.fullmatch(contents.value, name) or not stat.S_ISREG(status.st_mode):
            raise Refused(
                f"{os.path.join(shown, name)} is not part of a recording, so --force deletes nothing;"
                " name another place with -o"
            )
        elif delete:
            with suppress(FileNotFoundError):
                os.unlink(path)
