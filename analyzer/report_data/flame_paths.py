"""The call paths that flame graphs draw, and which places of the profile they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.tree import NOTHING
from ..samples.call_paths import PathTree
from ..samples.measures import MEASURES
from ..samples.native_functions import NativeFunctions
from ..samples.path_sums import PathFacts
from .flame import LABEL
from .labels import OF_STATE, WEIGHTS, Labels

Ids = NDArray[np.int64]


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
    """By measure that was recorded, the sums of the whole question by path place."""
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
    """By path place the bytes of a measure that has these ``values`` by place."""
    row = np.zeros(shown.size)
    row[: len(facts.tree)] = facts.held[name]
    row[len(facts.tree) :] = values[labels.nodes :]
    return row


def _as_calls(tree: PathTree, calls: CallTree, functions: NativeFunctions) -> CallTree:
    """The paths as a call tree. A label's function is ``flame.LABEL`` less its number."""
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
