"""The tree of tasks that await one another: each place where tasks stood, below the place of those that awaited them.

Made of the pairs (place, awaiter's place) of the censuses. An awaiter has a place as well, awaited by others in turn.
Where tasks at one place were awaited from several, what they await themselves is divided by the time of each: a census
does not say which of two equal tasks awaits which.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..conclusions.awaits import Awaits
from ..recording.call_tree import NOTHING, Branching, CallTree
from ..recording.sources import Sources
from ..recording.text import printable
from .tasks import Steps

MOST = 1_000
"""Nodes of the tree; those of the least time are left out."""

_ROOT = -1


@dataclass(slots=True)
class Awaiting(Branching):
    """Tasks of one root coroutine that wait in one place, and the tasks that they await there. Text is printable."""

    function: str
    """The root coroutine."""
    file: str | None
    """The place: the innermost line in scope, or where the root coroutine stands."""
    line: int | None
    source: str | None
    calls: str | None
    """The coroutine out of scope that this line awaits; None if it awaits a task or a future itself."""
    awaits: str | None
    """The innermost coroutine below that; None where it is the same."""
    await_s: float
    """The time that these tasks stood there, added up."""
    tasks_mean: float | None
    """The mean number of tasks at a time over the window, and the most; None where the window's length is not known."""
    tasks_peak: float
    children: list[Awaiting] = field(default_factory=list)
    """The one with the most time first."""


@dataclass(frozen=True)
class _Place:
    function: int
    file: int
    line: int
    calls: int
    awaits: int


class _Places:
    """The place of each node of the call tree at which a task stood, by number."""

    def __init__(self, tree: CallTree, steps: Steps, in_scope: NDArray[np.bool_]) -> None:
        self._tree = tree
        self._root = steps.root.tolist()
        self._scope = in_scope.tolist()
        self._parent = tree.parent.tolist()
        self._numbers: dict[_Place, int] = {}
        self._of_node: dict[int, int] = {}
        self.all: list[_Place] = []

    def of(self, node: int) -> int:
        """The number of the place of a leaf node; _ROOT for none."""
        if node < 0:
            return _ROOT
        if node not in self._of_node:
            place = self._find(node)
            number = self._of_node[node] = self._numbers.setdefault(place, len(self._numbers))
            if number == len(self.all):
                self.all.append(place)
        return self._of_node[node]

    def _find(self, leaf: int) -> _Place:
        function = self._tree.function
        root = self._root[leaf] if self._root[leaf] >= 0 else leaf
        at, called = leaf, NOTHING
        while not self._scope[at] and at != root and self._parent[at] >= 0:
            at, called = self._parent[at], at
        calls = NOTHING if called == NOTHING else int(function[called])
        awaits = NOTHING if called in (NOTHING, leaf) else int(function[leaf])
        awaits = NOTHING if awaits == calls else awaits
        return _Place(int(function[root]), int(self._tree.file[at]), int(self._tree.line[at]), calls, awaits)


