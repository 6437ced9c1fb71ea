"""Finds the file of one recording in another: other checkouts, moved and renamed files.

A pair is made only if it is certain: each of the two is the other's only best partner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from .catalogue import SourceFile

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


def pair_files(base: Sequence[SourceFile], new: Sequence[SourceFile]) -> dict[int, int]:
    """The file of ``new`` for each file of ``base`` that has one, by number."""
    pairs: dict[int, int] = {}
    by_path = {file.path: number for number, file in enumerate(new)}
    for number, file in enumerate(base):
        if file.path in by_path:
            pairs[number] = by_path[file.path]
    _Pairs(base, new, pairs).find()
    return pairs


class _Pairs:
    """Pairs in the making, the surest first."""

    def __init__(self, base: Sequence[SourceFile], new: Sequence[SourceFile], pairs: dict[int, int]) -> None:
        self._base, self._new, self._pairs = base, new, pairs

    def find(self) -> None:
        """Adds what is certain."""
        self._by_path_end(lambda common: common >= 2)
        self._by_text()
        self._by_path_end(lambda common: common == 1)
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
