"""Where ranks meet: waiting by function, with what the function calls, and what belongs to a function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...recording.tree import NOTHING, Tree
from ...samples.accumulate import summed
from .flame import rows_of_parents
from .selection import Selection

_Array = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Waiting:
    """Waiting of all ranks (rows) in each function (columns), with what it calls, in seconds.

    ``depth`` is how far from the root each function is; ``tree`` is the call tree, with each node's function and time.
    """

    names: NDArray[np.object_]
    files: NDArray[np.object_]
    depth: _Array
    seconds: _Array
    tree: Tree
    function: _Ids
    spent: _Array

    def inside(self, meeting: int) -> set[tuple[str, str | None]]:
        """Names and files of the functions that spend most of their time in calls by this one, and its own."""
        below = self.tree.nearest(self.function == meeting) != NOTHING
        of_all = np.bincount(self.function, self.spent, len(self.names))
        of_it = np.bincount(self.function[below], self.spent[below], len(self.names))
        mine = np.flatnonzero((of_it > 0.5 * of_all) | (np.arange(len(self.names)) == meeting))
        return {(self.names[each], self.files[each]) for each in mine.tolist()}


def waiting(selection: Selection) -> Waiting:
    """Waiting of the recordings of a selection, one row each."""
    rows = selection.query(
        "stacks",
        "SELECT stack, parent, depth, name, file, recording, coalesce(wait_s, 0) AS wait_s, coalesce(cpu_s, 0) AS cpu_s"
        " FROM t WHERE name <> '<other>' ORDER BY depth, stack, recording",
    )
    tree = rows.drop_duplicates("stack", keep="first").reset_index(drop=True)
    node_of = pd.Series(np.arange(len(tree)), tree["stack"].to_numpy())
    rank_of = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    own = np.zeros((len(selection), len(tree)))
    node = node_of[rows["stack"].to_numpy()].to_numpy()
    np.add.at(own, (rank_of[rows["recording"].to_numpy()].to_numpy(), node), rows["wait_s"].to_numpy())
    calls, depth = Tree(rows_of_parents(tree)), tree["depth"].to_numpy()
    keys = pd.MultiIndex.from_arrays([tree["name"], tree["file"].fillna("")])
    function, distinct = pd.factorize(keys)
    total = calls.below(own.T)
    seconds = np.zeros((len(distinct), len(selection)))
    outermost = calls.outermost(np.asarray(function))
    np.add.at(seconds, function[outermost], total[outermost])
    spent = summed(node, (rows["wait_s"] + rows["cpu_s"]).to_numpy(np.float64), len(tree))
    files = np.array([file or None for _, file in distinct], object)
    weight = own.sum(axis=0) + 1e-9
    mean = np.bincount(function, depth * weight, len(distinct)) / np.bincount(function, weight, len(distinct))
    names = np.array([name for name, _ in distinct], object)
    return Waiting(names, files, mean, seconds.T, calls, np.asarray(function), spent)


TIE = 0.95
"""Of functions that wait nearly as unevenly as the most uneven one does, the innermost is where ranks meet."""


def find_meeting(found: Waiting, wall_s: float, least: float) -> int | None:
    """The function in which waiting is most uneven: where the difference of the median and the least is largest.

    At least ``least`` of the time of all is spent there, all ranks wait there, or all but the late one. The latter
    counts only where it is twice as uneven: a rank may have its own part of a collective.
    """
    own = found.seconds
    if not own.size:
        return None
    much = own.sum(axis=0) >= least * wall_s
    spread = np.median(own, axis=0) - own.min(axis=0)
    missing = (own <= 0).sum(axis=0)
    all_wait, nearly = (np.where((missing <= few) & much, spread, -1.0) for few in (0, 1))
    uneven = all_wait if all_wait.max() >= 0.5 * nearly.max() else nearly
    best = float(uneven.max())
    if best <= 0:
        return None
    near = np.flatnonzero(uneven >= TIE * best)
    return int(near[np.lexsort((-uneven[near], -found.depth[near]))[0]])
