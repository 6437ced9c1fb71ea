"""Matches the functions, classes and lines of two versions of a source text.

A function of the same file and name is the same function, edited or not. One that moved or was renamed is recognised
only where it is certain: its body is the same, and no other without a partner has that body.

``follow`` matches lines. Lines that occur once in both texts are anchors (Bram Cohen's patience diff): the longest run
of them in the same order divides the texts, and the parts in between are divided in the same way. The remaining lines
are matched without regard to indentation, and at last by likeness, so that a line that was edited in place is still the
same line.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

MIN_RENAMED = 200
"""A function of another name is the same only if its syntax tree has at least this size as text: ``return self.x`` is
in many functions."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Place = tuple[int, int]
"""File and line."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A function or class: its qualified name, as code objects have it, and its lines (from 1, both ends included)."""

    name: str
    first_line: int
    last_line: int
    _node: _Definition

    @property
    def bare_name(self) -> str:
        """Its name, without the names of the classes and functions around."""
        return self._node.name

    @cached_property
    def body(self) -> str | None:
        """Its syntax tree as text, without positions, comments and its own name; None if it is too deep."""
        try:
            text = ast.dump(self._node)
        except RecursionError:
            return None
        name = self._node.name
        for field in ("name", "id", "attr"):
            text = text.replace(f"{field}={name!r}", f"{field}=''")
        return text

    @property
    def telling(self) -> bool:
        """True if the body alone identifies the function."""
        return self.body is not None and len(self.body) >= MIN_RENAMED and len(self._node.body) > 1


def definitions(text: str) -> list[Definition] | None:
    """All functions and classes of ``text``, outer ones first; None if this Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Another Python's syntax, or no Python at all.
        return None
    return list(_walk(tree))


def _walk(tree: ast.Module) -> Iterator[Definition]:
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        inside = prefix
        if isinstance(node, _KINDS):
            name = prefix + node.name
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Definition(name, first, node.end_lineno or node.lineno, node)
            inside = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
        todo.extend((child, inside) for child in reversed(list(_statements(node))))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Statements that may hold definitions; expressions cannot, and are not searched."""
    return (
        child
        for child in ast.iter_child_nodes(node)
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
    )


@dataclass(frozen=True, slots=True)
class PlacedDefinition:
    """A definition in a file, by the file's number."""

    file: int
    definition: Definition

    @property
    def name(self) -> tuple[int, str]:
        """Identity of the definition, unless its file defines the name twice."""
        return self.file, self.definition.name


Pairs = dict[PlacedDefinition, PlacedDefinition]
Defined = dict[int, list[Definition]]


def pair_definitions(
    base: Defined, new: Defined, files: dict[int, int], followed: Callable[[int, int], Place | None]
) -> Pairs:
    """The definition of ``new`` for each of ``base`` that has one.

    ``base`` and ``new`` hold the definitions of changed and unpaired files, ``files`` which files are pairs, and
    ``followed`` follows a line.
    """
    left, right = _all(base), _all(new)
    pairs: Pairs = {}
    _by_name(left, right, files, followed, pairs)
    _by_body(_without(left, pairs), _without(right, pairs.values()), pairs)
    _inside_renamed(_without(left, pairs), _without(right, pairs.values()), pairs)
    return pairs


def _all(defined: Defined) -> list[PlacedDefinition]:
    return [PlacedDefinition(file, each) for file, definitions in defined.items() for each in definitions]


def _without(functions: list[PlacedDefinition], taken: Iterable[PlacedDefinition]) -> list[PlacedDefinition]:
    gone = set(taken)
    return [each for each in functions if each not in gone]


def _by_name(
    left: list[PlacedDefinition],
    right: list[PlacedDefinition],
    files: dict[int, int],
    followed: Callable[[int, int], Place | None],
    pairs: Pairs,
) -> None:
    candidates: dict[tuple[int, str], list[PlacedDefinition]] = defaultdict(list)
    for each in right:
        candidates[each.name].append(each)
    times = Counter(each.name for each in left)
    for each in left:
        matches = candidates.get((files.get(each.file, -1), each.definition.name), [])
        if len(matches) == 1 and times[each.name] == 1:
            pairs[each] = matches[0]
            continue
        # Defined more than once (under an if, or as an overload): the one at the same line of the text.
        line = followed(each.file, each.definition.first_line)
        same = [other for other in matches if (other.file, other.definition.first_line) == line]
        if len(same) == 1:
            pairs[each] = same[0]


def _by_body(left: list[PlacedDefinition], right: list[PlacedDefinition], pairs: Pairs) -> None:
    if not left or not right:
        return
    mine, theirs = _by_unique_body(left), _by_unique_body(right)
    for body, each in mine.items():
        other = theirs.get(body)
        if other is None:
            continue
        if each.definition.bare_name == other.definition.bare_name or each.definition.telling:
            pairs[each] = other


