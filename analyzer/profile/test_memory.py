"""What tests allocated and copied: the most that each phase held at once, what it copied, and what its call kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies
from ..conclusions.memory import Heap
from ..conclusions.memory.blocks import Blocks
from ..recording.call_tree import CallTree
from ..recording.tree import NOTHING
from .test_phases import CALL, PHASES, Floats, Ids, PlaceSums, TestPhases

Estimates = NDArray[np.float64]
"""Groups by three columns: the bytes that were sampled, what they stand for beyond themselves, and the variance."""

_IMPORTING = "<frozen importlib"


class TestPeaks:
    """The most bytes that each group held at once of what it allocated itself, in all threads of its process."""

    __test__ = False

    def __init__(self, heap: Heap, phases: TestPhases) -> None:
        blocks = _apart(heap)
        group = phases.of_processes.group_at(blocks.process, blocks.birth_ns)
        rows = np.flatnonzero((group != NOTHING) & blocks.followed)
        rows = rows[np.lexsort((blocks.birth_ns[rows], group[rows]))]
        self._group, self._blocks = group[rows], blocks.where(rows)
        self.estimates: Estimates = np.zeros((phases.groups, 3))
        self._peak_ns = np.zeros(phases.groups, np.int64)
        for each, first, last in self._by_group():
            self.estimates[each], self._peak_ns[each] = self._highest(first, last)

    def at_peak(self, group: int) -> tuple[Ids, Floats]:
        """Sites and bytes of the blocks that a group held at its peak."""
        mine = (self._group == group) & self._blocks.alive(int(self._peak_ns[group]))
        return self._blocks.site[mine], self._blocks.bytes[mine]

    def _by_group(self) -> Iterator[tuple[int, int, int]]:
        first = np.flatnonzero(np.diff(self._group, prepend=NOTHING))
        after = np.append(first, len(self._group))[1:]
        for start, end in zip(first.tolist(), after.tolist(), strict=True):
            yield int(self._group[start]), start, end

    def _highest(self, first: int, last: int) -> tuple[Floats, int]:
        """The estimate at the peak of some blocks, and its time."""
        blocks = self._blocks
        birth = blocks.birth_ns[first:last]
        death = np.maximum(blocks.death_ns[first:last], birth + 1)
        values = np.column_stack([each[first:last] for each in (blocks.certain, blocks.beyond, blocks.variance)])
        time = np.concatenate((birth, death))
        # Of one moment, what is released counts first: the next block may have its place.
        order = np.lexsort((np.repeat([1, 0], len(birth)), time))
        held = np.cumsum(np.concatenate((values, -values))[order], axis=0)
        peak = int(np.argmax(held[:, 0] + held[:, 1]))
        return np.maximum(held[peak], 0.0), int(time[order[peak]])


def _apart(heap: Heap) -> Blocks:
    """The blocks themselves, while they lived, and then what they stand for beyond, spread over time as in ``held``.

    A single large block that lives for a moment was there, however little it is on average.
    """
    blocks, held = heap.blocks, heap.held
    nothing = np.zeros(len(blocks))
    themselves = replace(blocks, beyond=nothing, variance=nothing)
    beyond = replace(held, certain=nothing, beyond=np.maximum(held.bytes - blocks.certain, 0.0))
    both = ((getattr(each, field.name) for each in (themselves, beyond)) for field in fields(Blocks))
    return Blocks(*(np.concatenate(tuple(arrays)) for arrays in both))


class TestSizes:
    """Bytes summed by group and place, with what their estimates need."""

    __test__ = False

    def __init__(self, places: int, group: Ids, site: Ids, values: Estimates) -> None:
        self._sums = [PlaceSums(places) for _ in range(3)]
        for column, sums in enumerate(self._sums):
            sums.add(group, site, values[:, column])

    def estimates(self, groups: int) -> Estimates:
        """By group."""
        return np.column_stack([sums.by_group(groups) for sums in self._sums])

    def of(self, group: int) -> tuple[Ids, Floats]:
        """Places and bytes of a group."""
        place, certain = self._sums[0].of(group)
        return place, certain + self._sums[1].of(group)[1]


def copied_by_tests(copies: Copies, phases: TestPhases, places: int) -> TestSizes:
    """What each phase copied, in all threads of its process."""
    group = phases.of_processes.group_at(phases.owner[copies.thread], copies.time_ns)
    values = np.column_stack((copies.certain, copies.beyond, copies.variance))[copies.sampled]
    return TestSizes(places, group[copies.sampled], copies.site[copies.sampled], values)


def kept_by_tests(heap: Heap, phases: TestPhases, tree: CallTree, charged: Ids, places: int) -> TestSizes:
    """What the project allocated in the calls of tests and still held when its process ended.

    What an import allocated is left out: modules stay.
    """
    blocks = heap.blocks
    group = phases.of_processes.group_at(blocks.process, blocks.birth_ns)
    imports = np.array([*(path.startswith(_IMPORTING) for path in tree.paths), False], np.bool_)
    counts = np.append((charged != NOTHING) & (tree.nearest(imports[tree.file]) == NOTHING), False)
    mine = (group % len(PHASES) == CALL) & counts[np.minimum(blocks.site, len(tree))] & heap.alive_at_end()
    values = np.column_stack((blocks.certain, blocks.beyond, blocks.variance))[mine]
    return TestSizes(places, group[mine], blocks.site[mine], values)
