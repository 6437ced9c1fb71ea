"""Bytes by site: allocated, released, held at the peak and at the end; and averages per visit of a line.

``shares`` weighs the sampled blocks in a measure of the heap, so that the blocks of a site add up to its sum.

``averages`` is the average consumption per visit of a line (Scalene 2023, section 3.3). A row of ``memory`` that was
written because the footprint grew is charged, with all bytes by which it grew since the previous such row, to the line
that made it cross the threshold. Rows whose frames are still in the same execution of that line belong to one visit.
The average is over the visits in which a row was written, of the most that a visit's rows added up to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tachograph.format.enumerations import MemoryEvent

from ...recording.call_tree import NOTHING, CallTree
from ...samples.sites import BEFORE_RECORDING, INHERITED, NOT_SAMPLED, NodeSums
from ...samples.summary import Placement
from ...statistics.grouped_sums import summed
from .blocks import Blocks, thinned, touched_part
from .calibration import MAX_FACTOR, Parts, missed_variance, moment_variance, settle
from .counters import PYTHON
from .heap import Heap
from .moments import MAPPED, unmoved_until

ESTIMATED = ("allocated", "freed", "net", "live_at_peak", "live_at_resident_peak", "live_at_end")
"""Measures with an interval. Each has the measures NAME_beyond (the estimated part) and NAME_variance."""

MEASURES = (
    "allocated_bytes",
    "freed_bytes",
    "live_at_peak_bytes",
    "live_at_resident_peak_bytes",
    "live_at_end_bytes",
    "untouched_at_peak_bytes",
    "untouched_at_resident_peak_bytes",
    "python_allocated_bytes",
    "requested_bytes",
    "requested_at_peak_bytes",
    "allocation_samples",
    *(f"{name}_{what}" for name in ESTIMATED for what in ("beyond", "variance")),
    "allocated_kept_variance",
)
"""Measures of the heap, by node and by label."""

_MOMENTS = ("live_at_peak", "live_at_resident_peak")
_HELD = (*_MOMENTS, "live_at_end")

_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class HeapSums:
    """Sums by site and by thread.

    ``anchored`` has for each name of ``ESTIMATED`` whose sum is known exactly the estimated bytes of all sites and
    their variance, before a choice of threads: then only the division among sites is uncertain. What was allocated is
    known exactly in two parts, that which was kept for a while (``allocated_kept_variance``) and the rest.
    """

    sites: NodeSums
    threads: dict[str, _Floats]
    anchored: dict[str, tuple[float, float]]


def sum_up(heap: Heap, threads: int, selected: _Mask | None) -> HeapSums:
    """Sums over the blocks that threads of ``selected`` (None: all) allocated; ``threads`` is their number."""
    blocks = heap.blocks
    mine = heap.of_threads(selected)
    followed = _weights_of_followed(heap)
    sums = np.zeros((len(heap.sites), len(MEASURES)))
    by_thread: dict[str, _Floats] = {}
    anchored: dict[str, tuple[float, float]] = {}
    others, unseen = thinned(blocks), dict.fromkeys(_MOMENTS, 0.0)
    before: dict[str, _Floats] = {}
    masks = {
        "allocated": heap.allocated_in_window(),
        "freed": heap.freed_in_window(),
        "live_at_peak": heap.held.alive(heap.peak.time_ns),
        "live_at_resident_peak": heap.held.alive(heap.resident_peak.time_ns),
        "live_at_end": heap.alive_at_end(),
    }
    for name, mask in masks.items():
        share = np.ones(len(blocks)) if name == "allocated" else followed
        counted = heap.held if name in _MOMENTS else blocks
        certain, beyond, variance = (
            values[mask] * share[mask] for values in (counted.certain, counted.beyond, counted.variance)
        )
        missed = 0.0
        if name in _MOMENTS:
            variance = share[mask] * moment_variance(blocks, counted, mask, others, len(heap.sites))
            missed = missed_variance(counted, mask, others, heap.start_ns, heap.end_ns)
        before[name] = _left_of_before(heap, name) if name in _HELD else heap.before_by_process()
        parts = Parts(certain, beyond, variance, missed)
        settled = _settled(heap, name, _domain(heap, mask) == MAPPED, parts, float(before[name].sum()))
        if settled is not None:
            factor, in_no_row = settled
            unseen[name] = in_no_row
            # A sum that turns out larger is less sure at least in proportion, one that turns out smaller is surer.
            beyond, variance = beyond * factor, variance * np.maximum(factor, factor**2)
            anchored[name] = (float(beyond.sum()) + in_no_row, float(variance.sum()) + missed)
        if name == "allocated":
            outlived = np.where(heap.kept[mask], variance, 0.0)
            anchored["allocated_kept"] = (float(beyond.sum()), float(outlived.sum()))
            _add(sums, "allocated_kept_variance", blocks.site[mask][mine[mask]], outlived[mine[mask]])
        kept = mine[mask]
        site, thread = blocks.site[mask][kept], blocks.thread[mask][kept]
        total = (certain + beyond)[kept]
        _add(sums, f"{name}_bytes", site, total)
        _add(sums, f"{name}_beyond", site, beyond[kept])
        _add(sums, f"{name}_variance", site, variance[kept])
        if name == "live_at_peak":
            _add(sums, "requested_at_peak_bytes", site, total * blocks.requested[mask][kept])
        has_thread = thread >= 0
        by_thread[f"{name}_bytes"] = summed(thread[has_thread], total[has_thread], threads)
        if name == "allocated":
            _add(sums, "python_allocated_bytes", site, total * PYTHON[_domain(heap, mask)[kept]])
            _add(sums, "requested_bytes", site, total * blocks.requested[mask][kept])
            _add(sums, "allocation_samples", site, np.ones(len(site)))
    changed = (masks["allocated"] ^ masks["freed"]) & mine
    _add(sums, "net_beyond", blocks.site[changed], blocks.beyond[changed])
    _add(sums, "net_variance", blocks.site[changed], blocks.variance[changed])
    nodes = heap.sites.nodes
    if selected is None and heap.window.spans is None:
        sums = _with_remainders(heap, sums, unseen, before)
    # Last, because the rest without a site follows from the allocated bytes.
    _subtract_untouched(heap, sums, by_thread, {name: masks[name] & mine for name in _MOMENTS})
    if np.isnan(heap.resident_peak.bytes):
        sums[:, [MEASURES.index(f"live_at_resident_peak_{what}") for what in ("bytes", "beyond", "variance")]] = np.nan
        by_thread["live_at_resident_peak_bytes"] = np.full(threads, np.nan)
    return HeapSums(NodeSums(MEASURES, sums[:nodes], list(heap.sites.labels), sums[nodes:]), by_thread, anchored)


def exact_allocated(heap: Heap) -> float | None:
    """Bytes allocated in the window, by the counters; None where they have none.

    What a process allocated after its last row, because it was killed or goes on in another window, is in no counter:
    of that its sampled blocks tell.
    """
    counters, blocks = heap.counters, heap.blocks
    if not heap.whole or not len(counters):
        return None
    last_ns = np.full(len(heap.gone_ns), -1, np.int64)
    np.maximum.at(last_ns, counters.process, counters.time_ns)
    later = heap.allocated_in_window() & (blocks.birth_ns > last_ns[blocks.process])
    return float(counters.since_start(counters.allocated).sum()) + float(blocks.bytes[later].sum())


def exact_freed(heap: Heap) -> float | None:
    """Bytes released in the window, by the counters; None where they have none."""
    return float(heap.counters.freed.sum()) if heap.whole and len(heap.counters) else None


def _moment(heap: Heap, name: str) -> int | None:
    """The one moment that a measure is about; None if each process has its own."""
    return {"live_at_peak": heap.peak.time_ns, "live_at_resident_peak": heap.resident_peak.time_ns}.get(name)


def _left_of_before(heap: Heap, name: str) -> _Floats:
    return heap.left_at_peak if name == "live_at_peak" else heap.left_of_before(_moment(heap, name))


def _domain(heap: Heap, mask: _Mask) -> NDArray[np.uint8]:
    """Domains; those that this version does not know count as native."""
    domain = heap.blocks.domain[mask]
    return np.where(domain < len(PYTHON), domain, 0)


def _weights_of_followed(heap: Heap) -> _Floats:
    """Weights of a site's followed blocks that make them stand for those that were not followed as well."""
    blocks = heap.blocks
    if blocks.followed.all():
        return np.ones(len(blocks))
    everything = summed(blocks.site, blocks.bytes, len(heap.sites))
    followed = summed(blocks.site, blocks.bytes * blocks.followed, len(heap.sites))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(followed > 0, everything / followed, 1.0)
    return np.where(blocks.followed, ratio[blocks.site], 0.0)


