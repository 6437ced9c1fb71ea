"""Functions and lines of both sides in common rows, and what they used by pair, row and side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...report_data.difference import Metric
from ..links import FunctionKey, Link, SourceFile
from .measuring import Measured, Place

Array = NDArray[np.float64]


@dataclass
class SideFunctions:
    """The functions of a side that were met, and its files."""

    files: list[SourceFile]
    numbers: dict[str, int]
    keys: dict[Place, FunctionKey] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Measured) -> SideFunctions:
        """Those of the first run of a side."""
        return cls(list(run.files), {file.path: number for number, file in enumerate(run.files)})

    def add(self, run: Measured) -> bool:
        """Add the functions of a run; True if one of them is new."""
        before = len(self.keys)
        for file in run.files:
            if file.path not in self.numbers:
                self.numbers[file.path] = len(self.files)
                self.files.append(file)
        for used in run.own.values():
            for place in used:
                self.keys.setdefault(place, (self.numbers[place[0]], place[1], place[2]))
        return len(self.keys) > before


class Rows:
    """Places of both sides by row; ``places`` names them as the new side does, where it has them."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.of_base: dict[Place, int] = {}
        self.of_new: dict[Place, int] = {}

    @classmethod
    def of_functions(cls, base: SideFunctions, new: SideFunctions, link: Link) -> Rows:
        """The functions of both sides, those that are linked in one row."""
        rows = cls()
        at = {key: place for place, key in new.keys.items()}
        for place, key in base.keys.items():
            followed = link.forward.function(key)
            other = None if followed is None else at.get(followed)
            rows._add(other or place, place, other)
        rows._add_rest(new.keys)
        return rows

    def lines_of(self, row: int, pairs: Sequence[tuple[Measured, Measured]], sides: Sides, metric: Metric) -> Rows:
        """The lines of one of these functions; an edited line is one row if it can be followed."""
        used: list[dict[Place, None]] = []
        for side, functions in enumerate((self.of_base, self.of_new)):
            inside = {place[:2] for place, number in functions.items() if number == row}
            used.append(
                {line: None for pair in pairs for line in pair[side].lines.get(metric, {}) if line[:2] in inside}
            )
        base, new, link = sides
        at = {(new.numbers[line[0]], line[2]): line for line in used[1]}
        rows = Rows()
        for line in used[0]:
            followed = link.forward.line(base.numbers[line[0]], line[2])
            other = None if followed is None else at.get(followed)
            rows._add(other or line, line, other)
        rows._add_rest(used[1])
        return rows

    def amounts(self, used: Sequence[tuple[Mapping[Place, float], Mapping[Place, float]]]) -> Array:
        """The amounts: pairs by rows by sides. Places of other rows are left out."""
        amounts = np.zeros((len(used), len(self.places), 2))
        for number, pair in enumerate(used):
            for side, (of_run, rows) in enumerate(zip(pair, (self.of_base, self.of_new), strict=True)):
                for place, amount in of_run.items():
                    if (row := rows.get(place)) is not None:
                        amounts[number, row, side] += amount
        return amounts

    def _add(self, shown: Place, base: Place | None, new: Place | None) -> None:
        if base is not None:
            self.of_base[base] = len(self.places)
        if new is not None:
            self.of_new[new] = len(self.places)
        self.places.append(shown)

    def _add_rest(self, new: Iterable[Place]) -> None:
        """Rows for what only the new side has."""
        for place in new:
            if place not in self.of_new:
                self._add(place, None, place)


Sides = tuple[SideFunctions, SideFunctions, Link]
"""The functions of both sides, and how they are linked."""
