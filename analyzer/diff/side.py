"""The runs of one side, with their files and functions under common numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from .catalogue import SourceFile
from .links import NO_FILE, Direction, FunctionKey, Link
from .run import Run

Key: TypeAlias = tuple[object, ...]
"""What identifies a row of a frame on one side; equal for rows of its runs that are the same place."""


@dataclass(frozen=True)
class Side:
    """One or more runs of one program. ``directions`` lead from the files of each run to ``files``."""

    runs: list[Run]
    files: list[SourceFile]
    functions: set[FunctionKey]
    directions: list[Direction | None]
    differing: list[str]
    """Paths of files whose text is not the same in all runs."""

    @cached_property
    def keys(self) -> list[RunKeys]:
        """For each run what its rows are called here."""
        return [RunKeys(number, direction) for number, direction in enumerate(self.directions)]


@dataclass(frozen=True)
class RunKeys:
    """Names for the rows of one run; what was not followed to the side's files keeps a name of its own."""

    run: int
    direction: Direction | None
    """None: the side's numbers are this run's own."""

    def file(self, file: int) -> int:
        """The side's number of a file."""
        return file if self.direction is None or file == NO_FILE else self.direction.files[file]

    def line(self, file: int, line: int | None, function: str) -> Key:
        """The key of a row of lines; ``function`` names rows without a line."""
        if file == NO_FILE or line is None:
            return (self.file(file), None, function)
        if self.direction is None:
            return (file, line)
        place = self.direction.line(file, line)
        return place if place is not None else ("only", self.run, file, line)

    def function(self, key: FunctionKey) -> Key:
        """The key of a row of functions."""
        if key[0] == NO_FILE or self.direction is None:
            return key
        found = self.direction.function(key)
        return found if found is not None else ("only", self.run, *key)


def make_side(runs: Sequence[Run]) -> Side:
    """Puts the runs of a side under common numbers: those of its first run, and new ones for what is not in it."""
    first = runs[0]
    files, functions = list(first.files), set(first.functions())
    directions: list[Direction | None] = [None]
    differing: dict[str, None] = {}
    for run in runs[1:]:
        own = run.functions()
        link = Link(run.files, files, own, functions)
        direction = link.forward
        differing.update((run.files[file].path, None) for file in [*direction.lines, *direction.blind])
        for number, file in enumerate(run.files):
            if number not in direction.files:
                direction.files[number] = len(files)
                direction.same.add(number)
                files.append(file)
        functions |= {found for key in own if key[0] != NO_FILE and (found := direction.function(key)) is not None}
        directions.append(direction)
    return Side(list(runs), files, functions, directions, list(differing))