def _settled(heap: Heap, name: str, mapped: _Mask, parts: Parts, before: float) -> tuple[_Floats, float] | None:
    """Factors of each estimated part for sums that the counters allow; None if there are no counters for it.

    With it come the bytes that are in no row.

    ``before`` is what is held from before recording began. It may be a part of what was released: so the blocks that
    were seen make up no more than what the counters say, and no less than that without all of the former. Mappings have
    a sum of their own: that of small blocks is far less sure, and must not be taken from theirs.
    """
    whole = {
        "live_at_peak": heap.peak.bytes,
        "live_at_resident_peak": heap.held_at_resident_peak,
        "live_at_end": heap.end.bytes,
        "freed": exact_freed(heap),
    }
    if name == "allocated":
        return (np.ones(len(mapped)), 0.0) if heap.whole and len(heap.counters) else None
    most = whole[name]
    if most is None or np.isnan(most) or parts.beyond.sum() <= 0:
        return None
    unseen = float(heap.unseen.sum())
    if name == "freed":
        # Nothing can be released that was not allocated, and what was allocated agrees with the counters already.
        return settle(parts, most - before - unseen, most, 1.0 if heap.whole else MAX_FACTOR)
    most = max(0.0, most - before)
    in_mappings, unseen_there = min(most, heap.mapped_at(_moment(heap, name))), float(heap.unseen[MAPPED])
    factors, in_no_row = np.ones(len(mapped)), 0.0
    for chosen, upper, lost, missed in (
        (mapped, in_mappings, unseen_there, 0.0),
        (~mapped, most - in_mappings, unseen - unseen_there, parts.missed),
    ):
        factors[chosen], left = settle(parts.where(chosen, missed), upper - lost, upper, MAX_FACTOR)
        in_no_row += left
    return factors, in_no_row


