"""Programs in one file (shiv, pex): which of the packages that they unpack into a cache is the program's own.

There it lies beside what it needs, in one ``site-packages`` or with a folder for each wheel. The file itself says what
it runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tachograph.recorder.collect.source_files import UnreadError, read_source
from tachograph.recorder.command.target import is_archive_with_first_line

_DESCRIPTIONS = ("environment.json", "PEX-INFO")
_LARGEST = 4 << 20


def entry_package(command: Sequence[str], directory: Path) -> str | None:
    """The top-level package that such a program runs; None for any other. ``command`` is as it was typed."""
    for argument in command:
        if argument.startswith("-"):
            continue
        path = os.path.join(directory, argument)
        if is_archive_with_first_line(path):
            return next(filter(None, (_described(f"{path}/{name}") for name in _DESCRIPTIONS)), None)
        if not os.path.basename(argument).startswith("python"):
            break  # it is the program, and the rest are its arguments
    return None


def _described(path: str) -> str | None:
    try:
        file = read_source(path, _LARGEST)
        entry = None if file is None else json.loads(file.content)["entry_point"]
    except (UnreadError, ValueError, KeyError, TypeError, RecursionError):
        return None
    package = entry.partition(":")[0].partition(".")[0] if isinstance(entry, str) else ""
    return package if package.isidentifier() else None
