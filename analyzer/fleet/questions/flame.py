"""``fleet flame``: the call tree of all recordings, small branches put together."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.call_tree import NOTHING, Tree
from .selection import Selection

OTHER = "<other>"
"""The node that holds small branches."""

MAX_NODES = 5_000
SMALLEST = 0.0003
"""Nodes of the tree at most, and the smallest part of the whole that has a node of its own."""

MEASURES = ("cpu_s", "wait_s")
_Array = NDArray[np.float64]


def flame(selection: Selection, *, limit: int = MAX_NODES, smallest: float = SMALLEST) -> pd.DataFrame:
    """The call tree by functions, over all recordings; callers come before callees.

    Columns: ``node`` (0, 1 ...), ``parent`` (-1: none), ``name``, ``file``, ``cpu_s`` and ``wait_s`` (of the node
    itself), ``total_cpu_s`` and ``total_wait_s`` (with what it calls), ``recordings`` that have it, ``folded`` (nodes
    that an ``<other>`` stands for; 0 of the rest). Nothing is lost: the sums are those of all recordings.
    """
    nodes = selection.query(
        "stacks",
        "SELECT stack, any_value(parent) AS parent, any_value(depth) AS depth, any_value(name) AS name,"
        " any_value(file) AS file, sum(coalesce(cpu_s, 0)) AS cpu_s, sum(coalesce(wait_s, 0)) AS wait_s,"
        " count(DISTINCT recording) AS recordings FROM t GROUP BY stack ORDER BY depth, cpu_s DESC, wait_s DESC, stack",
    )
    if limit < 1:
        raise FormatError("a flame graph needs at least one box")
    tree = Tree(rows_of_parents(nodes))
    own = nodes[list(MEASURES)].to_numpy(np.float64)
    total = tree.below(own)
    whole = own.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(whole > 0, total / whole, 0.0).max(axis=1, initial=0.0)
    kept = (share >= smallest) & (nodes["name"] != OTHER).to_numpy()
    if int(kept.sum()) > limit:
        # A caller has at least what it calls, and comes first: the largest are a tree.
        order = np.argsort(-np.where(kept, share, -1.0), kind="stable")
        kept[order[limit:]] = False
    return _folded(nodes, tree, own, total, kept)


def rows_of_parents(nodes: pd.DataFrame) -> NDArray[np.int64]:
    """The row of each node's parent, NOTHING where there is none; callers come first."""
    stacks = nodes["stack"].to_numpy()
    if not len(stacks):
        return np.zeros(0, np.int64)
    order = np.argsort(stacks)
    above = nodes["parent"].to_numpy()
    at = np.minimum(np.searchsorted(stacks, above, sorter=order), len(stacks) - 1)
    row = order[at]
    # A parent is nearer to the root: hashes that happen to be equal make no ring.
    depth = nodes["depth"].to_numpy()
    return np.where((stacks[row] == above) & (depth[row] < depth), row, NOTHING)


def _folded(nodes: pd.DataFrame, tree: Tree, own: _Array, total: _Array, kept: NDArray[np.bool_]) -> pd.DataFrame:
    """The tree of the kept nodes; below each, the others are one."""
    number = np.full(len(nodes) + 1, -1, np.int64)
    rows = np.flatnonzero(kept)
    number[rows] = np.arange(len(rows))
    above = number[tree.parent[rows]]
    rest = np.flatnonzero(~kept)
    # What is not kept belongs to the nearest caller that is.
    callers, group = np.unique(number[tree.nearest(kept)[rest]], return_inverse=True)
    sums = np.zeros((len(callers), 2))
    np.add.at(sums, group, own[rest])
    folded = np.bincount(group, minlength=len(callers))
    useful = sums.sum(axis=1) > 0
    callers, sums, folded = callers[useful], sums[useful], folded[useful]
    count = len(rows) + len(callers)
    names, files = nodes["name"].to_numpy(object)[rows], nodes["file"].to_numpy(object)[rows]
    both = np.concatenate([own[rows], sums])
    totals = np.concatenate([total[rows], sums])
    return pd.DataFrame(
        {
            "node": np.arange(count),
            "parent": np.concatenate([above, callers]).astype(np.int64),
            "name": [*names.tolist(), *[OTHER] * len(callers)],
            "file": pd.Series([*files.tolist(), *[None] * len(callers)], dtype=object),
            "cpu_s": both[:, 0],
            "wait_s": both[:, 1],
            "total_cpu_s": totals[:, 0],
            "total_wait_s": totals[:, 1],
            "recordings": pd.array([*nodes["recordings"].to_numpy()[rows].tolist(), *[None] * len(callers)], "Int64"),
            "folded": np.concatenate([np.zeros(len(rows), np.int64), folded]),
        }
    )


def collapsed(tree: pd.DataFrame, measure: str = "cpu_s") -> list[str]:
    """The tree in the format of collapsed stacks: ``main;handle;parse 1200``, in milliseconds."""
    names = [str(name).replace(";", ",").replace("\n", " ") for name in tree["name"]]
    paths: list[str] = []
    for parent, name in zip(tree["parent"].tolist(), names, strict=True):
        paths.append(f"{paths[parent]};{name}" if parent >= 0 else name)
    amounts = (tree[measure] * 1000).round().astype("int64").tolist()
    return [f"{path} {amount}\n" for path, amount in zip(paths, amounts, strict=True) if amount > 0]