def _with_remainders(
    heap: Heap, sums: _Floats, in_no_row: dict[str, float], held_before: Mapping[str, _Floats]
) -> _Floats:
    """Add the bytes that no sampled block stands for, so that the sums are those of the counters."""
    before, unseen = heap.sites.label(BEFORE_RECORDING), heap.sites.label(NOT_SAMPLED)
    inherited = heap.sites.label(INHERITED)
    sums = np.vstack([sums, np.zeros((len(heap.sites) - len(sums), len(MEASURES)))])
    exact = {
        "live_at_peak_bytes": heap.peak.bytes,
        "live_at_resident_peak_bytes": heap.held_at_resident_peak,
        "live_at_end_bytes": heap.end.bytes,
        "freed_bytes": exact_freed(heap),
    }
    for name, whole in exact.items():
        column = MEASURES.index(name)
        if whole is not None and not np.isnan(whole):
            rest = max(0.0, whole - sums[:, column].sum())
            missed = min(rest, in_no_row.get(name.removesuffix("_bytes"), 0.0))
            sums[unseen, column] += missed
            rest -= missed
            left = held_before[name.removesuffix("_bytes")]
            of_forks = min(rest, float(left[heap.forked].sum()))
            older = min(rest - of_forks, float(left.sum()) - of_forks) if heap.whole else rest - of_forks
            sums[inherited, column] += of_forks
            sums[before, column] += older
            # No more than was there can be left of it: a block that was missed, as one of few samples may be.
            sums[unseen, column] += rest - of_forks - older
    if heap.whole:
        sums[unseen, MEASURES.index("allocated_bytes")] += heap.unseen.sum()
        sums[unseen, MEASURES.index("python_allocated_bytes")] += heap.unseen[PYTHON].sum()
    return sums


