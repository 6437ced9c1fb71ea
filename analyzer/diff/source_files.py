"""The source files of a recording, and which file of another recording each of them is.

Files may be in other checkouts, or moved, or renamed. A pair is made only if it is certain: each of the two is the
other's only best partner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from ..recording.opened import Recording
from ..recording.sources import shown_paths
from ..recording.text import printable

MAX_TEXT = 4_000_000
"""Characters of a text beyond which its lines are not followed."""

SIMILAR = 0.5
"""A file of another name is the same file if this part of the shorter one's distinctive lines is in both."""

LIKE_NAMED = 0.3
"""The same for a file of the same name in another folder, and of all its lines."""

MIN_COMMON_LINES = 5

MAX_SEARCHED = 20_000_000
"""Characters of text that are searched for similar files at most."""

_SHORT_LINE = 12
"""Lines shorter than this (``return None``, ``else:``) say nothing about which file they are from."""

_Score = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file as a recording holds it; ``sha256`` is None if it was not read."""

    path: str
    sha256: str | None
    _texts: pa.ChunkedArray = field(repr=False)
    _row: int = 0
    _lines: list[list[str] | None] = field(default_factory=list, repr=False)
    is_cell: bool = False
    """Whether it is a cell of a notebook; its path is its number then, which is another one in each run of the cell."""
    cell_id: str | None = None

    @cached_property
    def name(self) -> str:
        """Its path, fit to be shown."""
        return printable(self.path, 4096)

    @property
    def text(self) -> str | None:
        """Its text, None if the recording does not hold it (or it is absurdly long)."""
        text: str | None = self._texts[self._row].as_py()
        return text if text is not None and len(text) <= MAX_TEXT else None

    @property
    def lines(self) -> list[str] | None:
        """Its lines, without their ends, numbered as Python numbers them; None without a text."""
        if not self._lines:
            text = self.text
            # Not splitlines(): Python's own line numbers know only these line ends.
            split = None if text is None else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self._lines.append(split)
        return self._lines[0]

    @property
    def has_text(self) -> bool:
        """Whether the recording holds the text."""
        return bool(self._texts[self._row].is_valid)

    def same_text(self, other: SourceFile) -> bool | None:
        """Whether both have the same text, None if it is unknown."""
        if self.sha256 is not None and other.sha256 is not None:
            return self.sha256 == other.sha256
        if self.has_text and other.has_text:
            return self.text == other.text
        return None


def catalogue(recording: Recording) -> list[SourceFile]:
    """The files of a recording, by file id; they stay readable after it is closed."""
    files = recording.table("files")
    digests, cells, ids = (files.column(name).to_pylist() for name in ("sha256", "cell", "cell_id"))
    return [
        SourceFile(path, digest, files.column("source"), row, is_cell=cell is not None, cell_id=cell_id)
        for row, (path, digest, cell, cell_id) in enumerate(zip(shown_paths(files), digests, cells, ids, strict=True))
    ]


def pair_files(base: Sequence[SourceFile], new: Sequence[SourceFile], *, edited: bool = True) -> dict[int, int]:
    """The file of ``new`` for each file of ``base`` that has one, by number.

    Where nothing was ``edited`` between the two, a file that is in one of them only has no other that resembles it.
    """
    pairs: dict[int, int] = {}
    _pair_by(lambda file: None if file.is_cell else file.path, base, new, pairs)
    _pair_by(lambda file: file.cell_id, base, new, pairs)
    _Pairs(base, new, pairs).find(edited=edited)
    return pairs


def _pair_by(
    key: Callable[[SourceFile], str | None],
    base: Sequence[SourceFile],
    new: Sequence[SourceFile],
    pairs: dict[int, int],
) -> None:
    """Adds pairs of those that have the same key; where several of one side have it, the last of them."""
    own, other = ({key(file): number for number, file in enumerate(side)} for side in (base, new))
    pairs |= {number: other[told] for told, number in own.items() if told is not None and told in other}


class _Pairs:
    """Pairs in the making, the surest first."""

    def __init__(self, base: Sequence[SourceFile], new: Sequence[SourceFile], pairs: dict[int, int]) -> None:
        self._base, self._new, self._pairs = base, new, pairs

    def find(self, *, edited: bool) -> None:
        """Adds what is certain."""
        self._by_path_end(lambda common: common >= 2)
        self._by_text()
        self._by_path_end(lambda common: common == 1)
        if edited:
            self._by_similarity()

    def _left(self) -> tuple[list[int], list[int]]:
        """Files without a partner that have a real path."""
        taken = set(self._pairs.values())
        base = [n for n, file in enumerate(self._base) if n not in self._pairs and not _nameless(file.path)]
        return base, [n for n, file in enumerate(self._new) if n not in taken and not _nameless(file.path)]

    def _by_path_end(self, wanted: Callable[[int], bool]) -> None:
        """The same place in another checkout: the longest common end of the paths."""
        base, new = self._left()
        names: dict[str, list[int]] = defaultdict(list)
        for number in new:
            names[_parts(self._new[number].path)[-1]].append(number)
        scores: dict[tuple[int, int], _Score] = {}
        for one in base:
            parts = _parts(self._base[one].path)
            for other in names.get(parts[-1], ()):
                common = _common_end(parts, _parts(self._new[other].path))
                if wanted(common) and (common > 1 or self._plausible(one, other)):
                    scores[one, other] = (common,)
        self._take_best(scores)

    def _plausible(self, one: int, other: int) -> bool:
        """Whether files that have only their name in common may be the same."""
        base, new = self._base[one], self._new[other]
        if (same := base.same_text(new)) is True:
            return True
        if base.lines is None or new.lines is None:
            return same is None
        mine, theirs = ({line.strip() for line in file.lines or ()} - {""} for file in (base, new))
        return bool(mine and theirs) and len(mine & theirs) >= LIKE_NAMED * min(len(mine), len(theirs))

    def _by_text(self) -> None:
        base, new = self._left()
        scores: dict[tuple[int, int], _Score] = {}
        digests: dict[str, list[int]] = defaultdict(list)
        for number in new:
            if digest := self._new[number].sha256:
                digests[digest].append(number)
        for one in base:
            for other in digests.get(self._base[one].sha256 or "", ()):
                scores[one, other] = (1,)
        self._take_best(scores)

    def _by_similarity(self) -> None:
        base, new = self._left()
        files = [self._base[n] for n in base] + [self._new[n] for n in new]
        if not base or not new or sum(len(file.text or "") for file in files) > MAX_SEARCHED:
            return
        where: dict[str, list[int]] = defaultdict(list)
        lines_of = {number: _distinctive(self._new[number]) for number in new}
        for number, lines in lines_of.items():
            for line in lines:
                where[line].append(number)
        scores: dict[tuple[int, int], _Score] = {}
        for one in base:
            lines = _distinctive(self._base[one])
            shared = Counter(number for line in lines for number in where.get(line, ()))
            for other in shared:
                score = _similarity(lines, lines_of[other])
                if score >= SIMILAR:
                    scores[one, other] = (score,)
        self._take_best(scores)

    def _take_best(self, scores: dict[tuple[int, int], _Score]) -> None:
        """Pairs each two that are each other's only best."""
        best_of_base, best_of_new = _only_best(scores, 0), _only_best(scores, 1)
        for one, other in best_of_base.items():
            if best_of_new.get(other) == one:
                self._pairs[one] = other


def _only_best(scores: dict[tuple[int, int], _Score], side: int) -> dict[int, int]:
    found: dict[int, tuple[_Score, int | None]] = {}
    for pair, score in scores.items():
        own, other = pair[side], pair[1 - side]
        known = found.get(own)
        if known is None or score > known[0]:
            found[own] = (score, other)
        elif score == known[0]:
            found[own] = (score, None)
    return {own: other for own, (_, other) in found.items() if other is not None}


def _nameless(path: str) -> bool:
    return path.startswith("<")


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _common_end(one: list[str], other: list[str]) -> int:
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs or not mine:
            break
        count += 1
    return count


def _distinctive(file: SourceFile) -> set[str]:
    """Lines that say which file they are from."""
    return {stripped for line in file.lines or () if len(stripped := line.strip()) >= _SHORT_LINE}


def _similarity(one: set[str], other: set[str]) -> float:
    shared = len(one & other)
    return shared / min(len(one), len(other)) if shared >= MIN_COMMON_LINES else 0.0
