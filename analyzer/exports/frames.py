"""Stacks as other tools have them: a tree of frames, each a function and perhaps a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.opened import Recording
from ..recording.text import printable
from ..recording.tree import NOTHING
from ..samples.native_frames import FrameClass, frame_classes
from ..samples.summary import OUT_OF_SCOPE, UNKNOWN_CODE
from .rows import NONE, Rows

_NOT_SHOWN = (FrameClass.UNKNOWN, FrameClass.LOOP, FrameClass.MACHINERY, FrameClass.JIT)
"""Native functions that say no more than the Python frame above them, as those of the interpreter without a name do."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Python, a native one, or a name for what has no stack. Text is printable."""

    name: str
    file: str | None = None
    """Path of its source file, or of the module that holds a native function."""
    first_line: int | None = None
    native: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A function, by its number, and the line in it (None where it is unknown or not asked for)."""

    function: int
    line: int | None = None


class FrameTree:
    """A tree of frames; every parent comes before its children. It grows by ``nodes`` and by nothing else.

    Frames out of scope are left out: what they did is on the nearest of their callers in scope, as in ``analyze``.
    """

    def __init__(
        self, calls: CallTree, in_scope: NDArray[np.bool_], *, lines: bool, native: NativeNames | None
    ) -> None:
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
        self._native = native
        self._of_stack = self._add_stacks(calls, in_scope, lines=lines)

    def nodes(self, rows: Rows) -> NDArray[np.int64]:
        """The node of each row: of its stack, or of a name for what has none."""
        native = self._native.of_frame[rows.native] if self._native is not None else np.full(len(rows), NONE)
        # One number for each combination: there are few of them, and numbers are quickly told apart.
        last = 0 if self._native is None else len(self._native.functions)
        key = np.where(rows.stack == NONE, rows.state, len(rows.labels) + rows.stack) * (last + 1) + native + 1
        group, distinct = pd.factorize(key)
        place, function = np.divmod(distinct, last + 1)
        found = []
        for number, above in zip(place.tolist(), (function - 1).tolist(), strict=True):
            stack = number - len(rows.labels)
            found.append(self._node(max(stack, NONE), "" if stack >= 0 else rows.labels[number], above))
        return np.asarray(np.array(found, np.int64)[group])

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

    def _add_stacks(self, calls: CallTree, in_scope: NDArray[np.bool_], *, lines: bool) -> NDArray[np.int64]:
        placed = np.full(len(calls) + 1, NONE, np.int64)  # the last one stands for no parent
        parents, functions = calls.parent.tolist(), calls.function.tolist()
        for node, (above, function, inside) in enumerate(zip(parents, functions, in_scope.tolist(), strict=True)):
            if not inside:
                placed[node] = placed[above]
                continue
            if function == NOTHING:
                frame = Frame(self._function(Function(UNKNOWN_CODE)))
            else:
                line = int(calls.line[node])
                frame = Frame(function, line if lines and line != NOTHING else None)
            placed[node] = self._child(int(placed[above]), frame)
        return placed[:-1]

    def _node(self, stack: int, label: str, native: int) -> int:
        node = NONE if stack == NONE else int(self._of_stack[stack])
        if node == NONE:
            name = label if stack == NONE else OUT_OF_SCOPE
            node = self._child(NONE, Frame(self._function(Function(name))))
        if native != NONE and self._native is not None:
            node = self._child(node, Frame(self._function(self._native.functions[native])))
        return node

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


class NativeNames:
    """Which native function each row of ``native_frames`` lies in, as far as it is worth a frame of its own."""

    def __init__(self, recording: Recording) -> None:
        table, modules = recording.table("native_frames"), recording.table("modules")
        paths = modules.column("path").to_pylist()
        self.functions: list[Function] = []
        known: dict[Function, int] = {}
        of_frame = [NONE] * (table.num_rows + 1)  # the last one stands for no program counter
        classes = frame_classes(table, modules, recording.table("processes")).tolist()
        rows = zip(*(table.column(name).to_pylist() for name in ("module", "symbol")), strict=True)
        for number, (module, symbol) in enumerate(rows):
            if classes[number] in _NOT_SHOWN or (symbol is None and classes[number] == FrameClass.INTERIOR):
                continue
            path = None if module is None else printable(paths[module], 4096)
            where = f"[{path.rpartition('/')[2] if path else 'unknown'}]"
            function = Function(where if symbol is None else printable(symbol), path, native=True)
            if function not in known:
                known[function] = len(self.functions)
                self.functions.append(function)
            of_frame[number] = known[function]
        self.of_frame = np.array(of_frame, np.int64)
