"""The moments that matter: where the footprint was highest, and where the program was over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct
from tachograph.format.enumerations import DOMAINS, MemoryEvent

from ...recording.process_lifetimes import ProcessLifetimes
from .blocks import Blocks
from .counters import Counters, previous

MAPPED = DOMAINS.index("mapped")

NOTICEABLE = 1 << 20
"""Bytes by which a resident set must have changed for a row that says so (footprint.cpp)."""

PEAK_ERROR = 128 << 10
"""Bytes per thread by which ``peak_bytes`` may be off (tables.toml)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time and the bytes that were held then; NaN where that is not known."""

    time_ns: int
    bytes: float


def gone_ns(counters: Counters, lifetimes: ProcessLifetimes) -> NDArray[np.int64]:
    """Moment after which each process holds nothing: its last row if that says so, else the end of its life."""
    gone = lifetimes.end_ns.copy()
    np.maximum.at(gone, counters.process, counters.time_ns)
    over = counters.event == MemoryEvent.END
    gone[counters.process[over]] = counters.time_ns[over]
    return gone


def together(
    process: NDArray[np.int64], time_ns: NDArray[np.int64], amount: NDArray[np.float64], gone: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum of the latest amounts of all processes that are not gone, for each row in the order of time."""
    last = previous(process)
    change = amount - np.where(last >= 0, amount[last], 0.0)
    final = np.ones(len(process), np.bool_)
    final[last[last >= 0]] = False
    ends, left = gone[process[final]], amount[final]
    order = np.argsort(ends, kind="stable")
    lost = np.concatenate(([0.0], np.cumsum(left[order])))
    return np.asarray(np.cumsum(change) - lost[np.searchsorted(ends[order], time_ns, side="left")], np.float64)


def footprint_at(counters: Counters, blocks: Blocks, process: int, moment_ns: int) -> float:
    """The bytes that a process holds just after a moment: its last row, and what sampled blocks changed since then."""
    rows = counters.of(process)
    rows = rows[~np.isnan(counters.footprint[rows])]
    place = int(np.searchsorted(counters.time_ns[rows], moment_ns, side="right")) - 1
    if place < 0:
        return 0.0 if len(rows) else np.nan
    row = rows[place]
    if place == len(rows) - 1 or counters.time_ns[row] == moment_ns:
        return float(counters.footprint[row])
    since = int(counters.time_ns[row])
    own = blocks.of(process)
    birth, death, size = blocks.birth_ns[own], blocks.death_ns[own], blocks.bytes[own]
    change = size[(birth > since) & (birth <= moment_ns)].sum() - size[(death > since) & (death <= moment_ns)].sum()
    return max(0.0, float(counters.footprint[row]) + float(change))


def mapped_at(counters: Counters, blocks: Blocks, process: int, moment_ns: int) -> float:
    """Bytes that a process holds of mappings made since recording began, in the way of ``footprint_at``.

    Memory of one of the other allocators may be given back to another, so only the sum of their counters is used.
    """
    rows = counters.of(process)
    rows = rows[: int(np.searchsorted(counters.time_ns[rows], moment_ns, side="right"))]
    if not len(rows):
        return 0.0
    opened = counters.event[rows] == MemoryEvent.START
    flows = np.where(opened, 0.0, counters.allocated[rows, MAPPED]) - counters.freed[rows, MAPPED]
    since = int(counters.time_ns[rows[-1]])
    own = blocks.of(process)
    own = own[blocks.domain[own] == MAPPED]
    birth, death, size = blocks.birth_ns[own], blocks.death_ns[own], blocks.bytes[own]
    change = size[(birth > since) & (birth <= moment_ns)].sum() - size[(death > since) & (death <= moment_ns)].sum()
    return max(0.0, float(flows.sum()) + float(change))


def highest(
    counters: Counters,
    blocks: Blocks,
    gone: NDArray[np.int64],
    start_ns: int,
    end_ns: int,
    threads: NDArray[np.int64],
) -> Moment:
    """The highest footprint of all processes together, and when it was.

    ``gone`` says when each process was over (``gone_ns``), ``threads`` has the number of threads of each. The rows tell
    how high it was; where between two rows, the sampled blocks tell.
    """
    rows = np.flatnonzero(~np.isnan(counters.footprint))
    time_ns, process, footprint = counters.time_ns[rows], counters.process[rows], counters.footprint[rows]
    candidates = [Moment(moment, held_at(counters, blocks, gone, moment)) for moment in (start_ns, end_ns)]
    best = max((each for each in candidates if not np.isnan(each.bytes)), key=lambda each: each.bytes, default=None)
    last = previous(process)
    whole = (last >= 0) & (time_ns[last] >= start_ns)
    top = np.where(whole, np.fmax(counters.peak[rows], footprint), footprint)
    value = together(process, time_ns, footprint, gone) - footprint + top
    value = np.where((time_ns >= start_ns) & (time_ns <= end_ns), value, -np.inf)
    place = int(np.argmax(value)) if len(rows) else -1
    if best is None and (place < 0 or value[place] == -np.inf):
        return Moment(start_ns, np.nan)
    if place < 0 or (best is not None and value[place] < best.bytes):
        assert best is not None
        return best
    tolerance = PEAK_ERROR * int(threads[process[place]])
    before = int(rows[last[place]]) if last[place] >= 0 else -1
    moment_ns = _place(counters, blocks, int(rows[place]), before, tolerance)
    # The latest rows of the others may be old by then; what blocks changed since them is known.
    own = int(process[place])
    others = [each for each in distinct(process).tolist() if each != own and gone[each] >= moment_ns]
    held = sum(footprint_at(counters, blocks, each, moment_ns) for each in others)
    return Moment(moment_ns, float(top[place]) + held)


