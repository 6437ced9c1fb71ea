"""Average consumption per visit of a line (Scalene 2023, section 3.3).

A row of ``memory`` that was written because the footprint grew is charged, with all bytes by which it grew since the
previous such row, to the line that made it cross the threshold. Rows whose frames are still in the same execution of
that line belong to one visit. The average is what the line's rows hold, divided by its visits as far as they were seen.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tachograph.format.enumerations import MemoryEvent

from ...recording.call_tree import CallTree
from ...recording.tree import NOTHING
from ...samples.summary import Placement
from .heap import Heap

Line = tuple[int, int, int]
"""File, line and (where the line is not known) function."""


@dataclass(slots=True)
class Averages:
    """By node that is charged: bytes by which the footprint grew there, and numbers of its visits."""

    grown: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    visits: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def by_row(self, placement: Placement) -> NDArray[np.float64]:
        """Bytes per visit, by row of a frame of lines; NaN where no visit was seen, and for functions and files."""
        grown = np.zeros(placement.rows)
        visits: dict[int, set[int]] = defaultdict(set)
        if placement.kind == "lines":
            for node, size in self.grown.items():
                row = int(placement.node_rows[node])
                grown[row] += size
                visits[row] |= self.visits[node]
        count = np.zeros(placement.rows)
        for row, seen in visits.items():
            count[row] = len(seen)
        return np.where(count > 0, grown / np.maximum(count, 1), np.nan)


def averages(heap: Heap, tree: CallTree, in_scope: NDArray[np.bool_], wanted: NDArray[np.bool_] | None) -> Averages:
    """Bytes and visits of the lines that made the footprint grow in the window."""
    counters, result = heap.counters, Averages()
    charged = tree.nearest(in_scope)
    paths = _Paths(tree)
    grown: dict[int, float] = defaultdict(float)
    previous: dict[int, tuple[list[int], list[int]]] = {}
    net = (counters.since_start(counters.allocated) - counters.freed).sum(axis=1)
    counter = 0
    spans = heap.window.spans
    in_spans = np.ones(len(counters), np.bool_) if spans is None else spans.contains(counters.thread, counters.time_ns)
    for row in range(len(counters)):
        process, thread, stack = int(counters.process[row]), int(counters.thread[row]), int(counters.stack[row])
        grown[process] += float(net[row])
        size = grown[process]
        if counters.event[row] == MemoryEvent.THRESHOLD:
            grown[process] = 0.0
        if thread < 0:
            continue
        if stack < 0:
            previous.pop(thread, None)
            continue
        path = paths.of(stack)
        before_path, before_visits = previous.get(thread, ([], []))
        kept = min(max(int(counters.kept[row]), 0), len(path), len(before_path))
        visits = []
        for depth, node in enumerate(path):
            same = depth < kept and paths.line(before_path[depth]) == paths.line(node)
            kept = kept if same else 0  # a frame under another line is another one
            counter += not same
            visits.append(before_visits[depth] if same else counter)
        previous[thread] = (path, visits)
        node = int(charged[stack])
        inside = heap.start_ns <= counters.time_ns[row] <= heap.end_ns and (wanted is None or wanted[thread])
        inside &= bool(in_spans[row])
        seen = counters.event[row] == MemoryEvent.THRESHOLD and counters.kept[row] >= 0
        if seen and size > 0 and node != NOTHING and inside:
            result.grown[node] += size
            result.visits[node].add(visits[path.index(node)])
    return result


class _Paths:
    """Paths of stacks from the root, remembered."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self._known: dict[int, list[int]] = {}

    def of(self, stack: int) -> list[int]:
        """The nodes from the root to a stack."""
        if stack not in self._known:
            path = [stack]
            while (above := int(self._tree.parent[path[-1]])) != NOTHING:
                path.append(above)
            self._known[stack] = path[::-1]
        return self._known[stack]

    def line(self, node: int) -> Line:
        """What makes two instructions the same line."""
        tree = self._tree
        line = int(tree.line[node])
        return int(tree.file[node]), line, int(tree.function[node]) if line == NOTHING else NOTHING
