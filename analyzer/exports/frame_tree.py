"""Stacks as other tools have them: a tree of frames, each a function and perhaps a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format.enumerations import NativePath

from ..recording.call_tree import NOTHING, CallTree
from ..recording.native_names import native_label, short_library
from ..recording.text import printable
from ..samples.call_paths import CallPaths, PathTree
from ..samples.native_functions import NativeFunctions
from ..samples.summary import OUT_OF_SCOPE, UNKNOWN_CODE
from .exported_rows import NONE, STATE_LABELS, Rows


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python, a native one, or a label for data without a stack. Text is printable."""

    name: str
    file: str | None = None
    """Path of its source file; of a native function whose source is not known, of the module that holds it."""
    first_line: int | None = None
    native: bool = False
    module: str | None = None
    """Path of the module that holds a native function."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function, by its number, and the line in it (None where it is unknown or left out)."""

    function: int
    line: int | None = None


class FrameTree:
    """A tree of frames; every parent comes before its children. It grows by ``nodes`` and by nothing else.

    Frames out of scope are left out: their amounts are on the nearest caller in scope, as in ``analyze``.
    """

    def __init__(
        self, calls: CallTree, in_scope: NDArray[np.bool_], *, lines: bool, paths: CallPaths | None = None
    ) -> None:
        """``paths`` has the native functions, which are frames then."""
        self.functions: list[Function] = [
            Function(printable(name), printable(calls.paths[file], 4096) if file != NOTHING else None, int(line))
            for name, file, line in zip(
                calls.function_names, calls.function_files.tolist(), calls.function_lines.tolist(), strict=True
            )
        ]
        self.frames: list[Frame] = []
        self.parent: list[int] = []
        self.frame: list[int] = []
        self._functions = {each: number for number, each in enumerate(self.functions)}
        self._frames: dict[Frame, int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._paths = paths
        self._of_path: list[int] = []
        self._in_scope = in_scope
        self._frame_of = self._stack_frames(calls, lines=lines)
        self._of_stack = self._add_stacks(calls, in_scope)
        self._natives = [] if paths is None else self._native_frames(paths.functions)

    def nodes(self, rows: Rows) -> NDArray[np.int64]:
        """The node of each row: of its stack, or of a label for rows without one."""
        if self._paths is None:
            return self._plain(rows, np.full(len(rows), NONE, np.int64))
        # What the states of the stack say is known of paths; other names are not.
        if rows.labels is STATE_LABELS:
            return self._along_paths(self._paths, rows)
        placed = rows.stack != NONE
        named = rows.only(~placed)
        nodes = np.empty(len(rows), np.int64)
        nodes[placed] = self._along_paths(self._paths, rows.only(placed))
        nodes[~placed] = self._plain(named, np.full(len(named), NONE, np.int64))
        return nodes

    def _along_paths(self, paths: CallPaths, rows: Rows) -> NDArray[np.int64]:
        """The nodes of call paths through Python and native code."""
        none = np.full(len(rows), NONE, np.int64)
        stacks, how = (rows.native_stack, rows.native_path)
        if stacks is None or how is None:
            stacks, how = none, np.full(len(rows), NativePath.UNRECORDED, np.int64)
        path_nodes = paths.nodes(rows.stack, rows.state, rows.native, stacks, how)
        tree = paths.tree()
        self._add_paths(tree)
        nodes = np.array(self._of_path, np.int64)[path_nodes]
        for path in np.unique(path_nodes[nodes == NONE]).tolist():
            outside, native = self._named(NONE, OUT_OF_SCOPE), int(tree.native[path])
            nodes[path_nodes == path] = outside if native == NONE else self._child(outside, self._natives[native])
        return nodes

    def _plain(self, rows: Rows, function: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes of stacks without paths, with the native function at the end."""
        # One number for each combination: there are few of them, and numbers are quickly compared.
        last = len(self._natives)
        key = np.where(rows.stack == NONE, rows.state, len(rows.labels) + rows.stack) * (last + 1) + function + 1
        group, distinct = pd.factorize(key)
        place, native = np.divmod(distinct, last + 1)
        nodes = []
        for number, above in zip(place.tolist(), (native - 1).tolist(), strict=True):
            stack = number - len(rows.labels)
            node = self._named(max(stack, NONE), "" if stack >= 0 else rows.labels[number])
            nodes.append(node if above == NONE else self._child(node, self._natives[above]))
        return np.asarray(np.array(nodes, np.int64)[group])

    def _add_paths(self, tree: PathTree) -> None:
        """The nodes of those call paths that came since the last time; NONE where no frame is in scope yet."""
        added = len(self._of_path)
        columns = (each[added:].tolist() for each in (tree.parent, tree.stack, tree.native, tree.label))
        for parent, stack, native, label in zip(*columns, strict=True):
            above = NONE if parent == NONE else self._of_path[parent]
            if label != NONE:
                node = self._child(NONE, Frame(self._function(Function(STATE_LABELS[label]))))
            elif native != NONE:
                node = NONE if above == NONE else self._child(above, self._natives[native])
            elif self._in_scope[stack]:
                node = self._child(above, self._frame_of[stack])
            else:
                node = above
            self._of_path.append(node)

    def path(self, node: int) -> list[int]:
        """The frames from the root to a node."""
        path = []
        while node != NONE:
            path.append(self.frame[node])
            node = self.parent[node]
        return path[::-1]

    def chain(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        chain = []
        while node != NONE:
            chain.append(node)
            node = self.parent[node]
        return chain[::-1]

    def order(self) -> NDArray[np.int64]:
        """The number of each node in depth-first order."""
        sizes = [1] * len(self.parent)
        for node in range(len(self.parent) - 1, -1, -1):
            if self.parent[node] != NONE:
                sizes[self.parent[node]] += sizes[node]
        free = [0] * (len(self.parent) + 1)  # the next number below each node; the last entry is for the roots
        number = [0] * len(self.parent)
        for node, above in enumerate(self.parent):
            number[node] = free[above]
            free[above] += sizes[node]
            free[node] = number[node] + 1
        return np.array(number, np.int64)

    def function_of(self, node: int) -> Function:
        """The function of a node's frame."""
        return self.functions[self.frames[self.frame[node]].function]

    def _native_frames(self, functions: NativeFunctions) -> list[Frame]:
        columns = zip(functions.names, functions.paths, functions.sources, functions.lines, strict=True)
        return [
            Frame(
                self._function(
                    Function(native_label(name, short_library(path)), source or path, line, native=True, module=path)
                )
            )
            for name, path, source, line in columns
        ]

    def _stack_frames(self, calls: CallTree, *, lines: bool) -> list[Frame]:
        unknown = self._function(Function(UNKNOWN_CODE)) if (calls.function == NOTHING).any() else NONE
        return [
            Frame(unknown if function == NOTHING else function, line if lines and line != NOTHING else None)
            for function, line in zip(calls.function.tolist(), calls.line.tolist(), strict=True)
        ]

    def _add_stacks(self, calls: CallTree, in_scope: NDArray[np.bool_]) -> NDArray[np.int64]:
        placed = np.full(len(calls) + 1, NONE, np.int64)  # the last one stands for no parent
        for node, (above, inside) in enumerate(zip(calls.parent.tolist(), in_scope.tolist(), strict=True)):
            placed[node] = self._child(int(placed[above]), self._frame_of[node]) if inside else placed[above]
        return placed[:-1]

    def _named(self, stack: int, label: str) -> int:
        """The node of a Python stack, or of a name."""
        node = NONE if stack == NONE else int(self._of_stack[stack])
        return (
            node
            if node != NONE
            else self._child(NONE, Frame(self._function(Function(label if stack == NONE else OUT_OF_SCOPE))))
        )

    def _child(self, parent: int, frame: Frame) -> int:
        number = self._frames.get(frame)
        if number is None:
            number = self._frames[frame] = len(self.frames)
            self.frames.append(frame)
        node = self._nodes.get((parent, number))
        if node is None:
            node = self._nodes[parent, number] = len(self.parent)
            self.parent.append(parent)
            self.frame.append(number)
        return node

    def _function(self, function: Function) -> int:
        number = self._functions.get(function)
        if number is None:
            number = self._functions[function] = len(self.functions)
            self.functions.append(function)
        return number