def awaiting_tree(
    awaits: Awaits,
    tree: CallTree,
    steps: Steps,
    in_scope: NDArray[np.bool_],
    sources: Sources,
    wall_s: float | None,
) -> list[Awaiting]:
    """The tasks that none awaits, or whose awaiter is not known, with all that they await; the most time first."""
    places = _Places(tree, steps, in_scope)
    nodes = {node: places.of(node) for node in np.unique(np.concatenate([awaits.stack, awaits.awaiter])).tolist()}
    pairs = np.array(
        [(nodes[a], nodes[b]) for a, b in zip(awaits.stack.tolist(), awaits.awaiter.tolist(), strict=True)], np.int64
    ).reshape(-1, 2)
    keys, pair = np.unique(pairs, axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    time = np.bincount(pair, awaits.await_ns, len(keys)) / 1e9
    most = awaits.most_by(pair, len(keys))
    edges = {(a, b): (float(t), float(m)) for (a, b), t, m in zip(keys.tolist(), time, most, strict=True)}
    return _grow(_without_cycles(edges), places.all, _Texts(tree, sources), wall_s)


_Edges = Mapping[tuple[int, int], tuple[float, float]]
"""Time and the most tasks at a time, by place and the place of the awaiting tasks."""


def _with_awaiters(edges: _Edges) -> _Edges:
    """The edges, and one without time for each awaiter that was never seen to await anything itself."""
    named = {child for child, _ in edges}
    missing = {(parent, _ROOT): (0.0, 0.0) for _, parent in edges if parent != _ROOT and parent not in named}
    return {**edges, **missing}


def _without_cycles(edges: _Edges) -> _Edges:
    """The same times without circles: what would lead back to an awaiter counts as awaited by none."""
    result: dict[tuple[int, int], tuple[float, float]] = {}
    children: dict[int, list[int]] = defaultdict(list)
    whole: dict[int, float] = defaultdict(float)
    for (child, parent), (time, _) in _with_awaiters(edges).items():
        children[parent].append(child)
        whole[child] += time
    done, path = set[int](), set[int]()
    # First all that can be reached from tasks that none awaits, then circles, from where most of the time is.
    for start in [_ROOT, *sorted(whole, key=lambda place: -whole[place])]:
        if start in done:
            continue
        if start != _ROOT:
            result.setdefault((start, _ROOT), (0.0, 0.0))
        waiting = [(start, iter(children[start]))]
        path.add(start)
        done.add(start)
        while waiting:
            parent, rest = waiting[-1]
            child = next(rest, _ROOT)
            if child == _ROOT:
                path.discard(parent)
                waiting.pop()
                continue
            edge = child, _ROOT if child in path else parent
            before, now = result.get(edge, (0.0, 0.0)), edges.get((child, parent), (0.0, 0.0))
            result[edge] = before[0] + now[0], max(before[1], now[1])
            if child not in done:
                done.add(child)
                path.add(child)
                waiting.append((child, iter(children[child])))
    return result


class _Texts:
    """Names and lines of places."""

    def __init__(self, tree: CallTree, sources: Sources) -> None:
        self._tree = tree
        self._sources = sources

    def branch(self, place: _Place, await_s: float, peak: float, wall_s: float | None) -> Awaiting:
        """A node without children."""
        path = None if place.file < 0 else printable(self._tree.paths[place.file], 4096)
        line = None if place.line < 0 else place.line
        source = None if line is None else self._sources.line(place.file, line)
        name = self._name
        return Awaiting(
            name(place.function) or "<unknown code>",
            path,
            line,
            None if source is None else source.strip(),
            name(place.calls),
            name(place.awaits),
            await_s,
            await_s / wall_s if wall_s else None,
            peak,
        )

    def _name(self, function: int) -> str | None:
        return None if function < 0 else printable(self._tree.function_names[function])


def _grow(edges: _Edges, places: list[_Place], texts: _Texts, wall_s: float | None) -> list[Awaiting]:
    """The tree from the edges of an acyclic graph, the largest branches first."""
    children: dict[int, list[int]] = defaultdict(list)
    whole: dict[int, float] = defaultdict(float)
    for (child, parent), (time, _) in edges.items():
        children[parent].append(child)
        whole[child] += time
    roots: list[Awaiting] = []
    waiting: list[tuple[float, int, int, int, float, list[Awaiting]]] = []
    count = 0

    def wait(parent: int, part: float, below: list[Awaiting]) -> None:
        nonlocal count
        for child in children[parent]:
            count += 1
            heapq.heappush(waiting, (-edges[child, parent][0] * part, count, child, parent, part, below))

    wait(_ROOT, 1.0, roots)
    for _ in range(MOST):
        if not waiting:
            break
        negative, _, child, parent, part, below = heapq.heappop(waiting)
        branch = texts.branch(places[child], -negative, edges[child, parent][1], wall_s)
        below.append(branch)
        wait(child, -negative / whole[child] if whole[child] > 0 else part, branch.children)
    return roots
