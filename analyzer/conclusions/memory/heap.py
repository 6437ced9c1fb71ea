"""The heap within a window: exact counters, sampled blocks that agree with them, and the moments that matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct
from tachograph.format.enumerations import MemoryEvent

from ...recording.opened import Recording
from ...recording.process_lifetimes import ProcessLifetimes, read_process_lifetimes
from ...recording.time_window import Window
from ...samples.sites import Askers, Sites
from ...statistics.grouped_sums import summed
from .blocks import NEVER, Blocks, Looks, read_blocks, read_looks, smooth_short_lived, thinned
from .calibration import CERTAIN, calibrate, moment_variance
from .counters import Counters, read_counters
from .moments import MAPPED, Moment, footprint_at, gone_ns, held_at, highest, mapped_at, resident_peak

PAGE = 4096
"""Bytes of a sampled page; a mapping that a program makes is larger as a rule."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Heap:
    """The memory of a recording within a window. Times are monotonic; the window is cut to the recording."""

    sites: Sites
    counters: Counters
    blocks: Blocks
    """All sampled blocks, of all times and threads; ``Blocks.bytes`` agrees with the counters."""
    held: Blocks
    """The same blocks as they count for the bytes held at a moment (``smooth_short_lived``)."""
    kept: NDArray[np.bool_]
    """True for blocks that outlived the rows of the counters between which they were born."""
    looks: Looks | None
    """Page scans of large blocks: their resident parts; None where they are unknown."""
    unseen: NDArray[np.float64]
    """By domain, bytes allocated that no sampled block stands for."""
    window: Window
    """The window of the question."""
    zero_ns: int
    """The start of the recording, from which seconds are counted."""
    start_ns: int
    end_ns: int
    start: Moment
    """Bytes held at the beginning of the window, or of the recording."""
    peak: Moment
    resident_peak: Moment
    """The largest resident sets of all processes together, as far as they were read."""
    held_at_resident_peak: float
    """The footprint then; NaN where that is not known."""
    ends_ns: NDArray[np.int64]
    """End of each process: its interpreter began to shut down, or it ended, or the window does."""
    end: Moment
    """Bytes held by all processes, each at its own end; the time is that of the last one."""
    lifetimes: ProcessLifetimes
    gone_ns: NDArray[np.int64]
    """By process, the moment after which it held nothing (``moments.gone_ns``)."""
    present: NDArray[np.bool_]
    """True for processes that have counters or blocks and were alive in the window."""
    counted: NDArray[np.int64]
    """Those of them that have counters."""
    before: dict[int, float]
    """Bytes by process that it held when recording, or the window of a rotated one, began, and that no sampled block
    covers: those of an earlier window do."""
    forked: NDArray[np.bool_]
    """True for processes that began with a copy of their parent's memory: it is what they held before recording."""

    @property
    def whole(self) -> bool:
        """True if the window leaves nothing out."""
        return self.window.whole

    def of_threads(self, threads: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Mask of the blocks that ``threads`` (None: all) allocated, within the spans of the window if it has any."""
        blocks = self.blocks
        mine = np.ones(len(blocks), np.bool_)
        if threads is not None:
            # A block of no thread of the program's has the thread -1, the last entry here.
            mine &= np.append(threads, False)[blocks.thread]
        if self.window.spans is not None:
            tracks = self.window.tracks
            thread = blocks.thread if tracks is None else tracks.of(blocks.thread, blocks.span)
            mine &= self.window.spans.contains(thread, blocks.birth_ns)
        return mine

    def allocated_in_window(self) -> NDArray[np.bool_]:
        """True for blocks that were allocated in the window."""
        inside: NDArray[np.bool_] = (self.blocks.birth_ns >= self.start_ns) & (self.blocks.birth_ns <= self.end_ns)
        return inside

    def freed_in_window(self) -> NDArray[np.bool_]:
        """True for blocks that are known to have been released in the window."""
        blocks = self.blocks
        inside: NDArray[np.bool_] = (blocks.death_ns >= self.start_ns) & (blocks.death_ns <= self.end_ns)
        return inside & blocks.followed

    def alive_at_end(self) -> NDArray[np.bool_]:
        """True for blocks that their process held at its end."""
        # By their own deaths: at the end every sampled block was checked, so nothing needs to be spread.
        process = self.blocks.process
        return self.blocks.alive(self.ends_ns[process]) & self.present[process]

    def before_by_process(self) -> _Floats:
        """Bytes held before recording began, of the processes that are present."""
        before = np.zeros(len(self.gone_ns))
        before[list(self.before)] = list(self.before.values())
        return np.where(self.present, before, 0.0)

    @cached_property
    def left_at_peak(self) -> _Floats:
        """``left_of_before`` at the peak, which the sums by line and the summary of processes ask for."""
        return self.left_of_before(self.peak.time_ns)

    def left_of_before(self, moment_ns: int | None) -> _Floats:
        """Bytes by process that were held before recording began and still are at a moment (None: at its own end).

        While a program runs it releases hardly any of them, and all are taken to be held still: unless the sampled
        blocks leave no room for them, by more than chance does. So of a forked process that releases what it inherited.
        """
        left = self.before_by_process()
        if moment_ns is None:
            counted, alive = self.blocks, self.alive_at_end()
        else:
            left = np.where(self._there(moment_ns), left, 0.0)
            counted, alive = self.held, self.held.alive(moment_ns)
        process = counted.process[alive]
        variance = moment_variance(self.blocks, counted, alive, thinned(self.blocks), len(self.sites))
        sampled, spread = (summed(process, values, len(left)) for values in (counted.bytes[alive], variance))
        for each in self.counted[left[self.counted] > 0].tolist():
            then = int(self.ends_ns[each]) if moment_ns is None else moment_ns
            released = left[each] + sampled[each] - footprint_at(self.counters, counted, each, then)
            if released > CERTAIN * np.sqrt(spread[each]):
                left[each] = max(0.0, left[each] - released)
        return left

    def mapped_at(self, moment_ns: int | None) -> float:
        """Bytes of mappings that the processes held at a moment (None: each at its own end)."""
        if moment_ns is None:
            return sum(mapped_at(self.counters, self.blocks, each, int(self.ends_ns[each])) for each in self.counted)
        living = [each for each in self.counted.tolist() if self.gone_ns[each] >= moment_ns]
        return sum(mapped_at(self.counters, self.held, each, moment_ns) for each in living)

    def _there(self, moment_ns: int) -> NDArray[np.bool_]:
        return (self.lifetimes.start_ns <= moment_ns) & (self.gone_ns >= moment_ns)


def read_heap(
    recording: Recording,
    window: Window,
    selected: NDArray[np.bool_] | None = None,
    sites: Sites | None = None,
    collecting: NDArray[np.bool_] | None = None,
) -> Heap | None:
    """The heap of the part of a recording that lies in ``window``; None if memory was not recorded.

    ``selected`` is the mask of the processes; None: all. ``sites`` are used where they are known already.
    ``collecting`` is the mask of the nodes of the call tree that are garbage collections.
    """
    if not recording.recorded("memory") and not recording.recorded("allocations"):
        return None
    sites = Sites(recording) if sites is None else sites
    counters, lifetimes = read_counters(recording, selected), read_process_lifetimes(recording)
    blocks = read_blocks(recording, sites, selected)
    if collecting is not None and sites.askers is not None:
        blocks = _off_collector(blocks, sites.askers, collecting)
    calibrated = calibrate(blocks, counters)
    blocks = calibrated.blocks
    processes = distinct(np.concatenate((counters.process, blocks.process)))
    begin = int(lifetimes.start_ns[processes].min()) if len(processes) else recording.start_ns
    last = recording.end_ns
    if last is None:
        last = max([begin, *counters.time_ns[-1:].tolist(), *blocks.birth_ns[-1:].tolist()])
    start_ns = max(begin, window.start_ns)
    # The window is open at its end; the recording is not.
    end_ns = max(start_ns, last if window.end_ns > last else window.end_ns - 1)
    gone = gone_ns(counters, lifetimes)
    whole = (lifetimes.start_ns >= start_ns) & (lifetimes.end_ns <= end_ns)
    counters = counters.with_most_resident(np.where(whole, recording.all_processes.max_resident_bytes.floats(), np.nan))
    present = np.zeros(len(gone), np.bool_)
    present[processes] = (lifetimes.start_ns[processes] <= end_ns) & (gone[processes] >= start_ns)
    held = _released(smooth_short_lived(blocks, sites.callers()), gone, processes)
    ends_ns = _ends(recording, lifetimes, end_ns)
    threads = recording.all_threads.per_process
    counted = distinct(counters.process)
    counted = counted[present[counted]]
    counted_processes = counted.tolist()
    before = counters.before()
    at_start = [
        # The first row of the counters comes a moment after the process.
        before.get(process, np.nan) if start_ns <= begin else footprint_at(counters, held, process, start_ns)
        for process in counted_processes
        if lifetimes.start_ns[process] <= start_ns
    ]
    at_end = [footprint_at(counters, blocks, process, int(ends_ns[process])) for process in counted_processes]
    resident = resident_peak(counters, gone, start_ns, end_ns)
    return Heap(
        sites=sites,
        counters=counters,
        blocks=blocks,
        held=held,
        kept=calibrated.kept,
        looks=read_looks(recording),
        unseen=calibrated.unseen,
        window=window,
        zero_ns=recording.start_ns,
        start_ns=start_ns,
        end_ns=end_ns,
        start=Moment(start_ns, float(np.sum(at_start)) if counted_processes else np.nan),
        peak=highest(counters, held, gone, start_ns, end_ns, threads),
        resident_peak=resident,
        held_at_resident_peak=np.nan if np.isnan(resident.bytes) else held_at(counters, held, gone, resident.time_ns),
        ends_ns=ends_ns,
        end=Moment(
            int(max((ends_ns[process] for process in counted_processes), default=end_ns)),
            float(np.sum(at_end)) if counted_processes else np.nan,
        ),
        lifetimes=lifetimes,
        gone_ns=gone,
        present=present,
        counted=counted,
        before=_unsampled(before, counters, blocks),
        forked=np.array([origin == "fork" for origin in recording.all_processes.origin], np.bool_),
    )


def _off_collector(blocks: Blocks, askers: Askers, collecting: NDArray[np.bool_]) -> Blocks:
    """Pages that threads of a library touched while Python collected garbage belong to the callers of these threads.

    A page of reserved address space is charged to the Python code that runs when it is found. A collection touches no
    new pages of a library's allocator.
    """
    pages = np.flatnonzero(
        (blocks.domain == MAPPED) & (blocks.certain == PAGE) & (blocks.site >= 0) & (blocks.site < len(collecting))
    )
    pages = pages[collecting[blocks.site[pages]]]
    callers = askers.in_process(blocks.process[pages].astype(np.int64), blocks.birth_ns[pages])
    site = blocks.site.copy()
    site[pages] = np.where(callers >= 0, callers, site[pages])
    return replace(blocks, site=site)


def _unsampled(before: dict[int, float], counters: Counters, blocks: Blocks) -> dict[int, float]:
    """Bytes that were held at first (``before``), by process, without the sampled blocks that were held then."""
    first: dict[int, int] = {}
    rows = np.flatnonzero(counters.event == MemoryEvent.START)
    for process, time_ns in zip(counters.process[rows].tolist(), counters.time_ns[rows].tolist(), strict=True):
        first.setdefault(process, time_ns)
    begun_ns = np.zeros(max([*first, *blocks.process.tolist()], default=-1) + 1, np.int64)
    begun_ns[list(first)] = list(first.values())
    carried = np.flatnonzero(blocks.birth_ns < begun_ns[blocks.process])
    carried = carried[blocks.death_ns[carried] > begun_ns[blocks.process[carried]]]
    sampled = summed(blocks.process[carried], blocks.bytes[carried], len(begun_ns))
    return {process: max(0.0, held - float(sampled[process])) for process, held in before.items()}


def _released(blocks: Blocks, gone: NDArray[np.int64], processes: NDArray[np.int64]) -> Blocks:
    """The blocks as they are held: a process that ends before the last one gives back all of its own."""
    last = int(gone[processes].max()) if len(processes) else 0
    end = np.where(gone < last, gone, NEVER)[blocks.process]
    # One that is held at the very end was held there: it is gone just after that.
    return replace(blocks, death_ns=np.where(blocks.death_ns > end, end + 1, blocks.death_ns))


def _ends(recording: Recording, lifetimes: ProcessLifetimes, end_ns: int) -> NDArray[np.int64]:
    """End of each process, no later than ``end_ns``."""
    exiting = recording.all_processes.exiting_ns.filled(NEVER)
    return np.asarray(np.minimum(np.minimum(exiting, lifetimes.end_ns), end_ns), np.int64)
