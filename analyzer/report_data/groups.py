"""Sums over groups of places, for many spans of time, fast: the groups are put in order once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Values = NDArray[np.float64]


class Groups:
    """``member[i]`` is the group (0 .. size - 1) of place i, negative for none."""

    def __init__(self, member: Ids, size: int) -> None:
        self.size = size
        order = np.argsort(member, kind="stable")
        order = order[np.searchsorted(member[order], 0) :]
        self._order = order
        self._present, self._starts = np.unique(member[order], return_index=True)

    def sums(self, values: Values) -> Values:
        """``values`` (measures by places) summed by group: measures by groups."""
        result = np.zeros((len(values), self.size))
        if len(self._order):
            result[:, self._present] = np.add.reduceat(values[:, self._order], self._starts, axis=1)
        return result


def with_below(values: Values, spans: tuple[Ids, Ids]) -> Values:
    """``values`` (measures by nodes) with everything below each node; ``spans`` as in ``CallTree``."""
    start, end = spans
    ordered = np.empty_like(values)
    ordered[:, start] = values
    running = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(ordered, axis=1, out=running[:, 1:])
    return running[:, end] - running[:, start]
