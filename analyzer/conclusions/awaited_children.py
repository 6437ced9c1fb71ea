"""Waits of an event loop in which tasks stand at lines that may await child processes.

A loop with nothing to do waits for events, whatever its tasks await. The censuses of suspended tasks say where those
stand meanwhile. A task is for a child where its coroutines are those of a library's child processes, and at a pipe of
one where its line reads ``stdout`` or ``stderr``. A future that the program awaits itself may be of a pool of
processes, of threads, or of anything else: that is for `parent_waits` to judge. Sleep, locks, queues, sockets and what
awaits other tasks are none of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING, CallTree
from ..samples.summary import Scope
from .awaits import Awaits

MOST_LINES = 8
"""Lines of a process that are looked at: those where tasks stand longest."""

NOT_FOR_CHILD, FUTURE, STREAM, CHILD = range(4)
"""Kinds of lines: no child, a future that may be one's, a stream that may be one's pipe, and certainly a child."""

_CHILDREN = (
    "asyncio/subprocess.py",
    "asyncio/base_subprocess.py",
    "trio/_subprocess.py",
    "anyio/to_process.py",
    "anyio/_core/_subprocesses.py",
)
"""Ends of the files of what awaits child processes."""
_STREAMS = ("asyncio/streams.py",)
_FUTURES = ("asyncio/tasks.py",)
"""Here ``wait``, ``wait_for`` and others wait for futures, and ``sleep`` for none."""
_SLEEP = "sleep"

_Ids = NDArray[np.int64]
_Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LoopWaits:
    """Parts of the waits of one loop in which tasks stood at one line; all arrays have one length, sorted by time."""

    node: int
    """Where most of these tasks stood; NOTHING for the waits in which none stood at such a line."""
    kind: int
    start_ns: _Ids
    end_ns: _Ids
    wait: _Ids
    """Numbers of the waits that the parts are of."""
    alone: _Mask
    """True where no task stood at another such line."""


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a process that may await children: a representative node and a kind for each."""

    node: list[int]
    kind: list[int]
    of_node: _Ids
    """The line of each node of the tree, NOTHING for most."""


def loop_waits(awaits: Awaits, process: int, tree: CallTree, start_ns: _Ids, end_ns: _Ids) -> Iterator[LoopWaits]:
    """The parts of a process's waits for events, sorted and without overlaps, by the line that may await a child.

    The last ones are those in which no task stood at such a line, if there are any lines.
    """
    mine = np.flatnonzero(awaits.process == process)
    lines = _lines(awaits, mine, tree)
    if not lines.node or not len(start_ns):
        return
    census, place = np.unique(awaits.census[mine], return_inverse=True)
    first = mine[np.unique(place.reshape(-1), return_index=True)[1]]
    stands = np.zeros((len(lines.node), len(census) + 1), np.bool_)  # the last one is that of no census
    at = lines.of_node[awaits.stack[mine]]
    stands[at[at >= 0], place.reshape(-1)[at >= 0]] = True
    wait, start, end, during = _cut(start_ns, end_ns, awaits.from_ns[first], awaits.until_ns[first])
    others = stands.sum(axis=0)
    for number, (node, kind) in enumerate(zip(lines.node, lines.kind, strict=True)):
        rows = stands[number, during]
        yield LoopWaits(node, kind, start[rows], end[rows], wait[rows], others[during[rows]] == 1)
    rows = others[during] == 0
    yield LoopWaits(NOTHING, NOT_FOR_CHILD, start[rows], end[rows], wait[rows], np.ones(int(rows.sum()), np.bool_))


def _cut(start_ns: _Ids, end_ns: _Ids, since_ns: _Ids, until_ns: _Ids) -> tuple[_Ids, _Ids, _Ids, _Ids]:
    """The parts of waits in the time of each census: the wait, start, end, and the census (-1: in that of none).

    Neither waits nor the times of censuses overlap; both are sorted.
    """
    edges = np.sort(np.concatenate((start_ns, end_ns, since_ns, until_ns)))
    edges = edges[np.append(True, edges[1:] > edges[:-1])]
    start, end = edges[:-1], edges[1:]
    wait = np.searchsorted(start_ns, start, "right") - 1
    inside = (wait >= 0) & (start < end_ns[np.maximum(wait, 0)])
    wait, start, end = wait[inside], start[inside], end[inside]
    during = np.searchsorted(since_ns, start, "right") - 1
    during = np.where((during >= 0) & (start < until_ns[np.maximum(during, 0)]), during, -1)
    return wait, start, end, during


def _lines(awaits: Awaits, mine: _Ids, tree: CallTree) -> _Lines:
    """The lines at which the tasks of a process stood longest, of those that may await children."""
    scope = Scope()
    own = np.array([scope.includes(path) for path in tree.paths] + [False], np.bool_)[tree.file]
    awaiters = set(awaits.awaiter[mine].tolist())
    stacks, place = np.unique(awaits.stack[mine], return_inverse=True)
    time = np.bincount(place.reshape(-1), awaits.await_ns[mine], len(stacks))
    groups: dict[tuple[int, int, int], list[tuple[float, int]]] = {}
    for stack, amount in zip(stacks.tolist(), time.tolist(), strict=True):
        kind, at = _kind(stack, tree, own)
        # Where a task awaits others it awaits no future of its own, but a child's output is read by tasks, too.
        if own[at] and (kind == CHILD or (kind != NOT_FOR_CHILD and stack not in awaiters)):
            groups.setdefault((kind, int(tree.file[at]), int(tree.line[at])), []).append((amount, stack))
    longest = sorted(groups.items(), key=lambda item: -sum(amount for amount, _ in item[1]))[:MOST_LINES]
    of_node = np.full(len(tree), NOTHING, np.int64)
    for number, (_, members) in enumerate(longest):
        of_node[[stack for _, stack in members]] = number
    return _Lines([max(members)[1] for _, members in longest], [key[0] for key, _ in longest], of_node)


def _kind(leaf: int, tree: CallTree, own: _Mask) -> tuple[int, int]:
    """The kind of line for a task that stands at a leaf, and the program's own node nearest to it, else the root."""
    kind, node = (FUTURE if own[leaf] else NOT_FOR_CHILD), leaf
    while True:
        if not own[node] and tree.file[node] >= 0:
            path = tree.paths[tree.file[node]].replace("\\", "/")
            if path.endswith(_CHILDREN):
                kind = CHILD
            elif node == leaf and path.endswith(_STREAMS):
                kind = STREAM
            elif node == leaf and path.endswith(_FUTURES) and tree.function_names[tree.function[node]] != _SLEEP:
                kind = FUTURE
        above = int(tree.parent[node])
        if own[node] or above < 0:
            return kind, node
        node = above
