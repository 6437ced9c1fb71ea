"""Call paths of sites within the scope: what tells one use of a shared helper from another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...recording.call_tree import CallTree
from ...recording.text import printable
from ...recording.tree import NOTHING

_Ids = NDArray[np.int64]


class SitePaths:
    """Numbers call paths: nodes of equal paths (the same lines, in scope, from the root) have the same number."""

    def __init__(self, tree: CallTree, in_scope: NDArray[np.bool_]) -> None:
        self._tree = tree
        self._nearest = tree.nearest(in_scope)
        self._of_node: dict[int, int] = {}
        self._numbers: dict[tuple[int, int, int, int], int] = {}
        self._steps: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._steps)

    def numbers(self, nodes: _Ids) -> _Ids:
        """The path of each node; NOTHING for those without a caller in scope."""
        found = np.full(len(self._tree), NOTHING, np.int64)
        for node in np.flatnonzero(np.bincount(nodes, minlength=len(self._tree))).tolist():
            found[node] = self._number(node)
        return found[nodes]

    def names(self, path: int) -> list[str]:
        """The frames of a path as ``function (file:line)``, outermost first."""
        names = []
        while path != NOTHING:
            node, path = self._steps[path]
            names.append(_frame(self._tree, node))
        return names[::-1]

    def _number(self, node: int) -> int:
        """The path of a node; a walk, because a stack may be deeper than Python recurses."""
        tree, chain = self._tree, []
        while node != NOTHING:
            node = int(self._nearest[node])
            if node == NOTHING or node in self._of_node:
                break
            chain.append(node)
            node = int(tree.parent[node])
        path = NOTHING if node == NOTHING else self._of_node[node]
        for step in reversed(chain):
            key = (path, int(tree.file[step]), int(tree.function[step]), int(tree.line[step]))
            if key not in self._numbers:
                self._numbers[key] = len(self._steps)
                self._steps.append((step, path))
            path = self._numbers[key]
            self._of_node[step] = path
        return path


def importing(tree: CallTree) -> NDArray[np.bool_]:
    """Which nodes lie below the import system: what runs there is a module being imported."""
    machinery = np.array([path.startswith("<frozen importlib") for path in tree.paths] + [False], np.bool_)
    return np.asarray(tree.nearest(machinery[tree.file]) != NOTHING, np.bool_)


def _frame(tree: CallTree, node: int) -> str:
    function, file, line = int(tree.function[node]), int(tree.file[node]), int(tree.line[node])
    name = printable(tree.function_names[function]) if function != NOTHING else "<unknown code>"
    if file == NOTHING:
        return name
    where = printable(tree.paths[file], 4096) + (f":{line}" if line != NOTHING else "")
    return f"{name} ({where})"
