"""An experiment as a folder: the recordings of both sides, and ``experiment.json`` that says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tachograph.format import FormatError
from tachograph.format.atomic import ReplacingFile

from ...recording.output_file import writing
from ...recording.text import printable
from .sides import Side

MANIFEST = "experiment.json"
VERSION = 1

_MAX_BYTES = 10_000_000
_MAX_RUNS = 10_000


@dataclass(frozen=True)
class Experiment:
    """The recordings of both sides, in the order in which they were made. Those of warm-up are not among them."""

    path: Path
    base: list[Path]
    new: list[Path]


def next_folder() -> Path:
    """A name for a new experiment in the current folder: ``compare-001``, ``compare-002``."""
    numbers = [path.name.removeprefix("compare-") for path in Path().glob("compare-*")]
    last = max((int(number) for number in numbers if number.isascii() and number.isdigit()), default=0)
    return Path(f"compare-{last + 1:03}")


def create(path: Path) -> None:
    """Makes the folder of an experiment.

    Errors:
        FormatError: it exists, or cannot be made.
    """
    with writing(path):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            raise FormatError(f"{printable(str(path), 200)} exists: name another folder with --output") from None


def save(path: Path, sides: tuple[Side, Side], runs: Mapping[str, list[str]], answer: Mapping[str, Any]) -> None:
    """Writes the manifest: ``runs`` are the names of the recordings by side, ``answer`` is what is known.

    Errors:
        FormatError: it cannot be written.
    """
    content = {
        "tachograph": {"document": "experiment", "version": VERSION},
        "sides": {
            side.name: {"command": list(side.command), "revision": side.revision, "recordings": runs[side.name]}
            for side in sides
        },
        "answer": answer,
    }
    with writing(path / MANIFEST), ReplacingFile(path / MANIFEST) as file:
        file.stream.write(json.dumps(content, indent=1).encode())


def is_experiment(path: Path) -> bool:
    """True if a folder is one."""
    return (path / MANIFEST).is_file()


def open_experiment(path: Path) -> Experiment:
    """Reads the manifest of an experiment.

    Errors:
        FormatError: it is not one, or names no recordings of a side.
    """
    shown = printable(str(path / MANIFEST), 200)
    try:
        with open(path / MANIFEST, "rb") as file:
            content = json.loads(file.read(_MAX_BYTES))
        sides = [[_recording(path, name) for name in content["sides"][side]["recordings"]] for side in ("base", "new")]
    except OSError as error:
        raise FormatError(f"cannot read {shown}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"{shown} is not the manifest of an experiment") from None
    if not all(0 < len(side) <= _MAX_RUNS for side in sides):
        raise FormatError(f"{shown} has no pair of runs: it ended before the first one was over")
    return Experiment(path, *sides)


def _recording(folder: Path, name: object) -> Path:
    # A manifest may come from anywhere: it names what lies beside it, and nothing else.
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ValueError("not the name of a recording")
    return folder / name
