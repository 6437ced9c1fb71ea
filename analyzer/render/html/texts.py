"""Which source text goes into a report: whole files while there is room, else the surroundings of what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from ...recording.sources import Sources

WHOLE_BUDGET = 900_000
"""Characters of files that are shown whole, in the order of their time."""

CONTEXT_BUDGET = 500_000
"""Characters of the surroundings of lines in other files."""

WHOLE_FILE = 250_000
"""A file with more characters is never shown whole."""

WHOLE_LINES = 8_000
"""Nor is one with more lines."""

CONTEXT = 7
"""Lines before and after a line that are shown of files that are not shown whole."""

Piece = tuple[int, list[str]]
"""Number of the first line, and lines."""


@dataclass(frozen=True)
class Texts:
    """By file id, pieces (number of the first line, lines); and what was left out."""

    pieces: dict[int, list[Piece]]
    whole: int
    cut: int
    """Files of which only surroundings are there."""
    missing: int
    """Files of which there was no room for anything."""


def choose_texts(lines: pd.DataFrame, sources: Sources, scale: float = 1.0) -> Texts:
    """The text for the rows of ``Profile.lines``, whose first rows matter most; ``scale`` shrinks the room."""
    whole_left, context_left = WHOLE_BUDGET * scale, CONTEXT_BUDGET * scale
    located = lines[(lines["file_id"] >= 0) & lines["line"].notna()]
    pieces: dict[int, list[Piece]] = {}
    whole = cut = missing = 0
    for file, numbers in located.groupby("file_id", sort=False)["line"]:
        count = sources.count(int(file))
        if not count:
            continue
        if count <= WHOLE_LINES and sources.characters(int(file)) <= min(whole_left, WHOLE_FILE):
            text = _piece(sources, int(file), range(1, count + 1))
            whole_left -= _size([text])
            pieces[int(file)] = [text]
            whole += 1
            continue
        some = [_piece(sources, int(file), run) for run in _runs([int(number) for number in numbers], count)]
        size = _size(some)
        if size > context_left:
            missing += 1
            continue
        context_left -= size
        pieces[int(file)] = some
        cut += 1
    return Texts(pieces, whole, cut, missing)


def joined_texts(first: Texts, more: Iterable[Texts]) -> Texts:
    """Texts of several answers: those of the first, and of the others the files that are not among them yet."""
    pieces = dict(first.pieces)
    for texts in more:
        pieces.update({file: text for file, text in texts.pieces.items() if file not in pieces})
    return replace(first, pieces=pieces)


def _piece(sources: Sources, file: int, numbers: range) -> Piece:
    return numbers.start, [sources.line(file, number) or "" for number in numbers]


def _size(pieces: list[Piece]) -> int:
    return sum(len(line) + 1 for _, lines in pieces for line in lines)


def _runs(numbers: list[int], count: int) -> list[range]:
    """The surroundings of some lines of a file of ``count`` lines, as runs that do not touch."""
    runs: list[range] = []
    for number in sorted(number for number in numbers if number <= count):
        first, last = max(1, number - CONTEXT), min(count, number + CONTEXT)
        if runs and first <= runs[-1].stop:
            runs[-1] = range(runs[-1].start, last + 1)
        else:
            runs.append(range(first, last + 1))
    return runs
