"""Sites of memory, and sums by site: a node of the call tree or, without a stack, a label that names what is known.

``NodeSums`` (sums by node and by label) are what every summary is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids
from tachograph.format.enumerations import StackState

from ..recording.call_tree import CallTree
from ..recording.frame import Column, Frame, texts
from ..recording.native_names import rust_name
from ..recording.opened import Recording
from ..recording.process_lifetimes import ENDING, STARTING, InterpreterPhases, find_interpreter_phases
from ..recording.text import printable
from .attribution import STATES
from .counter_classes import recorders
from .reduction import MEASURES, seconds_of, sums_by

if TYPE_CHECKING:
    import pandas as pd


BEFORE_RECORDING = "<before recording>"
"""Memory that was held already when recording began."""

INHERITED = "<inherited by fork>"
"""Memory of its parent that a forked process held when recording of it began."""

NOT_SAMPLED = "<not sampled>"
UNKNOWN_STACK = "<unknown stack>"
STATE_ROWS: dict[int, str] = {
    StackState.NONE: "<no Python stack>",
    StackState.TORN: "<torn stack>",
    StackState.LOST: "<lost stack>",
    StackState.UNSEEN: NOT_SAMPLED,
    STARTING: "<interpreter start>",
    ENDING: "<interpreter shutdown>",
}
"""Names of rows for facts that have no line; they keep the sum of all rows equal to the total."""

_Ids = NDArray[np.int64]


def state_label(state: int) -> str:
    """The label of facts without a stack in ``state``."""
    return STATE_ROWS.get(state, UNKNOWN_STACK)


class Askers(Protocol):
    """The callers of native threads at a time: nodes of the call tree, -1 for none."""

    def __call__(self, thread: _Ids, time_ns: _Ids) -> _Ids:
        """Those of threads."""
        ...

    def in_process(self, process: _Ids, time_ns: _Ids) -> _Ids:
        """Those of any thread of a process."""
        ...


class Sites:
    """Numbers for places: those below ``nodes`` are nodes of the call tree, the others are ``labels``, in order."""

    def __init__(
        self, recording: Recording, phases: InterpreterPhases | None = None, askers: Askers | None = None
    ) -> None:
        """``askers`` are the callers of native threads, by thread and time."""
        self.askers = askers
        self.nodes = recording.rows("stacks")
        self.labels: list[str] = []
        self._numbers: dict[str, int] = {}
        self._names = _NativeNames(recording)
        self._phases: InterpreterPhases = phases or find_interpreter_phases(recording)
        self._parents: _Ids = ids(recording.table("stacks").column("parent"))

    def __len__(self) -> int:
        return self.nodes + len(self.labels)

    def callers(self) -> _Ids:
        """Node that called the function of each node (-1: none); labels have numbers below that."""
        return np.concatenate((self._parents, -2 - np.arange(len(self.labels), dtype=np.int64)))

    def label(self, text: str) -> int:
        """The number of a label."""
        if text not in self._numbers:
            self._numbers[text] = len(self.labels)
            self.labels.append(text)
        return self.nodes + self._numbers[text]

    def native(self, frame: int) -> str | None:
        """A native frame as ``symbol in module``; None for the interpreter's own, and for frames without a module."""
        name = self._names[frame]
        return None if name is None else name[1:-1]

    def number(self, stack: _Ids, state: NDArray[np.integer], native: _Ids, thread: _Ids, time_ns: _Ids) -> _Ids:
        """The site of each fact. Ids are -1 where there is none.

        What a thread of a pool does is its caller's. Another one without Python frames that runs code of some library
        is named after it: its memory must not vanish.
        """
        sites = stack.copy()
        if self.askers is not None:
            workers = np.flatnonzero((stack < 0) & (state == StackState.NONE) & (thread >= 0))
            sites[workers] = self.askers(thread[workers], time_ns[workers])
            stack = sites.copy()
        rows = np.flatnonzero(stack < 0)
        if not len(rows):
            return sites
        states = np.minimum(state[rows].astype(np.int64), STATES - 1)
        states = np.where((states == STARTING) | (states == ENDING), STATES - 1, states)
        marked = self._phases.mark_times(states, thread[rows], time_ns[rows], time_ns[rows]).astype(np.int64)
        pairs, inverse = np.unique(marked * (len(self._names) + 1) + native[rows] + 1, return_inverse=True)
        numbers = []
        for pair in pairs.tolist():
            state_number, frame = divmod(pair, len(self._names) + 1)
            name = self._names[frame - 1] if frame and state_number == StackState.NONE else None
            numbers.append(self.label(name or state_label(state_number)))
        sites[rows] = np.array(numbers, np.int64)[inverse]
        return sites


def native_name(recording: Recording, frame: int) -> str | None:
    """A native frame as ``symbol in module``, None if neither is known."""
    frames, modules = recording.table("native_frames"), recording.table("modules")
    module, symbol = (frames.column(name)[frame].as_py() for name in ("module", "symbol"))
    file = None if module is None else printable(PurePosixPath(modules.column("path")[module].as_py()).name, 100)
    return _named(symbol, file)


