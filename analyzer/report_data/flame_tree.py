"""The call paths of flame graphs: merged by function, with the smallest subtrees folded together.

Each path place of a flame graph is mapped to a place of the profile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING, CallTree
from ..samples.call_paths import PathFacts, PathTree
from ..samples.native_functions import NativeFunctions
from ..samples.reduction import MEASURES
from .targets import OF_STATE, WEIGHTS, Labels


@dataclass(frozen=True)
class FlamePaths:
    """Call paths as a call tree of their own, whose functions are those of Python and then the native ones.

    *Places* are the nodes of the profile's call tree and then its labels; *path places* are the nodes of ``tree`` and
    then the same labels.
    """

    tree: CallTree
    functions: NativeFunctions
    of_path: Ids
    """For each path place its place: the innermost Python frame, or a label."""

    @property
    def size(self) -> int:
        """The number of path places."""
        return len(self.of_path)

    def places(self, node: Ids, label: Ids) -> Ids:
        """Path places: nodes of ``tree``, and the labels with these numbers where there is none (NOTHING)."""
        return np.where(node == NOTHING, len(self.tree) + label, node)


def flame_paths(facts: PathFacts, labels: Labels) -> FlamePaths:
    """The paths of samples, of memory and of copies."""
    tree, calls = facts.tree, facts.calls
    inner = np.append(tree.stack, NOTHING)[tree.nearest(tree.stack != NOTHING)]
    root = tree.nearest(tree.label != NOTHING)
    label = np.append(tree.label, 0)[root]
    of_path = np.where(inner != NOTHING, inner, len(calls) + OF_STATE[label])
    of_label = len(calls) + np.arange(len(labels.names), dtype=np.int64)
    return FlamePaths(
        _as_calls(tree, calls, facts.functions), facts.functions, np.concatenate([of_path, of_label]).astype(np.int64)
    )


def flame_weights(shown: FlamePaths, facts: PathFacts, labels: Labels) -> NDArray[np.float64]:
    """Sums of the whole question: a row for each measure that was recorded, a column for each path place."""
    rows = []
    for name in WEIGHTS:
        values = labels.sums(name)
        if values is None or not values.any():
            continue
        if name.removesuffix("_s") + "_ns" in MEASURES:
            row = np.zeros(shown.size)
            row[: len(facts.sums)] = facts.sums[:, MEASURES.index(name.removesuffix("_s") + "_ns")]
        else:
            row = held_weights(shown, facts, labels, name, values)
        rows.append(row)
    return np.stack(rows) if rows else np.zeros((0, shown.size))


def held_weights(
    shown: FlamePaths, facts: PathFacts, labels: Labels, name: str, values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bytes of a measure by path place; ``values`` are its bytes by place."""
    row = np.zeros(shown.size)
    row[: len(facts.tree)] = facts.held[name]
    row[len(facts.tree) :] = values[labels.nodes :]
    return row


def _as_calls(tree: PathTree, calls: CallTree, functions: NativeFunctions) -> CallTree:
    """The paths as a call tree. A label's function is ``flame_tree.LABEL`` less its number."""
    function = np.append(calls.function, NOTHING)[tree.stack]
    function = np.where(tree.native != NOTHING, len(calls.function_names) + tree.native, function)
    function = np.where(tree.label != NOTHING, LABEL - OF_STATE[tree.label], function)
    nothing = np.full(len(functions), NOTHING, np.int64)
    return CallTree(
        parent=tree.parent,
        file=np.append(calls.file, NOTHING)[tree.stack],
        function=function,
        line=np.append(calls.line, NOTHING)[tree.stack],
        function_names=[*calls.function_names, *functions.names],
        function_files=np.append(calls.function_files, nothing),
        function_lines=np.append(calls.function_lines, nothing),
        paths=calls.paths,
    )


MAX_NODES = 6_000
"""Nodes that are kept, the folded ones not counted."""

MIN_SHARE = 0.0003
"""Subtrees with a smaller part of every measure are folded: at 1,500 pixels they are less than half of one."""

FOLDED = -2
"""Stands for the function of a node that holds folded subtrees."""