def resident_peak(counters: Counters, gone: NDArray[np.int64], start_ns: int, end_ns: int) -> Moment:
    """The largest sum of the resident sets of processes that lived at the same time; NaN bytes if none was read.

    The time is that of its first reading: memory that was released since may still be resident, in the allocator.
    """
    rows = np.flatnonzero(~np.isnan(counters.resident))
    time_ns = counters.time_ns[rows]
    sums = together(counters.process[rows], time_ns, counters.resident[rows], gone)
    sums = np.where((time_ns >= start_ns) & (time_ns <= end_ns), sums, -np.inf)
    if not len(rows) or sums.max() == -np.inf:
        return Moment(start_ns, np.nan)
    return Moment(int(time_ns[first_at_top(sums)]), float(sums.max()))


def first_at_top(resident: NDArray[np.float64]) -> int:
    """The first of the readings of a resident set that are largest, within the resolution of the readings."""
    return int(np.argmax(resident >= resident.max() - NOTICEABLE))


def unmoved_until(counters: Counters, moment_ns: int, processes: int) -> NDArray[np.int64]:
    """Moment until which the footprint and resident set of each process stayed unchanged, as far as rows tell.

    A writer may scan blocks a while after it read the resident set: the scan counts for that moment as well.
    """
    until = np.full(processes, moment_ns, np.int64)
    for process in distinct(counters.process).tolist():
        rows = counters.of(process)
        rows = rows[~np.isnan(counters.resident[rows])]
        at = int(np.searchsorted(counters.time_ns[rows], moment_ns, side="right")) - 1
        if at < 0:
            continue
        levels = np.stack((counters.resident[rows[at:]], counters.footprint[rows[at:]]))
        moved = np.flatnonzero(~(np.abs(levels - levels[:, :1]) <= NOTICEABLE).all(axis=0))
        stayed = int(moved[0]) if len(moved) else levels.shape[1]
        if stayed > 1:
            until[process] = counters.time_ns[rows[at + stayed - 1]]
    return until


def held_at(counters: Counters, blocks: Blocks, gone: NDArray[np.int64], moment_ns: int) -> float:
    """Bytes that the processes that have not ended hold together."""
    running = [process for process in distinct(counters.process).tolist() if gone[process] >= moment_ns]
    held = [footprint_at(counters, blocks, process, moment_ns) for process in running]
    return float(np.sum(held)) if len(counters) else np.nan


def _place(counters: Counters, blocks: Blocks, row: int, previous: int, tolerance: int) -> int:
    """The moment of the highest footprint since the previous row."""
    end, footprint, peak = int(counters.time_ns[row]), float(counters.footprint[row]), float(counters.peak[row])
    if previous < 0 or not footprint < peak - tolerance:
        return end
    start, before = int(counters.time_ns[previous]), float(counters.footprint[previous])
    if not before < peak - tolerance:
        return start
    own = blocks.of(int(counters.process[row]))
    birth, death, size = blocks.birth_ns[own], blocks.death_ns[own], blocks.bytes[own]
    born, died = (birth > start) & (birth <= end), (death > start) & (death <= end)
    times = np.concatenate((death[died], birth[born]))
    if not len(times):
        return end if footprint >= before else start
    changes = np.concatenate((-size[died], size[born]))
    variance = np.concatenate((blocks.variance[own][died], blocks.variance[own][born]))
    order = np.argsort(times, kind="stable")
    times, curve = times[order], before + np.cumsum(changes[order])
    # The curve must end where the next row says. What it is off by has come with what is unsure: hardly any of it
    # while the last few megabytes were built, if all the rest was dropped after them.
    unsure = np.cumsum(variance[order])
    drift = (footprint - curve[-1]) * (unsure / unsure[-1] if unsure[-1] > 0 else (times - start) / max(end - start, 1))
    return int(times[np.argmax(curve + drift)])
