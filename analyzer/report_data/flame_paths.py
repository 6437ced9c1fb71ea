"""The call paths that flame graphs draw, and which places of the profile they belong to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.tree import NOTHING
from ..samples.accumulate import summed
from ..samples.call_paths import CallPaths, PathTree
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
    """For each node of ``tree`` its place: the innermost Python frame, or a label."""
    of_place: Ids
    """For each place the path place of a stack of which no native path is known."""
    size: int
    """The number of path places."""


def flame_paths(paths: CallPaths, labels: Labels, *, memory: bool) -> FlamePaths:
    """The paths of samples and, if there is memory, those of all Python stacks."""
    calls = paths.calls
    plain = np.array([paths.of_stack(node) for node in range(len(calls))] if memory else [0] * len(calls), np.int64)
    tree = paths.tree()
    inner = np.append(tree.stack, NOTHING)[tree.nearest(tree.stack != NOTHING)]
    root = tree.nearest(tree.label != NOTHING)
    label = np.append(tree.label, 0)[root]
    of_path = np.where(inner != NOTHING, inner, len(calls) + OF_STATE[label])
    of_label = len(tree) + np.arange(len(labels.names), dtype=np.int64)
    return FlamePaths(
        _as_calls(tree, calls, paths.functions),
        paths.functions,
        of_path,
        np.append(plain, of_label),
        len(tree) + len(of_label),
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
            row = summed(shown.of_place, values, shown.size)
        rows.append(row)
    return np.stack(rows) if rows else np.zeros((0, shown.size))


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