def _by_unique_body(candidates: list[PlacedDefinition]) -> dict[str, PlacedDefinition]:
    groups: dict[str, list[PlacedDefinition]] = defaultdict(list)
    for each in candidates:
        if each.definition.body is not None:
            groups[each.definition.body].append(each)
    return {body: functions[0] for body, functions in groups.items() if len(functions) == 1}


def _inside_renamed(left: list[PlacedDefinition], right: list[PlacedDefinition], pairs: Pairs) -> None:
    """Pair the definitions inside renamed functions and classes: they have other qualified names too."""
    names = {each.name: other.name for each, other in pairs.items()}
    candidates = {each.name: each for each in right}
    for each in left:
        outer, dot, own = each.definition.name.rpartition(".")
        while dot and (each.file, outer) not in names:
            outer, dot, more = outer.rpartition(".")
            own = f"{more}.{own}"
        if not dot:
            continue
        file, renamed = names[each.file, outer]
        other = candidates.pop((file, f"{renamed}.{own}"), None)
        if other is not None:
            pairs[each] = other
            names[each.name] = other.name


LIKE = 0.6
"""A line that was edited is followed if this part of its characters is as it was (difflib's ratio)."""

MAX_CELLS = 250_000
"""Without anchors, texts are compared line by line only if the product of their lengths is at most this."""

MAX_LIKENESS = 2_500
"""Likewise for pairs of lines that are compared by likeness."""

NOWHERE = -1

_Gap = tuple[int, int, int, int]
"""First line and the line after the last, in both texts."""


def follow(base: Sequence[str], new: Sequence[str], *, replaced: bool = False) -> list[int]:
    """For each line of ``base`` its index in ``new``, NOWHERE if it is gone. The order of lines is kept.

    ``replaced``: a line in whose place there is one other is that line, however much of it was edited.
    """
    targets = [NOWHERE] * len(base)
    _match([line.rstrip() for line in base], [line.rstrip() for line in new], (0, len(base), 0, len(new)), targets)
    bare_base, bare_new = [line.strip() for line in base], [line.strip() for line in new]
    for gap in list(_gaps(targets, len(new))):
        _match(bare_base, bare_new, gap, targets)
    for gap in list(_gaps(targets, len(new))):
        _match_alike(bare_base, bare_new, gap, targets)
    if replaced:
        for start, end, new_start, new_end in list(_gaps(targets, len(new))):
            if end - start == new_end - new_start == 1 and bare_base[start] and bare_new[new_start]:
                targets[start] = new_start
    return targets


def _gaps(targets: list[int], size: int) -> Iterator[_Gap]:
    """Ranges between matched lines that have lines on both sides."""
    start, new_start = 0, 0
    for index, target in [*((n, t) for n, t in enumerate(targets) if t != NOWHERE), (len(targets), size)]:
        if index > start and target > new_start:
            yield start, index, new_start, target
        start, new_start = index + 1, target + 1


def _match(base: list[str], new: list[str], whole: _Gap, targets: list[int]) -> None:
    """Matches equal lines of a gap."""
    todo = [whole]
    while todo:
        a, a_end, b, b_end = todo.pop()
        while a < a_end and b < b_end and base[a] == new[b]:
            targets[a] = b
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and base[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            targets[a_end] = b_end
        if a == a_end or b == b_end:
            continue
        anchors = _anchors(base, new, (a, a_end, b, b_end))
        if not anchors:
            _match_plain(base, new, (a, a_end, b, b_end), targets)
            continue
        for own, other in anchors:
            targets[own] = other
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


def _match_plain(base: list[str], new: list[str], gap: _Gap, targets: list[int]) -> None:
    """Matches a gap without anchors, as far as it is small."""
    a, a_end, b, b_end = gap
    if (a_end - a) * (b_end - b) > MAX_CELLS:
        return
    matcher = SequenceMatcher(None, base[a:a_end], new[b:b_end], autojunk=False)
    for own, other, size in matcher.get_matching_blocks():
        for step in range(size):
            if base[a + own + step]:
                targets[a + own + step] = b + other + step


def _match_alike(base: list[str], new: list[str], gap: _Gap, targets: list[int]) -> None:
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
            targets[a + i] = b + j


def _likeness(one: str, other: str) -> float:
    """Similarity of two lines, 0 if they are not alike enough to be the same one."""
    if not any(map(str.isalnum, one)) or not any(map(str.isalnum, other)):
        return 0.0
    matcher = SequenceMatcher(None, one[:500], other[:500], autojunk=False)
    checks: tuple[Callable[[], float], ...] = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return matcher.ratio() if all(check() >= LIKE for check in checks) else 0.0
