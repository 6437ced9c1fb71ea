"""Call paths through Python and native code, and sums of time by path: the Python stack and native path, interleaved.

Both are trees in the recording. A row of ``native_stacks`` that is an activation of the evaluation loop points at the
innermost Python frame that it runs: there, and nowhere else, native code called Python (SPEC.md, "Python and native
frames"). From the outside in, a path is

- the Python frames that the outermost activation runs, then the native functions that its innermost frame called,
- the Python frames of the next activation, and so on,
- the Python frames that no activation on the path runs: the interrupted frame itself runs those,
- the function of the program counter, if it is not folded (``native_functions`` says which functions are).

Native frames outside of the outermost activation are folded too: how the interpreter, or the thread, was started. The
position of a path that begins in the middle (*truncated*, *torn*) among the Python frames is unknown, so its outer part
is folded as well. A thread without Python frames has native functions alone, below a label that says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids
from tachograph.format.enumerations import NativePath

from ..recording.call_tree import NOTHING, CallTree, Tree
from ..recording.filter import Mask
from ..recording.opened import Recording
from ..statistics.grouped_sums import summed
from .attribution import STATES, unpacked
from .groups import Keys, Totals
from .native_functions import NativeFunctions
from .reduction import MEASURES
from .sites import state_label
from .stream import CPU, GPU, CpuBatch, Stream, WaitBatch

Ids = NDArray[np.int64]

_LABEL = -3
"""Keys of children: a node of the call tree, -2 less two times a native function, or -3 less two times a label."""

_UNPLACED = -1
_BROKEN = -2


@dataclass(frozen=True)
class PathTree(Tree):
    """Call paths as a tree. Each node is a Python frame, a native function or a label; the other two are NOTHING."""

    stack: Ids
    """A node of the call tree: code and line."""
    native: Ids
    """A function of ``NativeFunctions``."""
    label: Ids
    """A state of a stack, ``sites.state_label``."""


class CallPaths:
    """Finds the node of each sample's call path; the tree grows with the paths that are looked up."""

    def __init__(self, recording: Recording, calls: CallTree, functions: NativeFunctions | None = None) -> None:
        self.calls = calls
        self.functions = NativeFunctions(recording) if functions is None else functions
        self.recorded = recording.rows("native_stacks") > 0
        """True if there are native paths; otherwise only the innermost function is known."""
        table = recording.table("native_stacks")
        self._caller = ids(table.column("parent")).tolist()
        frame = ids(table.column("native_frame"), len(self.functions.of_frame) - 1)
        self._function: list[int] = self.functions.of_frame[frame].tolist()
        self._activation = ids(table.column("stack")).tolist()
        start, end = calls.spans
        self._start, self._end = start.tolist(), end.tolist()
        self._above: list[int] = calls.parent.tolist()
        self._parent: list[int] = []
        self._key: list[int] = []
        self._children: dict[tuple[int, int], int] = {}
        self._placed: dict[int, tuple[int, int]] = {}
        # Where a path is cut it matters whether an interrupted frame, with no activation above it, is the loop itself.
        loop, function = self.functions.loop, self.functions.of_frame
        self._last: Ids = np.where(function == NOTHING, np.where(loop, -2, -1), function) + 2
        sizes = {"place": len(self._above) + STATES, "last": len(self.functions) + 2}
        if self.recorded:
            sizes |= {"native_stack": len(self._caller) + 1, "cut": 2}
        self._numbers = Keys(sizes)
        self._nodes: Ids = np.zeros(0, np.int64)
        self._extended: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def nodes(
        self,
        stack: NDArray[np.integer],
        state: NDArray[np.integer],
        native: NDArray[np.integer],
        native_stack: NDArray[np.integer],
        how: NDArray[np.integer],
    ) -> Ids:
        """The node of each row. Ids are NOTHING for none, ``how`` is one of ``native_path``."""
        number = self.numbers(stack, state, native, native_stack, how)
        return np.take(self.numbered(), number)

    def numbers(
        self,
        stack: NDArray[np.integer],
        state: NDArray[np.integer],
        native: NDArray[np.integer],
        native_stack: NDArray[np.integer],
        how: NDArray[np.integer],
    ) -> Ids:
        """A number for each row, the same for the same path; ``numbered`` has their nodes. Arguments: see ``nodes``."""
        columns = {
            "place": np.where(stack == NOTHING, STATES - 1 - np.minimum(state, STATES - 1), stack + STATES),
            "last": np.take(self._last, native),
        }
        if self.recorded:
            columns["native_stack"] = native_stack + 1
            columns["cut"] = (how == NativePath.TRUNCATED) | (how == NativePath.TORN)
        return self._numbers.of(columns)

    def numbered(self) -> Ids:
        """The nodes of the numbers that were given so far."""
        new = self._numbers.columns(since=len(self._nodes))
        if len(new["place"]):
            nothing = np.zeros(len(new["place"]), np.int64)
            native_stack, cut = new.get("native_stack", nothing) - 1, new.get("cut", nothing)
            columns = (new["place"] - STATES, native_stack, new["last"] - 2, cut)
            nodes = map(self._path, *(column.tolist() for column in columns))
            self._nodes = np.append(self._nodes, np.fromiter(nodes, np.int64))
        return self._nodes

    def of_stack(self, stack: int) -> int:
        """The node of a Python stack of which no native path is known."""
        return self._python(NOTHING, NOTHING, stack)

    def tree(self) -> PathTree:
        """The tree as it is now."""
        key = np.array(self._key, np.int64)
        native, label = np.divmod(-2 - key, 2)
        return PathTree(
            np.array(self._parent, np.int64),
            np.maximum(key, NOTHING),
            np.where((key < 0) & (label == 0), native, NOTHING),
            np.where((key < 0) & (label == 1), native, NOTHING),
        )

    def _path(self, place: int, native_stack: int, last: int, cut: int) -> int:
        node = self._callers(place, native_stack, bool(cut) and last != -2)
        return node if last < 0 else self._called(node, last)

    def _callers(self, place: int, native_stack: int, inside: bool) -> int:
        """The node of the callers. ``inside``: natives without an activation were called by the innermost frame."""
        if place < 0:
            return self._natives(self._child(NOTHING, _LABEL - 2 * (-1 - place)), native_stack, thread=True)
        if native_stack == NOTHING:
            return self._python(NOTHING, NOTHING, place)
        node, outermost = self._place(native_stack)
        if node == _UNPLACED:
            node = self._python(NOTHING, NOTHING, place)
            return self._natives(node, native_stack, thread=False) if inside else node
        if node == _BROKEN or not self._below(place, outermost):
            return self._python(NOTHING, NOTHING, place)
        return self._python(node, outermost, place)

    def _place(self, native_stack: int) -> tuple[int, int]:
        """The node of a row of ``native_stacks`` and the innermost Python frame on it."""
        waiting = []
        row = native_stack
        while row != NOTHING and row not in self._placed:
            waiting.append(row)
            row = self._caller[row]
        node, python = (_UNPLACED, NOTHING) if row == NOTHING else self._placed[row]
        for row in reversed(waiting):
            activation, function = self._activation[row], self._function[row]
            if activation != NOTHING and node != _BROKEN:
                if node == _UNPLACED:
                    node, python = self._python(NOTHING, NOTHING, activation), activation
                elif self._below(activation, python):
                    node, python = self._python(node, python, activation), activation
                else:
                    node = _BROKEN
            elif function != NOTHING and node >= 0:
                node = self._called(node, function)
            self._placed[row] = (node, python)
        return node, python

    def _natives(self, node: int, native_stack: int, *, thread: bool) -> int:
        """The native functions inside of the innermost activation, below ``node``; with ``thread`` not its start."""
        functions = []
        while native_stack != NOTHING and self._activation[native_stack] == NOTHING:
            if self._function[native_stack] != NOTHING:
                functions.append(self._function[native_stack])
            native_stack = self._caller[native_stack]
        while thread and functions and self.functions.starting[functions[-1]]:
            functions.pop()
        for function in reversed(functions):
            node = self._called(node, function)
        return node

    def _python(self, node: int, above: int, stack: int) -> int:
        """The node of a Python frame and its callers up to, and without, ``above``, below ``node``."""
        extended = self._extended
        waiting = []
        while stack not in (above, NOTHING) and (node, stack) not in extended:
            waiting.append(stack)
            stack = self._above[stack]
        child = node if stack in (above, NOTHING) else extended[node, stack]
        for each in reversed(waiting):
            child = extended[node, each] = self._child(child, each)
        return child

    def _below(self, stack: int, above: int) -> bool:
        """True if a Python frame is ``above`` or was called by it."""
        return bool(self._start[above] <= self._start[stack] < self._end[above])

    def _called(self, node: int, function: int) -> int:
        """The node of a native function that was called at ``node``; calls within ``joined`` ones are one."""
        key = -2 - 2 * function
        again = self.functions.joined[function] and node >= 0 and self._key[node] == key
        return node if again else self._child(node, key)

    def _child(self, parent: int, key: int) -> int:
        node = self._children.get((parent, key))
        if node is None:
            node = self._children[parent, key] = len(self._parent)
            self._parent.append(parent)
            self._key.append(key)
        return node


