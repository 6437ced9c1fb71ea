"""The rows of native functions in a diff: by name and library, wherever the library is installed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..recording.native_names import short_library
from ..report_data.difference import Status
from .places import Rows
from .runs import Run, Side


class _Found(NamedTuple):
    """What one side says of a function."""

    module: str | None
    build: str | None
    source: str | None
    line: int | None

    def place(self) -> dict[str, str | int | None]:
        """Where it is, under the names of the document's columns."""
        return {"library": self.module, "file": self.source, "line": self.line}


_UNSEEN = _Found(None, None, None, None)


def native_places(base: Side, new: Side) -> Rows:
    """The rows of native functions of two sides.

    A function is the same if its name is, and the short name of its library: packages are installed at other places,
    and wheels have a hash in the names of the libraries that they bring. What has no time on one side is *same* if that
    side has the same build of the library, and else *vanished* or *new*: of native code no source tells.
    """
    rows = Rows()
    seen: list[dict[tuple[str, str], _Found]] = []
    for side, found in ((base, rows.of_base), (new, rows.of_new)):
        known: dict[tuple[str, str], _Found] = {}
        for run in side.runs:
            numbers = []
            for key, place in _functions(run):
                numbers.append(rows.number(key))
                # A run may have been recorded where the library had no debug information.
                first = known.setdefault(key, place)
                if first.source is None:
                    known[key] = first._replace(source=place.source, line=place.line)
            found.append(np.array(numbers, np.int64))
        seen.append(known)
    builds = [{build for run in side.runs for build in run.builds.values() if build} for side in (base, new)]
    for key in rows.without_place():
        places = [known.get(key) for known in seen]
        told = [place for place in reversed(places) if place is not None]
        source = next((place for place in told if place.source is not None), told[0])
        rows.add(
            {
                "status": _status(places, builds),
                "function": key[0],
                **source.place(),
                "library": told[0].module,
                **{
                    f"{end}_{name}": value
                    for end, place in zip(("base", "new"), places, strict=True)
                    for name, value in (place or _UNSEEN).place().items()
                },
            }
        )
    return rows


def _functions(run: Run) -> list[tuple[tuple[str, str], _Found]]:
    """By row of the frame of native functions its key and its place."""
    functions = run.profile.paths.functions
    rows = []
    for number in run.profile.frames.native_functions["native"].tolist():
        path = functions.paths[number]
        build = None if path is None else run.builds.get(path)
        place = _Found(functions.libraries[number], build, functions.sources[number], functions.lines[number])
        rows.append(((functions.names[number], short_library(path)), place))
    return rows


def _status(places: list[_Found | None], builds: list[set[str]]) -> Status:
    one, other = places
    if one is not None and other is not None:
        return Status.SAME
    if one is not None:
        return Status.SAME if one.build in builds[1] else Status.VANISHED
    return Status.SAME if other is not None and other.build in builds[0] else Status.NEW