KERNEL = -3
"""Stands for the kernel's part of a node, which pages draw as a box below it."""

LABEL = -10

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Flame:
    """One entry per node in every array; parents (``NOTHING`` at roots) come before their children."""

    parent: Ids
    function: Ids
    """Function as in ``CallTree``, NOTHING for unknown code, FOLDED for subtrees too small to be shown, and
    LABEL - n for the n-th label of what has no stack."""
    place: Ids
    """For each node of the call tree, then for each label, the node that holds it."""
    folded: int
    """Functions' nodes that were folded."""


def build_flame(tree: CallTree, weights: NDArray[np.float64]) -> Flame:
    """Merges the lines of functions and folds what is small.

    ``weights`` has a row for each measure that a graph may be drawn of, and a column for each node and then each
    label.
    """
    merged_parent, merged_function, place = _merge(tree)
    count = len(merged_parent)
    inclusive = np.zeros((len(weights), count))
    for row, values in enumerate(weights):
        inclusive[row] = np.bincount(place, weights=values[: len(tree)], minlength=count)
    for node in range(count - 1, -1, -1):
        above = merged_parent[node]
        if above >= 0:
            inclusive[:, above] += inclusive[:, node]
    whole = weights.sum(axis=1, keepdims=True)
    share = (inclusive / np.where(whole > 0, whole, 1)).max(axis=0) if len(weights) else np.zeros(count)
    threshold = MIN_SHARE
    if int((share >= threshold).sum()) > MAX_NODES:
        threshold = float(np.partition(share, -MAX_NODES)[-MAX_NODES])
    keep = share >= threshold
    return _fold(merged_parent, merged_function, place, keep, weights[:, len(tree) :].sum(axis=0) > 0)


def _merge(tree: CallTree) -> tuple[list[int], list[int], Ids]:
    """Nodes of one parent and one function become one; the import system's own frames join what imports.

    An import is half a dozen frames of machinery for each module; with them modules that import each other are out of
    sight.
    """
    machinery = [path.startswith("<frozen importlib") for path in tree.paths]
    importing = [0 <= file < len(machinery) and machinery[file] for file in tree.function_files]
    parents: list[int] = []
    functions: list[int] = []
    merged: dict[tuple[int, int], int] = {}
    place = [0] * len(tree)
    for node, (parent, function) in enumerate(zip(tree.parent.tolist(), tree.function.tolist(), strict=True)):
        if parent >= 0 and function >= 0 and importing[function]:
            place[node] = place[parent]
            continue
        key = (place[parent] if parent >= 0 else NOTHING, function)
        number = merged.get(key)
        if number is None:
            number = merged[key] = len(parents)
            parents.append(key[0])
            functions.append(function)
        place[node] = number
    return parents, functions, np.array(place, np.int64)


def _fold(
    parents: list[int],
    functions: list[int],
    place: Ids,
    keep: NDArray[np.bool_],
    used_labels: NDArray[np.bool_],
) -> Flame:
    # A node that is kept has kept parents, because sums with what is below only grow towards the root.
    kept_parent: list[int] = []
    kept_function: list[int] = []
    number = [0] * len(parents)
    heaps: dict[int, int] = {}
    folded = 0
    for node, parent in enumerate(parents):
        above = number[parent] if parent >= 0 else NOTHING
        if keep[node]:
            number[node] = len(kept_parent)
            kept_parent.append(above)
            kept_function.append(functions[node])
            continue
        folded += 1
        if parent >= 0 and not keep[parent]:
            number[node] = above
            continue
        if above not in heaps:
            heaps[above] = len(kept_parent)
            kept_parent.append(above)
            kept_function.append(FOLDED)
        number[node] = heaps[above]
    by_label = []
    for label, used in enumerate(used_labels.tolist()):
        by_label.append(len(kept_parent) if used else NOTHING)
        if used:
            kept_parent.append(NOTHING)
            kept_function.append(LABEL - label)
    of_node = np.array(number, np.int64)[place] if len(number) else place
    return Flame(
        np.array(kept_parent, np.int64),
        np.array(kept_function, np.int64),
        np.concatenate([of_node, np.array(by_label, np.int64)]),
        folded,
    )
