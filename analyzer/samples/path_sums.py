"""Sums of time by call path, and from there by native function, self and total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format.enumerations import NativePath

from ..recording.call_tree import CallTree
from ..recording.filter import Mask
from ..recording.tree import NOTHING
from .accumulate import Totals, summed
from .call_paths import CallPaths, PathTree
from .cells import unpacked
from .measures import MEASURES
from .native_functions import NativeFunctions
from .stream import CPU, GPU, CpuBatch, Stream, WaitBatch

GUESSED = "guessed_ns"
PATH_MEASURES = (*MEASURES, GUESSED)
"""Those of ``measures`` and ``guessed_ns``: the CPU time of samples whose native path is a guess."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PathFacts:
    """What was sampled, by call path."""

    tree: PathTree
    calls: CallTree
    functions: NativeFunctions
    sums: _Floats
    """Nodes of ``tree`` by ``PATH_MEASURES``: what was measured at each node itself."""
    recorded: bool
    """Whether there are native paths; if not, a native function is known only where it was running itself."""
    held: Mapping[str, _Floats]
    """By measure in bytes that was recorded (of ``nodes.SIZES``), what each node itself allocated, held or copied.

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
        own = _summed(self.sums[placed], native[placed], size)
        total = _summed(self.below[outermost], native[outermost], size)
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
        """What was taken; ``held`` is that of ``PathFacts``, perhaps without the last nodes."""
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


def _summed(values: _Floats, keys: NDArray[np.int64], size: int) -> _Floats:
    sums = np.zeros((size, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(keys, weights=values[:, column], minlength=size)
    return sums
