"""Which rows belong to which process, and which comes after which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Members:
    """The rows of each process, in order; found once for all, because there may be thousands of processes."""

    def __init__(self, process: NDArray[np.integer]) -> None:
        self._order = np.argsort(process, kind="stable")
        self._sorted = process[self._order]

    def of(self, process: int) -> NDArray[np.int64]:
        """The rows of a process."""
        first, last = np.searchsorted(self._sorted, (process, process + 1))
        return self._order[first:last]


def following(process: NDArray[np.integer]) -> NDArray[np.int64]:
    """By row, the next one of its process, -1 for the last."""
    order = np.argsort(process, kind="stable")
    after = np.full(len(process), -1, np.int64)
    same = process[order][1:] == process[order][:-1]
    after[order[:-1][same]] = order[1:][same]
    return after


def previous(process: NDArray[np.int64]) -> NDArray[np.int64]:
    """By row, the previous one of its process, -1 for the first."""
    after = following(process)
    before = np.full(len(process), -1, np.int64)
    known = np.flatnonzero(after >= 0)
    before[after[known]] = known
    return before