def _subtract_untouched(heap: Heap, sums: _Floats, by_thread: dict[str, _Floats], alive: dict[str, _Mask]) -> None:
    """Subtract the untouched part of the held blocks from the resident bytes."""
    if heap.looks is None:
        sums[:, MEASURES.index("untouched_at_peak_bytes")] = np.nan
        return
    blocks = heap.blocks
    processes = len(heap.gone_ns)
    looked_ns = {
        "peak": np.full(processes, heap.peak.time_ns),
        "resident_peak": unmoved_until(heap.counters, heap.resident_peak.time_ns, processes),
    }
    for name, moments_ns in looked_ns.items():
        held = alive[f"live_at_{name}"]
        # Scanned blocks are large, and stand for themselves.
        untouched = (blocks.certain * (1.0 - touched_part(heap.looks, blocks, moments_ns)))[held]
        _add(sums, f"untouched_at_{name}_bytes", blocks.site[held], untouched)
        if name == "resident_peak":
            thread, has_thread = blocks.thread[held], blocks.thread[held] >= 0
            column, resident = MEASURES.index("live_at_resident_peak_bytes"), by_thread["live_at_resident_peak_bytes"]
            gone = sums[:, MEASURES.index("untouched_at_resident_peak_bytes")]
            sums[:, column] = np.maximum(0.0, sums[:, column] - gone)
            resident -= summed(thread[has_thread], untouched[has_thread], len(resident))


def _add(sums: _Floats, name: str, site: NDArray[np.int64], values: _Floats) -> None:
    sums[:, MEASURES.index(name)] += summed(site, values, len(sums))


DIVIDED = ("allocated_bytes", "live_at_peak_bytes", "live_at_resident_peak_bytes", "live_at_end_bytes")
"""The measures of ``sums.MEASURES`` that blocks have a share of."""


@dataclass(frozen=True)
class Shares:
    """The blocks that count for a measure, the bytes of each, and the rest of sites without such blocks."""

    blocks: NDArray[np.intp]
    """Their numbers in ``Heap.blocks``."""
    bytes: NDArray[np.float64]
    rest: NDArray[np.float64]
    """By site."""


def shares(heap: Heap, sums: NodeSums, measure: str, selected: NDArray[np.bool_] | None = None) -> Shares:
    """Divides a measure of ``sum_up``'s ``sums``, which are of the threads of ``selected`` (None: all)."""
    counted, mask = _counted(heap, measure)
    column = sums.column(measure)
    whole = np.nan_to_num(np.concatenate([sums.nodes[:, column], sums.stackless[:, column]]))
    mine = np.flatnonzero(mask & heap.of_threads(selected))
    site, size = counted.site[mine], counted.bytes[mine]
    sampled = summed(site, size, len(whole))
    factor = np.divide(whole, sampled, out=np.zeros_like(whole), where=sampled > 0)
    return Shares(mine, size * factor[site], np.where(sampled > 0, 0.0, whole))


def _counted(heap: Heap, measure: str) -> tuple[Blocks, NDArray[np.bool_]]:
    """The blocks as they count for a measure, and which of them do."""
    if measure == "allocated_bytes":
        return heap.blocks, heap.allocated_in_window()
    if measure == "live_at_end_bytes":
        return heap.blocks, heap.alive_at_end()
    moment = heap.peak if measure == "live_at_peak_bytes" else heap.resident_peak
    return heap.held, heap.held.alive(moment.time_ns)


