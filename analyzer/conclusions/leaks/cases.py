"""Judges each process by itself: its leaks, and the call paths to them.

Processes are judged one by one because each has a beginning and an end of its own. Ten processes that one after the
other keep something to their end do not leak, and a worker that ended early is no less judged for that.

Call paths of sites within the scope tell one use of a shared helper from another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct

from ...recording.call_tree import NOTHING, CallTree
from ...recording.text import printable
from ...statistics.intervals import poisson_sums
from ..memory import NEVER, Heap
from ..memory.moments import highest
from .held_up import HeldUp
from .leak_definitions import Histories, LeakDefinition, Verdicts


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
        numbers = np.full(len(self._tree), NOTHING, np.int64)
        for node in np.flatnonzero(np.bincount(nodes, minlength=len(self._tree))).tolist():
            numbers[node] = self._number(node)
        return numbers[nodes]

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
    """True for nodes below the import system: code of modules being imported."""
    machinery = np.array([path.startswith("<frozen importlib") for path in tree.paths] + [False], np.bool_)
    return np.asarray(tree.nearest(machinery[tree.file]) != NOTHING, np.bool_)


def _frame(tree: CallTree, node: int) -> str:
    function, file, line = int(tree.function[node]), int(tree.file[node]), int(tree.line[node])
    name = printable(tree.function_names[function]) if function != NOTHING else "<unknown code>"
    if file == NOTHING:
        return name
    where = printable(tree.paths[file], 4096) + (f":{line}" if line != NOTHING else "")
    return f"{name} ({where})"


MIN_BLOCKS = 8
"""Fewest kept blocks for a call path to be judged by itself."""

Rate = tuple[float, float, float]
"""Leaked bytes per second, with the ends of the 95 % interval."""

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A line that leaks in a process: as a whole, or through some of its call paths."""

    line: int
    """Row in the frame of lines."""
    rate: Rate
    leaked: float
    blocks: int
    mallocs: int
    frees: int
    likelihood: float
    first_ns: float
    """Time of its first block."""
    elapsed_ns: float
    """Time during which it leaked."""
    by_path: dict[int, float]
    """Leaked bytes by call path to it."""
    kept: _Ids
    """Numbers of the blocks that were kept."""


@dataclass(frozen=True)
class Judged:
    """The verdicts of one process: the lines that it allocated on, their likelihoods, and those that leak."""

    lines: _Ids
    likelihood: _Floats
    bounded: NDArray[np.bool_]
    """Lines whose blocks are replaced and stay level, as those of a cache."""
    cases: list[Case]


def judge(
    heap: Heap,
    tree: CallTree,
    selected: NDArray[np.bool_] | None,
    site_line: _Ids,
    paths: SitePaths,
    threads: _Ids,
    held_up: HeldUp,
    definition: LeakDefinition,
) -> Iterator[Judged]:
    """Judge every line, and every call path to one, process by process.

    ``site_line`` has the row of each site in the frame of lines, ``threads`` the number of threads of each process.
    """
    blocks = heap.blocks
    mine = blocks.followed & heap.allocated_in_window() & heap.of_threads(selected) & heap.present[blocks.process]
    below = np.append(importing(tree), np.zeros(len(heap.sites) - heap.sites.nodes, np.bool_))
    for process in distinct(blocks.process[mine]).tolist():
        index = blocks.of(process)
        index = index[mine[index] & (blocks.birth_ns[index] <= heap.ends_ns[process])]
        if len(index):
            yield _judge(heap, process, index, site_line, below, paths, threads, held_up, definition)


def _judge(
    heap: Heap,
    process: int,
    index: _Ids,
    site_line: _Ids,
    below: NDArray[np.bool_],
    paths: SitePaths,
    threads: _Ids,
    held_up: HeldUp,
    definition: LeakDefinition,
) -> Judged:
    """The verdicts of a process; ``index`` has the numbers of its blocks."""
    lines, group = np.unique(site_line[heap.blocks.site[index]], return_inverse=True)
    begin_ns = max(heap.start_ns, int(heap.lifetimes.start_ns[process]))
    histories = _histories(heap, process, index, group.astype(np.int64), begin_ns, below, threads, held_up)
    by_line = definition.judge(histories)
    path_of, path_ids, path_group = _paths(heap, histories, index, paths)
    by_path = definition.judge(histories.regrouped(path_of, len(path_ids)))
    leaking_paths = np.flatnonzero(by_path.leaking)
    cases = []
    for number in sorted(set(np.flatnonzero(by_line.leaking).tolist()) | set(path_group[leaking_paths].tolist())):
        kept = index[(histories.group == number) & np.isinf(histories.death)]
        every = np.flatnonzero(path_group == number)
        amounts = dict(zip(path_ids[every].tolist(), by_path.leaked[every].tolist(), strict=True))
        if by_line.leaking[number]:
            verdicts, which, parts = by_line, number, np.array([number])
        else:
            parts = leaking_paths[path_group[leaking_paths] == number]
            verdicts, which = by_path, int(parts[np.argmax(by_path.leaked[parts])])
        rate, low, high = (sum(ends) for ends in zip(*(_rate(verdicts, int(part)) for part in parts), strict=True))
        cases.append(
            Case(
                line=int(lines[number]),
                rate=(rate, low, high),
                leaked=float(verdicts.leaked[parts].sum()),
                blocks=int(verdicts.blocks[parts].sum()),
                mallocs=int(verdicts.mallocs[which]),
                frees=int(verdicts.frees[which]),
                likelihood=float(verdicts.likelihood[which]),
                first_ns=begin_ns + float(verdicts.first[which]) * 1e9,
                elapsed_ns=float(verdicts.elapsed[which]) * 1e9,
                by_path=amounts,
                kept=kept,
            )
        )
    bounded = np.zeros(len(lines), np.bool_) if by_line.bounded is None else by_line.bounded
    return Judged(lines, by_line.likelihood, bounded, cases)


