"""Follows lines through an edit of their text.

Lines that occur once in both texts are anchors (Bram Cohen's patience diff): the longest run of them in the same order
divides the texts, and what lies between is divided in the same way. What is left is matched without regard to
indentation, and at last by likeness, so that a line that was edited in place is still the same line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

LIKE = 0.6
"""A line that was edited is followed if this part of its characters is as it was (difflib's ratio)."""

MAX_CELLS = 250_000
"""Without anchors, texts are compared line by line only if the product of their lengths is at most this."""

MAX_LIKENESS = 2_500
"""Likewise for pairs of lines that are compared by likeness."""

NOWHERE = -1

_Gap = tuple[int, int, int, int]
"""First line and the line after the last, in both texts."""


def follow(base: Sequence[str], new: Sequence[str]) -> list[int]:
    """For each line of ``base`` its index in ``new``, NOWHERE if it is gone. The order of lines is kept."""
    found = [NOWHERE] * len(base)
    _match([line.rstrip() for line in base], [line.rstrip() for line in new], (0, len(base), 0, len(new)), found)
    bare_base, bare_new = [line.strip() for line in base], [line.strip() for line in new]
    for gap in list(_gaps(found, len(new))):
        _match(bare_base, bare_new, gap, found)
    for gap in list(_gaps(found, len(new))):
        _match_alike(bare_base, bare_new, gap, found)
    return found


def _gaps(found: list[int], size: int) -> Iterator[_Gap]:
    """What lies between matched lines and has lines on both sides."""
    start, new_start = 0, 0
    for index, target in [*((n, t) for n, t in enumerate(found) if t != NOWHERE), (len(found), size)]:
        if index > start and target > new_start:
            yield start, index, new_start, target
        start, new_start = index + 1, target + 1


def _match(base: list[str], new: list[str], whole: _Gap, found: list[int]) -> None:
    """Matches equal lines of a gap."""
    todo = [whole]
    while todo:
        a, a_end, b, b_end = todo.pop()
        while a < a_end and b < b_end and base[a] == new[b]:
            found[a] = b
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and base[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            found[a_end] = b_end
        if a == a_end or b == b_end:
            continue
        anchors = _anchors(base, new, (a, a_end, b, b_end))
        if not anchors:
            _match_plain(base, new, (a, a_end, b, b_end), found)
            continue
        for own, other in anchors:
            found[own] = other
            todo.append((a, own, b, other))
            a, b = own + 1, other + 1
        todo.append((a, a_end, b, b_end))


def _anchors(base: list[str], new: list[str], gap: _Gap) -> list[tuple[int, int]]:
    """The longest run of lines, in the same order in both, that occur once in each."""
    a, a_end, b, b_end = gap
    once = {line for line, count in Counter(base[a:a_end]).items() if count == 1 and line.strip()}
    counts = Counter(line for line in new[b:b_end] if line in once)
    where = {line: n for n, line in enumerate(new[b:b_end], b) if counts.get(line) == 1}
    pairs = [(n, where[line]) for n, line in enumerate(base[a:a_end], a) if line in where]
    # The longest increasing subsequence, by patience sorting.
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, target) in enumerate(pairs):
        pile = bisect_left(tops, target)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [target]
        ends[pile : pile + 1] = [number]
    run = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _match_plain(base: list[str], new: list[str], gap: _Gap, found: list[int]) -> None:
    """Matches a gap without anchors, as far as it is small."""
    a, a_end, b, b_end = gap
    if (a_end - a) * (b_end - b) > MAX_CELLS:
        return
    matcher = SequenceMatcher(None, base[a:a_end], new[b:b_end], autojunk=False)
    for own, other, size in matcher.get_matching_blocks():
        for step in range(size):
            if base[a + own + step]:
                found[a + own + step] = b + other + step


def _match_alike(base: list[str], new: list[str], gap: _Gap, found: list[int]) -> None:
    """Matches the edited lines of a gap: the pairs, in order, that are most alike in sum."""
    a, a_end, b, b_end = gap
    rows, columns = a_end - a, b_end - b
    if rows * columns > MAX_LIKENESS:
        return
    # best[i][j]: the highest sum of likeness of the first i and the first j lines.
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    alike = [[_likeness(base[a + i], new[b + j]) for j in range(columns)] for i in range(rows)]
    for i in range(rows):
        for j in range(columns):
            best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j], best[i][j] + alike[i][j])
    i, j = rows, columns
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found[a + i] = b + j


def _likeness(one: str, other: str) -> float:
    """How alike two lines are, 0 if not alike enough to be the same one."""
    if not any(map(str.isalnum, one)) or not any(map(str.isalnum, other)):
        return 0.0
    matcher = SequenceMatcher(None, one[:500], other[:500], autojunk=False)
    checks: tuple[Callable[[], float], ...] = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return matcher.ratio() if all(check() >= LIKE for check in checks) else 0.0