def labels() -> Sequence[str]:
    """The names of ``PathTree.label``."""
    return [state_label(state) for state in range(STATES)]


GUESSED = "guessed_ns"
PATH_MEASURES = (*MEASURES, GUESSED)
"""Those of ``measures`` and ``guessed_ns``: the CPU time of samples whose native path is a guess."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PathFacts:
    """Sums of samples by call path."""

    tree: PathTree
    calls: CallTree
    functions: NativeFunctions
    sums: _Floats
    """Nodes of ``tree`` by ``PATH_MEASURES``: the measures of each node itself."""
    recorded: bool
    """True if there are native paths; otherwise a native function is known only where it was running itself."""
    held: Mapping[str, _Floats]
    """By measure in bytes that was recorded (of ``sites.SIZES``), what each node itself allocated, held or copied.

    What has no Python stack is not in it.
    """
    states: Mapping[str, float]
    """Seconds of CPU time by how their native paths were got: names of the enumeration ``native_path``."""

    @cached_property
    def below(self) -> _Floats:
        """``sums`` with everything below each node."""
        return self.tree.below(self.sums)

    def by_function(self) -> tuple[_Floats, _Floats]:
        """``PATH_MEASURES`` of each native function: its own, and with all that it called, once for each sample.

        The latter is NaN where no paths were recorded.
        """
        native, size = self.tree.native, len(self.functions)
        placed = native != NOTHING
        outermost = self.tree.outermost(native)
        own = summed(native[placed], self.sums[placed], size)
        total = summed(native[outermost], self.below[outermost], size)
        return own, total if self.recorded else np.full_like(total, np.nan)


class PathSums:
    """The sink that makes ``PathFacts``."""

    times = False

    def __init__(self, stream: Stream, calls: CallTree, main: Mask) -> None:
        """``main`` says which threads are main threads."""
        self._stream = stream
        self._main = main
        self.paths = CallPaths(stream.recording, calls)
        self._sums = np.zeros((len(PATH_MEASURES), 0))
        self._of_group = np.zeros(0, np.int64)

    def cpu(self, batch: CpuBatch) -> None:
        """CPU samples are added up by group."""

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        waited, on_cpu = batch.weight_ns, batch.kind == CPU
        wait = np.where(on_cpu, 0.0, waited)
        weights = {
            "wait_ns": wait,
            "main_wait_ns": np.where(self._main[batch.thread], wait, 0.0),
            "gpu_wait_ns": np.where(batch.kind == GPU, wait, 0.0),
            "cpu_wait_ns": np.where(on_cpu, waited, 0.0),
        }
        self._add(self.nodes(batch), weights)

    def nodes(self, batch: CpuBatch | WaitBatch) -> NDArray[np.int64]:
        """The node of each row's path."""
        of_group = self._nodes_of_groups()
        if isinstance(batch, CpuBatch):
            return np.take(of_group, batch.group)
        stack = np.where(batch.stack == self._stream.nodes, NOTHING, batch.stack)
        return self.paths.nodes(stack, batch.state, batch.native, batch.native_stack, batch.native_path)

    def facts(self, held: Mapping[str, _Floats] | None = None) -> PathFacts:
        """The sums so far; ``held`` is that of ``PathFacts``, perhaps without the last nodes."""
        node, totals = self._nodes_of_groups(), self._stream.sums.totals
        guessed = self._stream.groups.columns["native_path"] == NativePath.GUESSED
        self._add(node, self._cpu_weights(self._stream.groups.cell, totals, guessed))
        tree = self.paths.tree()
        sums = np.zeros((len(tree), len(PATH_MEASURES)))
        sums[: self._sums.shape[1]] = self._sums.T
        states = summed(self._stream.groups.columns["native_path"], totals["cpu_ns"], len(NativePath))
        seconds = {state.name.lower(): float(states[state]) / 1e9 for state in NativePath}
        bytes_ = {name: np.pad(values, (0, len(tree) - len(values))) for name, values in (held or {}).items()}
        return PathFacts(tree, self.paths.calls, self.paths.functions, sums, self.paths.recorded, bytes_, seconds)

    def _nodes_of_groups(self) -> NDArray[np.int64]:
        """The node of the path of each group of samples."""
        since, groups = len(self._of_group), self._stream.groups
        if since < len(groups):
            names = ("stack", "stack_state", "native", "native_stack", "native_path")
            self._of_group = np.append(
                self._of_group, self.paths.nodes(*(groups.columns[name][since:] for name in names))
            )
        return self._of_group

    def _cpu_weights(self, cell: NDArray[np.integer], sums: Totals, guessed: Mask) -> dict[str, _Floats]:
        """The measures of groups."""
        parts = self._stream.division.parts(cell, sums["cpu_ns"], sums["system_ns"], sums["delay_ns"])
        return {
            "samples": sums["count"],
            "cpu_ns": sums["cpu_ns"],
            "kernel_known_ns": np.where(unpacked(cell)["kernel_known"], sums["cpu_ns"], 0.0),
            **{f"{name}_ns": values for name, values in parts._asdict().items()},
            GUESSED: np.where(guessed, sums["cpu_ns"], 0.0),
        }

    def _add(self, node: NDArray[np.int64], weights: Mapping[str, Any]) -> None:
        size = len(self.paths)
        if self._sums.shape[1] < size:
            grown = np.zeros((len(PATH_MEASURES), size))
            grown[:, : self._sums.shape[1]] = self._sums
            self._sums = grown
        for name, values in weights.items():
            self._sums[PATH_MEASURES.index(name)] += np.bincount(node, weights=values, minlength=size)
