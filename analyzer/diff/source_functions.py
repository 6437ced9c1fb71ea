"""The functions and classes that sources define, and what became of them: unchanged, edited, moved, renamed.

A function of the same file and name is the same function, edited or not. One that moved or was renamed is recognised
only where it is certain: its body is the same, and no other without a partner has that body.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
        """Its name, without those of what it is in."""
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
        """Whether its body alone tells which function it is."""
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
    """What may hold definitions: expressions cannot, and are not looked into."""
    return (
        child
        for child in ast.iter_child_nodes(node)
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
    )


@dataclass(frozen=True, slots=True)
class Known:
    """A definition in a file, by the file's number."""

    file: int
    definition: Definition

    @property
    def name(self) -> tuple[int, str]:
        """What identifies it, unless its file defines the name twice."""
        return self.file, self.definition.name


Pairs = dict[Known, Known]
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


def _all(defined: Defined) -> list[Known]:
    return [Known(file, each) for file, found in defined.items() for each in found]


def _without(known: list[Known], taken: Iterable[Known]) -> list[Known]:
    gone = set(taken)
    return [each for each in known if each not in gone]


def _by_name(
    left: list[Known],
    right: list[Known],
    files: dict[int, int],
    followed: Callable[[int, int], Place | None],
    pairs: Pairs,
) -> None:
    candidates: dict[tuple[int, str], list[Known]] = defaultdict(list)
    for each in right:
        candidates[each.name].append(each)
    times = Counter(each.name for each in left)
    for each in left:
        found = candidates.get((files.get(each.file, -1), each.definition.name), [])
        if len(found) == 1 and times[each.name] == 1:
            pairs[each] = found[0]
            continue
        # Defined more than once (under an if, or as an overload): the one at the same line of the text.
        line = followed(each.file, each.definition.first_line)
        same = [other for other in found if (other.file, other.definition.first_line) == line]
        if len(same) == 1:
            pairs[each] = same[0]


def _by_body(left: list[Known], right: list[Known], pairs: Pairs) -> None:
    if not left or not right:
        return
    mine, theirs = _by_unique_body(left), _by_unique_body(right)
    for body, each in mine.items():
        other = theirs.get(body)
        if other is None:
            continue
        if each.definition.bare_name == other.definition.bare_name or each.definition.telling:
            pairs[each] = other


def _by_unique_body(known: list[Known]) -> dict[str, Known]:
    groups: dict[str, list[Known]] = defaultdict(list)
    for each in known:
        if each.definition.body is not None:
            groups[each.definition.body].append(each)
    return {body: found[0] for body, found in groups.items() if len(found) == 1}


def _inside_renamed(left: list[Known], right: list[Known], pairs: Pairs) -> None:
    """What is defined in a renamed function or class has another qualified name too."""
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