def _named(symbol: str | None, file: str | None) -> str | None:
    if symbol is None:
        return file
    return printable(rust_name(symbol) or symbol, 200) + (f" in {file}" if file else "")


class _NativeNames:
    """The label of each native frame; None for the interpreter's own, and for those without a module.

    They are made at first use: few of the frames are a site.
    """

    def __init__(self, recording: Recording) -> None:
        frames, modules = recording.table("native_frames"), recording.table("modules")
        self._module, self._symbol = frames.column("module"), frames.column("symbol")
        self._paths = modules.column("path").to_pylist()
        owned = zip(self._paths, modules.column("interpreter").to_pylist(), strict=True)
        self._interpreters = {path for path, own in owned if own is True}
        self._recorder = recorders(modules)

    def __len__(self) -> int:
        return len(self._module)

    def __getitem__(self, frame: int) -> str | None:
        module = self._module[frame].as_py()
        if module is None or self._paths[module] in self._interpreters or self._recorder[module]:
            return None
        file = printable(PurePosixPath(self._paths[module]).name, 100)
        return f"<{_named(self._symbol[frame].as_py(), file)}>"


_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NodeSums:
    """Measures ``names`` of every node of the call tree (nodes by names) and of every label (labels by names)."""

    names: tuple[str, ...]
    nodes: _Floats
    labels: list[str]
    stackless: _Floats

    def column(self, name: str) -> int:
        """The place of a measure."""
        return self.names.index(name)

    def total(self, name: str) -> float:
        """The sum of a measure over everything."""
        column = self.column(name)
        return float(self.nodes[:, column].sum() + self.stackless[:, column].sum())


def time_sums(rows: Frame, nodes: int) -> NodeSums:
    """The time measures of rows that ``reduction.prepared`` made."""
    placed = rows["stack"] >= 0
    inside, outside = rows.take(placed), rows.take(~placed)
    names = [state_label(number) for number in range(STATES)]
    by_state = sums_by(outside, outside["stack_state"].astype(np.int64), STATES)
    times = NodeSums(MEASURES, sums_by(inside, inside["stack"], nodes), names, by_state)
    return joined([times])


def joined(parts: Sequence[NodeSums]) -> NodeSums:
    """All measures of all parts; equal labels become one."""
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    stackless = []
    for part in parts:
        sums = np.zeros((len(labels), len(part.names)))
        np.add.at(sums, [labels.index(label) for label in part.labels], part.stackless)
        stackless.append(sums)
    return NodeSums(
        tuple(name for part in parts for name in part.names),
        np.hstack([part.nodes for part in parts]),
        labels,
        np.hstack(stackless),
    )


SIZES = (
    "allocated_bytes",
    "python_allocated_bytes",
    "requested_bytes",
    "freed_bytes",
    "live_at_peak_bytes",
    "live_at_resident_peak_bytes",
    "live_at_end_bytes",
    "copied_bytes",
)
"""Measures in bytes that ``Calls`` shows as they are; NaN where they were not recorded."""

VARIANCES = ("allocated_variance", "live_at_peak_variance", "live_at_end_variance")
"""Of the estimates of some of SIZES, bytes squared, likewise."""


@dataclass(frozen=True)
class Calls:
    """The call tree with the measures of every node itself: for flame graphs and exports.

    Nothing is charged to callers yet: ``charged`` says which node each one is charged to under the scope, -1 where no
    caller is in scope. The window and the choice of threads are applied.
    """

    tree: CallTree
    in_scope: NDArray[np.bool_]
    sums: NodeSums
    waits_known: bool

    @cached_property
    def charged(self) -> NDArray[np.int64]:
        """The node that each one is charged to."""
        return self.tree.nearest(self.in_scope)

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """A row for each node: seconds and bytes; NaN is unknown."""
        return shown(self.sums.nodes, self.sums, waits_known=self.waits_known).pandas()

    @cached_property
    def stackless(self) -> pd.DataFrame:
        """The same for labels instead of nodes, by ``label``; labels without any measure are left out."""
        sums = self.sums.stackless
        table = shown(sums, self.sums, waits_known=self.waits_known)
        used = np.any([np.nan_to_num(table[name]) != 0 for name in table.columns], axis=0)
        labels: dict[str, Column] = {"label": texts(self.sums.labels)}
        return Frame({**labels, **table.columns}).take(used).pandas()


def shown(values: _Floats, sums: NodeSums, *, waits_known: bool) -> Frame:
    """Rows of measures (by the names of ``sums``) as the columns of ``seconds_of``, ``SIZES`` and ``VARIANCES``."""
    columns = seconds_of(values[:, : len(MEASURES)], waits_known=waits_known)
    for name in (*SIZES, *VARIANCES):
        columns[name] = values[:, sums.column(name)] if name in sums.names else np.full(len(values), np.nan)
    return Frame(columns)