Line = tuple[int, int, int]
"""File, line and (where the line is not known) function."""


@dataclass(slots=True)
class Averages:
    """Numbers of the visits of each charged node, and by visit the bytes by which the footprint grew in it.

    ``grown`` is what a visit has added by its last row, ``most`` the most that it had added at any of its rows: what it
    allocates and releases again, as a dict does that moves to a larger table, is not added up.
    """

    visits: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    grown: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    most: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def by_row(self, placement: Placement) -> NDArray[np.float64]:
        """Bytes per visit, by row of a frame of lines; NaN where no visit was seen, and for functions and files."""
        visits: dict[int, set[int]] = defaultdict(set)
        if placement.kind == "lines":
            for node, own in self.visits.items():
                visits[int(placement.node_rows[node])] |= own
        average = np.full(placement.rows, np.nan)
        for row, distinct in visits.items():
            average[row] = sum(self.most[visit] for visit in distinct) / len(distinct)
        return average


def averages(heap: Heap, tree: CallTree, in_scope: NDArray[np.bool_], selected: NDArray[np.bool_] | None) -> Averages:
    """Bytes and visits of the lines that made the footprint grow in the window."""
    counters, result = heap.counters, Averages()
    charged = tree.nearest(in_scope)
    paths = _Paths(tree)
    grown: dict[int, float] = defaultdict(float)
    previous: dict[int, tuple[list[int], list[int]]] = {}
    net = (counters.since_start(counters.allocated) - counters.freed).sum(axis=1)
    counter = 0
    spans = heap.window.spans
    in_spans = np.ones(len(counters), np.bool_) if spans is None else spans.contains(counters.thread, counters.time_ns)
    for row in range(len(counters)):
        process, thread, stack = int(counters.process[row]), int(counters.thread[row]), int(counters.stack[row])
        grown[process] += float(net[row])
        size = grown[process]
        if counters.event[row] == MemoryEvent.THRESHOLD:
            grown[process] = 0.0
        if thread < 0:
            continue
        if stack < 0:
            previous.pop(thread, None)
            continue
        path = paths.of(stack)
        before_path, before_visits = previous.get(thread, ([], []))
        kept = min(max(int(counters.kept[row]), 0), len(path), len(before_path))
        visits = []
        for depth, node in enumerate(path):
            same = depth < kept and paths.line(before_path[depth]) == paths.line(node)
            kept = kept if same else 0  # a frame under another line is another one
            counter += not same
            visits.append(before_visits[depth] if same else counter)
        previous[thread] = (path, visits)
        node = int(charged[stack])
        inside = heap.start_ns <= counters.time_ns[row] <= heap.end_ns and (selected is None or selected[thread])
        inside &= bool(in_spans[row])
        crossed = counters.event[row] == MemoryEvent.THRESHOLD and counters.kept[row] >= 0
        if not crossed or node == NOTHING or not inside:
            continue
        visit = visits[path.index(node)]
        if size > 0:
            result.visits[node].add(visit)
        if size > 0 or visit in result.grown:
            result.grown[visit] += size
            result.most[visit] = max(result.most[visit], result.grown[visit])
    return result


class _Paths:
    """Paths of stacks from the root, remembered."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self._paths: dict[int, list[int]] = {}

    def of(self, stack: int) -> list[int]:
        """The nodes from the root to a stack."""
        if stack not in self._paths:
            path = [stack]
            while (above := int(self._tree.parent[path[-1]])) != NOTHING:
                path.append(above)
            self._paths[stack] = path[::-1]
        return self._paths[stack]

    def line(self, node: int) -> Line:
        """Key of an instruction's line: two instructions with the same key are on the same line."""
        tree = self._tree
        line = int(tree.line[node])
        return int(tree.file[node]), line, int(tree.function[node]) if line == NOTHING else NOTHING
