"""Trees as arrays: what lies below each node, and which nodes are outermost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

NOTHING = -1
"""Stands for "none" in every array of ids."""


@dataclass(frozen=True)
class Tree:
    """One entry per node in every array; parents come before their children."""

    parent: NDArray[np.int64]
    """NOTHING at roots."""

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the nodes in depth-first order, and one more than the last number in the tree below each node."""
        # Plain loops over lists: a tree may be as deep as it is large, and then a pass per level would never end.
        parents: list[int] = self.parent.tolist()
        sizes = [1] * len(parents)
        for node in range(len(parents) - 1, -1, -1):
            if parents[node] >= 0:
                sizes[parents[node]] += sizes[node]
        first = [0] * len(parents)
        free = [0] * len(parents)
        roots = 0
        for node, above in enumerate(parents):
            if above < 0:
                first[node] = roots
                roots += sizes[node]
            else:
                first[node] = free[above]
                free[above] += sizes[node]
            free[node] = first[node] + 1
        start = np.array(first, np.int64)
        return start, start + np.array(sizes, np.int64)

    def below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each node the sum of ``values`` (nodes by columns) over the node and everything below it."""
        start, end = self.spans
        ordered = np.empty_like(values)
        ordered[start] = values
        sums = np.zeros((len(values) + 1, values.shape[1]))
        np.cumsum(ordered, axis=0, out=sums[1:])
        return sums[end] - sums[start]

    def outermost(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which nodes have a key that no node above them has: each stack counts once for each key in it."""
        start, end = self.spans
        order = np.lexsort((start, keys))
        order = order[keys[order] != NOTHING]
        # In depth-first order a node lies below an earlier one of the same key if it begins before that one ends.
        # The running maximum is kept apart for each key by an offset that grows with the key.
        _, rank = np.unique(keys[order], return_inverse=True)
        offset = rank * (len(keys) + 1)
        furthest = np.maximum.accumulate(end[order] + offset) if len(order) else np.zeros(0, np.int64)
        before = np.concatenate(([-1], furthest[:-1])) if len(order) else furthest
        result = np.zeros(len(keys), np.bool_)
        result[order] = start[order] + offset >= before
        return result

    def nearest(self, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each node the nearest wanted one among itself and its callers, NOTHING where there is none."""
        end = len(self)
        jump = np.append(np.where(wanted, np.arange(end), self.parent), end)
        jump[jump == NOTHING] = end
        while True:
            further = jump[jump]
            if np.array_equal(further, jump):
                break
            jump = further
        return np.where(jump[:-1] == end, NOTHING, jump[:-1])
