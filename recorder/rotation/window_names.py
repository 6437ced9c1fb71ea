"""The names of the recordings of windows: ``NAME.0007.tacho`` beside ``NAME.tacho``."""

from __future__ import annotations

import re
from pathlib import Path

from tachograph.format.atomic import UNFINISHED
from tachograph.recorder.collect.output import SUFFIX
from tachograph.recorder.collect.removal import discard_window


def window_name(directory: Path, number: int) -> str:
    """The name of the recording of a window of the recording in ``directory``."""
    stem, suffix = _parts(directory)
    return f"{stem}.{number:04}{suffix}"


def first_number(directory: Path) -> int:
    """The number of the first window: 1, or the one after those that an earlier run has left."""
    return max(_windows(directory).values(), default=0) + 1


def discard_hidden(directory: Path) -> None:
    """Delete what a recording command that was killed has left of windows with a hidden name."""
    for path in _windows(directory, UNFINISHED):
        discard_window(path)


def _windows(directory: Path, before: str = "") -> dict[Path, int]:
    stem, suffix = _parts(directory)
    name = re.compile(re.escape(before + stem) + r"\.(\d{4,9})" + re.escape(suffix))
    try:
        return {path: int(match[1]) for path in directory.parent.iterdir() if (match := name.fullmatch(path.name))}
    except OSError:
        return {}  # a folder that may be written but not listed: a name that is taken is found out later


def _parts(directory: Path) -> tuple[str, str]:
    return (directory.stem, SUFFIX) if directory.suffix == SUFFIX else (directory.name, "")
