"""Deletes recordings, windows and spools, but nothing that is not ours."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tachograph.format.atomic import UNFINISHED, unfinished
from tachograph.recorder.collect.output import MANIFEST, SPOOL
from tachograph.recorder.problems import Refused

# What we leave in the directory of a recording and in its spool. Whatever else is there is not ours.
_HIDDEN = re.escape(UNFINISHED)
_UNFINISHED = _HIDDEN + r"[\w.-]+"
_OURS = r"manifest\.json|[a-z_]+\.parquet|\.?[\w.-]+\.tmp|" + _UNFINISHED
_OURS_IN_SPOOL = (
    r"\d+-\d+\.(ctl|\d{6,}\.seg)|gpu\.\d{6,}\.seg|arm-error\.txt|probe\.tmp|recorder\.json"
    r"|processes(\.kept|\.cut)?\.log|texts\.\d{6,}\.jsonl|rotation\.json|" + _UNFINISHED
)
_OURS_IN_PARTS = f"({_HIDDEN})?" + r"\d+-\d+\.\d{6,}-\d{6,}(\.\d+)?"
_OURS_IN_PART = r"[a-z_]+\.parquet|definitions\.seg|\.?[\w.-]+\.tmp|" + _UNFINISHED


def remove_recording(place: str | os.PathLike[str]) -> None:
    """Delete a recording, but only if all that is in its directory is ours and it is not being recorded.

    Raises Refused otherwise, before anything is deleted.
    """
    path = Path(place)
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


def remove_spool(place: str | os.PathLike[str]) -> None:
    """Delete a spool, except for what is not ours in it."""
    path = Path(place)
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
