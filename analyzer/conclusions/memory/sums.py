"""Bytes by site: allocated, released, held at the peak and at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...samples.accumulate import summed
from ...samples.nodes import NodeSums
from ...samples.sites import BEFORE_RECORDING, INHERITED, NOT_SAMPLED
from .blocks import thinned
from .calibration import MAX_FACTOR
from .counters import PYTHON
from .heap import Heap
from .moments import MAPPED, unmoved_until
from .settlement import Parts, missed_variance, moment_variance, settle
from .touched import touched_part

ESTIMATED = ("allocated", "freed", "net", "live_at_peak", "live_at_resident_peak", "live_at_end")
"""What has an interval. For each there are measures NAME_beyond (the part that is estimated) and NAME_variance."""

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


def sum_up(heap: Heap, threads: int, wanted: _Mask | None) -> HeapSums:
    """Sums over the blocks that threads of ``wanted`` (None: all) allocated; ``threads`` is their number."""
    blocks = heap.blocks
    mine = heap.of_threads(wanted)
    followed = _weights_of_followed(heap)
    sums = np.zeros((len(heap.sites), len(MEASURES)))
    by_thread: dict[str, _Floats] = {}
    anchored: dict[str, tuple[float, float]] = {}
    others, unseen = thinned(blocks), dict.fromkeys(_MOMENTS, 0.0)
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
        settled = _settled(heap, name, _domain(heap, mask) == MAPPED, Parts(certain, beyond, variance, missed))
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
        known = thread >= 0
        by_thread[f"{name}_bytes"] = summed(thread[known], total[known], threads)
        if name == "allocated":
            _add(sums, "python_allocated_bytes", site, total * PYTHON[_domain(heap, mask)[kept]])
            _add(sums, "requested_bytes", site, total * blocks.requested[mask][kept])
            _add(sums, "allocation_samples", site, np.ones(len(site)))
    changed = (masks["allocated"] ^ masks["freed"]) & mine
    _add(sums, "net_beyond", blocks.site[changed], blocks.beyond[changed])
    _add(sums, "net_variance", blocks.site[changed], blocks.variance[changed])
    nodes = heap.sites.nodes
    if wanted is None and heap.window.spans is None:
        sums = _with_remainders(heap, sums, unseen)
    # Only now: what has no site is told by what was allocated.
    _subtract_untouched(heap, sums, by_thread, {name: masks[name] & mine for name in _MOMENTS})
    if np.isnan(heap.resident_peak.bytes):
        sums[:, [MEASURES.index(f"live_at_resident_peak_{what}") for what in ("bytes", "beyond", "variance")]] = np.nan
        by_thread["live_at_resident_peak_bytes"] = np.full(threads, np.nan)
    return HeapSums(NodeSums(MEASURES, sums[:nodes], list(heap.sites.labels), sums[nodes:]), by_thread, anchored)


def exact_allocated(heap: Heap) -> float | None:
    """Bytes allocated in the window, where the counters tell."""
    return (
        float(heap.counters.since_start(heap.counters.allocated).sum()) if heap.whole and len(heap.counters) else None
    )


def exact_freed(heap: Heap) -> float | None:
    """Bytes released in the window, where the counters tell."""
    return float(heap.counters.freed.sum()) if heap.whole and len(heap.counters) else None


def _moment(heap: Heap, name: str) -> int | None:
    """The one moment that a measure is about; None if each process has its own."""
    return {"live_at_peak": heap.peak.time_ns, "live_at_resident_peak": heap.resident_peak.time_ns}.get(name)


def _domain(heap: Heap, mask: _Mask) -> NDArray[np.uint8]:
    """Domains; those that this version does not know count as native."""
    domain = heap.blocks.domain[mask]
    return np.where(domain < len(PYTHON), domain, 0)


def _weights_of_followed(heap: Heap) -> _Floats:
    """What the followed blocks of a site stand for, so that they stand for those that were not followed as well."""
    blocks = heap.blocks
    if blocks.followed.all():
        return np.ones(len(blocks))
    everything = summed(blocks.site, blocks.bytes, len(heap.sites))
    followed = summed(blocks.site, blocks.bytes * blocks.followed, len(heap.sites))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(followed > 0, everything / followed, 1.0)
    return np.where(blocks.followed, ratio[blocks.site], 0.0)


def _settled(heap: Heap, name: str, mapped: _Mask, parts: Parts) -> tuple[_Floats, float] | None:
    """By what each estimated part must be multiplied for sums that the counters allow; None if they do not tell.

    With it come the bytes that are in no row.

    What was held before recording began is taken to be held still, as long as sampled blocks themselves leave room for
    it. It may be a part of what was released: so the blocks that were seen make up no more than what the counters say,
    and no less than that without all of the former. Mappings have a sum of their own: that of small blocks is far less
    sure, and must not be taken from theirs.
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
    # At the peak not every process is there; at the end each counts at its own.
    before, unseen = heap.before_at(_moment(heap, name)), float(heap.unseen.sum())
    if name == "freed":
        # Nothing can be released that was not allocated, and what was allocated agrees with the counters already.
        return settle(parts, most - before - unseen, most, 1.0 if heap.whole else MAX_FACTOR)
    # While the program runs, hardly anything of what was there before is released.
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


def _with_remainders(heap: Heap, sums: _Floats, in_no_row: dict[str, float]) -> _Floats:
    """Adds what no sampled block stands for, so that the sums are those of the counters."""
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
            of_forks = min(rest, heap.before_at(_moment(heap, name.removesuffix("_bytes")), heap.forked))
            sums[inherited, column] += of_forks
            sums[before, column] += rest - of_forks
    if heap.whole:
        sums[unseen, MEASURES.index("allocated_bytes")] += heap.unseen.sum()
        sums[unseen, MEASURES.index("python_allocated_bytes")] += heap.unseen[PYTHON].sum()
    return sums


def _subtract_untouched(heap: Heap, sums: _Floats, by_thread: dict[str, _Floats], alive: dict[str, _Mask]) -> None:
    """Counts what of the blocks that were held had not been touched, and takes it off what was resident."""
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
        # The blocks that are looked at are large, and stand for themselves.
        untouched = (blocks.certain * (1.0 - touched_part(heap.looks, blocks, moments_ns)))[held]
        _add(sums, f"untouched_at_{name}_bytes", blocks.site[held], untouched)
        if name == "resident_peak":
            thread, known = blocks.thread[held], blocks.thread[held] >= 0
            column, resident = MEASURES.index("live_at_resident_peak_bytes"), by_thread["live_at_resident_peak_bytes"]
            gone = sums[:, MEASURES.index("untouched_at_resident_peak_bytes")]
            sums[:, column] = np.maximum(0.0, sums[:, column] - gone)
            resident -= summed(thread[known], untouched[known], len(resident))


def _add(sums: _Floats, name: str, site: NDArray[np.int64], values: _Floats) -> None:
    sums[:, MEASURES.index(name)] += summed(site, values, len(sums))