def _histories(
    heap: Heap,
    process: int,
    index: _Ids,
    group: _Ids,
    begin_ns: int,
    below: NDArray[np.bool_],
    threads: _Ids,
    held_up: HeldUp,
) -> Histories:
    """The followed blocks of a process that were allocated in the window before its end."""
    blocks, end_ns = heap.blocks, int(heap.ends_ns[process])
    death_ns = blocks.death_ns[index]
    own = heap.counters.where(heap.counters.of(process))
    peak = highest(own, heap.held, heap.gone_ns, heap.start_ns, heap.end_ns, threads).bytes
    return Histories(
        group=group,
        groups=int(group.max()) + 1,
        thread=blocks.thread[index].astype(np.int64),
        size=blocks.certain[index],
        birth=(blocks.birth_ns[index] - begin_ns) / 1e9,
        death=np.where((death_ns == NEVER) | (death_ns > end_ns), np.inf, (death_ns - begin_ns) / 1e9),
        weight=blocks.bytes[index],
        variance=blocks.variance[index],
        duration=max((end_ns - begin_ns) / 1e9, 1e-9),
        growth=_growth(own.time_ns, own.footprint, begin_ns, end_ns, peak),
        peak=peak if not np.isnan(peak) else 0.0,
        importing=below[blocks.site[index]],
        held_up=lambda thread, begin_s, end_s: (
            held_up.between(thread, begin_ns + begin_s * 1e9, begin_ns + end_s * 1e9) / 1e9
        ),
    )


def _growth(time_ns: _Ids, footprint: _Floats, start_ns: int, end_ns: int, peak: float) -> float:
    """Growth of the footprint as a share of its highest: slope of the regression line over the rows, by trapezoids."""
    rows = np.flatnonzero(~np.isnan(footprint) & (time_ns >= start_ns) & (time_ns <= end_ns))
    if len(rows) < 2 or not peak > 0:
        return 0.0
    time = (time_ns[rows] - start_ns) / 1e9
    # Rows are dense where much happens: each counts for the time that it stands for.
    step = np.diff(time)
    weight = (np.append(step, 0.0) + np.insert(step, 0, 0.0)) / 2
    if weight.sum() <= 0:
        return 0.0
    centre = np.average(time, weights=weight)
    spread = np.average((time - centre) ** 2, weights=weight)
    if spread <= 0:
        return 0.0
    held = footprint[rows]
    slope = np.average((time - centre) * (held - np.average(held, weights=weight)), weights=weight) / spread
    return float(slope * (time[-1] - time[0]) / peak)


def _paths(heap: Heap, histories: Histories, index: _Ids, paths: SitePaths) -> tuple[_Ids, _Ids, _Ids]:
    """The group of each block by call path (-1: none, or too few were kept), and the path and line of each group."""
    site = heap.blocks.site[index]
    path_of_block = np.full(len(index), -1, np.int64)
    enough = histories.counted(np.isinf(histories.death)) >= MIN_BLOCKS
    has_stack = (site < heap.sites.nodes) & enough[histories.group]
    if has_stack.any():
        path_of_block[has_stack] = paths.numbers(site[has_stack])
    placed = path_of_block >= 0
    path_ids, group = np.unique(path_of_block[placed], return_inverse=True)
    line = np.zeros(len(path_ids), np.int64)
    line[group] = histories.group[placed]
    path_of_block[placed] = group
    return path_of_block, path_ids, line


def _rate(verdicts: Verdicts, group: int) -> Rate:
    leaked, beyond, variance = (
        values[group : group + 1] for values in (verdicts.leaked, verdicts.beyond, verdicts.variance)
    )
    low, high = poisson_sums(leaked - beyond, beyond, variance)
    elapsed = float(verdicts.elapsed[group])
    return float(leaked[0]) / elapsed, float(low[0]) / elapsed, float(high[0]) / elapsed
