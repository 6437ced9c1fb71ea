"""Where the memory of a process is: held by blocks, kept by allocators, pages of files, shared memory, and the rest.

A reading of the table ``memory_parts`` says how many pages each part of the address space has in memory. Beside it is a
row of the counters, which has what the allocators have handed out. What an allocator has in memory and has not handed
out it keeps: in the hope that the program asks for it again, or because a block that lives lies on the same pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import floats, ids, numbers
from tachograph.format.enumerations import MemoryPart

from ...recording.frame import Frame
from ...recording.opened import Recording
from .blocks import NEVER
from .counters import Counters
from .heap import Heap
from .moments import MAPPED

MALLOC, PYMALLOC = "malloc", "pymalloc"

PYARROW, OTHERS = "mimalloc or jemalloc of pyarrow", "other libraries"

_LIBRARIES = {
    "libarrow": PYARROW,
    "polars": "jemalloc of polars",
    "duckdb": "jemalloc of duckdb",
    "mimalloc": "mimalloc",
    "jemalloc": "jemalloc",
    "tcmalloc": "tcmalloc",
}
"""Parts of the names of libraries that bring an allocator, and what that is called."""

UNEXPLAINED, LEAST_UNEXPLAINED = 0.05, 16e6
"""Where statistics leave out more of a library's pages, as a share and in bytes, it has another allocator as well."""

MAX_POINTS = 100
"""Points of time of a process, at most."""

AT_END_NS = 250_000_000
"""The reading where the interpreter begins to shut down is made so shortly before that is told."""

_COLUMNS = (
    "size_bytes",
    "resident_bytes",
    "anonymous_bytes",
    "private_anonymous_bytes",
    "private_bytes",
    "proportional_bytes",
    "swapped_bytes",
    "lazily_free_bytes",
    "live_bytes",
    "sparse_bytes",
    "sparse_live_bytes",
)


@dataclass(frozen=True)
class Kept:
    """What an allocator keeps. Bytes; None is unknown."""

    allocator: str
    bytes: float | None
    resident_bytes: float
    """What it has in memory, its live blocks included."""


@dataclass(frozen=True)
class Division:
    """The division of resident memory, of a process or of several. Bytes; None is unknown.

    ``live_bytes``, ``kept_bytes``, ``file_bytes``, ``shared_bytes`` and ``other_bytes`` add up to ``resident_bytes``,
    where all are known.
    """

    resident_bytes: float
    live_bytes: float | None
    """Held by blocks and mappings that live, as far as they are in memory."""
    kept_bytes: float | None
    """Kept by allocators; what is not known of ``kept_by`` is in ``live_bytes``."""
    kept_by: tuple[Kept, ...]
    file_bytes: float
    """Pages of files, code included."""
    shared_bytes: float
    other_bytes: float
    """``stacks_bytes``, ``library_data_bytes``, ``recorder_bytes`` and ``unexplained_bytes``."""
    stacks_bytes: float
    library_data_bytes: float
    """Pages of files that were written to and are in no file: variables of libraries, and other private mappings."""
    recorder_bytes: float
    unexplained_bytes: float
    private_bytes: float
    """What no other process has mapped."""
    proportional_bytes: float
    """Each page divided by the number of processes that have it mapped (PSS)."""
    swapped_bytes: float
    sparse_bytes: float | None
    """Pages of those pools of small blocks of which at most a quarter is in use."""
    sparse_live_bytes: float | None
    malloc_sparse_bytes: float | None
    """Pages of malloc's heaps with live blocks that take at most a quarter of them; at the last reading before."""
    malloc_sparse_live_bytes: float | None
    copied_after_fork_bytes: float | None
    """Pages of forked processes that were shared with the parent and have been copied since; None of none forked."""
    later_at_most_bytes: float | None = None
    """Of processes that a signal ended: at most so much more was resident after their last readings, by the kernel's
    own mark of the largest resident set. None: of none, or unknown.
    """


@dataclass(frozen=True)
class Verdict:
    """A judgement about memory: ``leak``, ``cache``, ``kept``, ``fragmented`` or ``copied-after-fork``.

    ``pinned_by_bytes`` are the live blocks on pages that are fragmented. A line is that of a leak or a cache, or the
    one with most small blocks of the allocator that live among others that were released.
    """

    verdict: str
    bytes: float
    allocator: str | None = None
    pinned_by_bytes: float | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None


@dataclass(frozen=True)
class Where:
    """The division of all processes together at one moment, of each at its last reading, and over time.

    The moment is the last reading of a single process; of several processes that at which their resident sets were
    largest together.
    """

    time_s: float
    whole: Division
    processes: tuple[tuple[int, float, Division], ...]
    """Process, time of its last reading in seconds, division."""
    timeline: Frame
    """time_s, process, and the parts, a row for each reading."""
    verdicts: tuple[Verdict, ...] = ()

    def with_verdicts(self, verdicts: Iterable[Verdict]) -> Where:
        """The same with judgements."""
        return replace(self, verdicts=tuple(verdicts))

    def document(self) -> dict[str, Any]:
        """Objects and lists, as JSON has them."""
        return {
            "time_s": self.time_s,
            **asdict(self.whole),
            "processes": [
                {"process": process, "time_s": time_s, **asdict(division)}
                for process, time_s, division in self.processes
            ],
            "timeline": list(self.timeline.rows()),
            "verdicts": [asdict(each) for each in self.verdicts],
        }


_HEAPS = (MemoryPart.HEAP, MemoryPart.ARENAS)
_WITHIN = (MemoryPart.POOLS, MemoryPart.ALLOCATORS)
"""Parts that lie within others."""
_PARTS = ("live_bytes", "kept_bytes", "file_bytes", "shared_bytes", "other_bytes")
_Reading = dict[tuple[int, int], dict[str, float]]


def find_where(recording: Recording, heap: Heap) -> Where | None:
    """The division in the heap's window; None if it was not recorded, or no process lived for long enough."""
    readings = _readings(recording, heap)
    if not readings:
        return None
    answering = {frame for reading in readings.values() for part, frame in reading if part == MemoryPart.ALLOCATORS}
    allocators, counted = _allocators(recording, answering), _Counted(heap.counters)
    readings = dict(sorted(readings.items()))
    last: dict[int, int] = {}
    for process, time_ns in readings:
        last[process] = max(time_ns, last.get(process, 0))
    exiting_ns, arrow = recording.all_processes.exiting_ns, recording.all_processes.pyarrow_live_bytes.floats()
    # Libraries are asked where the interpreter begins to shut down: of the reading that is made then.
    arrow_live = {
        (process, time_ns): arrow[process]
        for process, time_ns in last.items()
        if time_ns >= exiting_ns.filled(NEVER)[process] - AT_END_NS
    }
    divisions = {
        key: _division(heap, key[0], reading, counted.at(*key), allocators, arrow_live.get(key, np.nan))
        for key, reading in readings.items()
    }
    _carry_malloc(divisions)
    _tell_later(recording, divisions, last)
    moment = max(last.values()) if len(last) == 1 else _largest(heap, divisions)
    at_moment = _at(heap, divisions, moment)
    rows = [
        (_seconds(heap, time_ns), process, each.resident_bytes, *(_number(getattr(each, part)) for part in _PARTS))
        for (process, time_ns), each in divisions.items()
    ]
    return Where(
        time_s=_seconds(heap, moment),
        whole=_sum(at_moment),
        processes=tuple(
            (process, _seconds(heap, time_ns), divisions[process, time_ns]) for process, time_ns in sorted(last.items())
        ),
        timeline=Frame.of_rows(sorted(rows), ("time_s", "process", "resident_bytes", *_PARTS)),
    )


def _readings(recording: Recording, heap: Heap) -> dict[tuple[int, int], _Reading]:
    """By process and time the parts, which are keyed by part and native frame: at most ``MAX_POINTS`` of a process."""
    if not recording.rows("memory_parts"):
        return {}
    chosen = _chosen(recording, heap)
    readings: dict[tuple[int, int], _Reading] = {}
    for batch in recording.batches("memory_parts", ("time_ns", "process", "part", "native_frame", *_COLUMNS)):
        time_ns, part = numbers(batch.column("time_ns")), numbers(batch.column("part"))
        process, frame = numbers(batch.column("process")), ids(batch.column("native_frame"))
        amounts = [floats(batch.column(name)) for name in _COLUMNS]
        for row in np.flatnonzero(np.isin(time_ns, chosen)).tolist():
            owner, moment = int(process[row]), int(time_ns[row])
            if not heap.present[owner]:
                continue
            parts = readings.setdefault((owner, moment), {})
            key = int(part[row]), int(frame[row])
            before = parts.get(key, {})
            parts[key] = {
                name: float(values[row]) + before.get(name, 0.0) for name, values in zip(_COLUMNS, amounts, strict=True)
            }
    counted = set(heap.counted.tolist())
    return {key: reading for key, reading in readings.items() if key[0] in counted}


def _chosen(recording: Recording, heap: Heap) -> NDArray[np.int64]:
    """Times of readings of each process, evenly, the last one among them."""
    process, time_ns = (
        np.concatenate(
            [numbers(batch.column(name)).astype(np.int64) for batch in recording.batches("memory_parts", (name,))]
        )
        for name in ("process", "time_ns")
    )
    inside = (time_ns >= heap.start_ns) & (time_ns <= heap.end_ns)
    pairs = np.unique(np.stack((process[inside], time_ns[inside]), axis=1), axis=0)
    if not len(pairs):
        return pairs[:, 1]
    first = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
    exiting = recording.all_processes.exiting_ns.filled(NEVER)[pairs[first, 0]]
    times = [_before(end, own) for end, own in zip(exiting, np.split(pairs[:, 1], first[1:]), strict=True)]
    return np.concatenate([own[::-1][:: -(-len(own) // MAX_POINTS)] for own in times])


def _before(exiting_ns: int, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Readings from before the interpreter released all it had; of a process without one, all of them."""
    before = times[times <= exiting_ns]
    return before if len(before) else times


def _allocators(recording: Recording, answering: Collection[int]) -> dict[int, str]:
    """The name of a library's own allocator by native frame in the library, as far as it is known.

    ``answering`` are frames of jemalloc's functions that were asked.
    """
    frames, modules = recording.table("native_frames"), recording.table("modules")
    paths = modules.column("path").to_pylist()
    named: dict[int, str] = {}
    modules_of = ids(frames.column("module"))
    has_jemalloc = set(modules_of[[frame for frame in answering if frame >= 0]].tolist())
    for frame, module in enumerate(modules_of.tolist()):
        path = paths[module] if module >= 0 else ""
        name = next((name for part, name in _LIBRARIES.items() if part in path), None)
        if name is None and module >= 0 and module in has_jemalloc:
            name = f"jemalloc of {PurePosixPath(path).name.partition('.')[0]}"
        if name is not None:
            named[frame] = name
    return named


def _division(
    heap: Heap,
    process: int,
    reading: _Reading,
    counted: tuple[float | None, float],
    allocators: Mapping[int, str],
    arrow_live: float,
) -> Division:
    def part(which: MemoryPart, column: str = "resident_bytes") -> float:
        return float(np.nansum([row[column] for (number, _), row in reading.items() if number == which]))

    def known(which: MemoryPart, column: str) -> float | None:
        values = [row[column] for (number, _), row in reading.items() if number == which]
        return None if any(map(np.isnan, values)) else float(sum(values))

    mapped_rows = {key: row for key, row in reading.items() if key[0] not in _WITHIN}
    resident = sum(row["resident_bytes"] for row in mapped_rows.values())
    in_heaps = part(MemoryPart.HEAP) + part(MemoryPart.ARENAS)
    pools, pools_live = part(MemoryPart.POOLS), known(MemoryPart.POOLS, "live_bytes")
    chunks = known(MemoryPart.ANONYMOUS, "live_bytes")
    anonymous = max(0.0, part(MemoryPart.ANONYMOUS) - pools)
    reserved = part(MemoryPart.RESERVED)
    held, mapped = counted
    libraries = _libraries(reading, allocators, arrow_live)
    kept_by_libraries = sum(each.bytes or 0.0 for each in libraries)
    unexplained = 0.0
    live: float | None = None
    kept: float | None = None
    by: list[Kept] = []
    if held is not None and pools_live is not None:
        small_mappings = max(0.0, mapped - reserved)
        if chunks is None:
            # An allocator in place of the C library's: what it has in memory is not told from other mappings.
            in_heaps, anonymous, chunks = in_heaps + anonymous, 0.0, 0.0
        in_use = min(max(0.0, held - mapped - pools_live - chunks), in_heaps)
        in_mappings = min(anonymous, chunks + small_mappings)
        unexplained = anonymous - in_mappings
        by = [Kept(MALLOC, in_heaps - in_use, in_heaps)]
        if pools > 0:
            by.append(Kept(PYMALLOC, max(0.0, pools - pools_live), pools))
        kept = sum(each.bytes or 0.0 for each in by) + kept_by_libraries
        live = in_use + min(pools_live, pools) + in_mappings + reserved - kept_by_libraries
    data = part(MemoryPart.FILES, "anonymous_bytes")
    stacks, recorder = part(MemoryPart.STACKS), part(MemoryPart.RECORDER)
    return Division(
        resident_bytes=resident,
        live_bytes=live,
        kept_bytes=kept,
        kept_by=(*by, *libraries),
        file_bytes=part(MemoryPart.FILES) - data,
        shared_bytes=part(MemoryPart.SHARED),
        other_bytes=stacks + data + recorder + unexplained,
        stacks_bytes=stacks,
        library_data_bytes=data,
        recorder_bytes=recorder,
        unexplained_bytes=unexplained,
        private_bytes=float(np.nansum([row["private_bytes"] for row in mapped_rows.values()])),
        proportional_bytes=float(np.nansum([row["proportional_bytes"] for row in mapped_rows.values()])),
        swapped_bytes=float(np.nansum([row["swapped_bytes"] for row in mapped_rows.values()])),
        sparse_bytes=known(MemoryPart.POOLS, "sparse_bytes"),
        sparse_live_bytes=known(MemoryPart.POOLS, "sparse_live_bytes"),
        malloc_sparse_bytes=_both(known(part, "sparse_bytes") for part in _HEAPS),
        malloc_sparse_live_bytes=_both(known(part, "sparse_live_bytes") for part in _HEAPS),
        copied_after_fork_bytes=_copied(heap, process, mapped_rows) if heap.forked[process] else None,
    )


def _libraries(reading: _Reading, allocators: Mapping[int, str], arrow_live: float) -> list[Kept]:
    """What allocators of libraries keep, as far as it is known; ``arrow_live`` is what pyarrow allocated, or NaN."""
    kept = []
    pages: dict[str, float] = {}
    live: dict[str, float] = {}
    for (number, frame), row in reading.items():
        free = row["lazily_free_bytes"]
        name = allocators.get(frame, OTHERS)
        if number == MemoryPart.RESERVED and (frame in allocators or free > 0):
            kept.append(Kept(name, free if free > 0 else None, row["resident_bytes"]))
        elif number == MemoryPart.ALLOCATORS:
            pages[name] = pages.get(name, 0.0) + row["size_bytes"]
            live[name] = live.get(name, 0.0) + row["live_bytes"]

    def told(each: Kept) -> Kept:
        if each.allocator == PYARROW and not np.isnan(arrow_live):
            return replace(each, bytes=max(0.0, each.resident_bytes - arrow_live))
        in_pages = pages.get(each.allocator, np.nan)
        if not each.resident_bytes - in_pages <= max(LEAST_UNEXPLAINED, UNEXPLAINED * each.resident_bytes):
            return each
        # Pages that were never touched are not in memory, and its own tables are no free pages.
        free = max(0.0, min(in_pages, each.resident_bytes) - live[each.allocator])
        return replace(each, bytes=free)

    return [told(each) for each in _joined(kept)]


class _Counted:
    """The footprint and the part of it in mappings at the rows of the counters, by process."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._mapped: dict[int, NDArray[np.float64]] = {}

    def at(self, process: int, time_ns: int) -> tuple[float | None, float]:
        """At the row beside a reading: the footprint (None: unknown), and the part of it in mappings."""
        counters, rows = self._counters, self._counters.of(process)
        if process not in self._mapped:
            self._mapped[process] = np.cumsum(counters.allocated[rows, MAPPED] - counters.freed[rows, MAPPED])
        place = min(int(np.searchsorted(counters.time_ns[rows], time_ns)), len(rows) - 1)
        footprint = float(counters.footprint[rows[place]])
        return None if np.isnan(footprint) else footprint, max(0.0, float(self._mapped[process][place]))


def _carry_malloc(divisions: dict[tuple[int, int], Division]) -> None:
    """Not every reading looks at malloc's blocks: those that do not have what the process's last one found."""
    latest: dict[int, Division] = {}
    for key, division in divisions.items():
        if division.malloc_sparse_bytes is not None:
            latest[key[0]] = division
        elif (before := latest.get(key[0])) is not None:
            divisions[key] = replace(
                division,
                malloc_sparse_bytes=before.malloc_sparse_bytes,
                malloc_sparse_live_bytes=before.malloc_sparse_live_bytes,
            )


def _tell_later(recording: Recording, divisions: dict[tuple[int, int], Division], last: Mapping[int, int]) -> None:
    """Sets ``later_at_most_bytes`` of the last reading of each process that a signal ended."""
    processes = recording.all_processes
    status, most = processes.exit_status.filled(0), processes.max_resident_bytes.floats()
    for process, time_ns in last.items():
        if status[process] < 0 and not np.isnan(most[process]):
            division = divisions[process, time_ns]
            later = max(0.0, float(most[process]) - division.resident_bytes)
            divisions[process, time_ns] = replace(division, later_at_most_bytes=later)


def _both(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(_HEAPS) else None


def _copied(heap: Heap, process: int, rows: _Reading) -> float:
    """Pages of no file that are a forked process's own, without those that it has got in addition.

    What it shared at first is its first resident set: pages of files are mapped anew.
    """
    counters = heap.counters
    own = counters.of(process)
    measured = own[~np.isnan(counters.resident[own])]
    private = float(np.nansum([row["private_anonymous_bytes"] for row in rows.values()]))
    anonymous = float(np.nansum([row["anonymous_bytes"] for row in rows.values()]))
    first = float(counters.resident[measured[0]]) if len(measured) else anonymous
    return max(0.0, private - max(0.0, anonymous - first))


def _joined(kept: Sequence[Kept]) -> list[Kept]:
    """One entry for each allocator."""
    joined: dict[str, Kept] = {}
    for each in kept:
        before = joined.get(each.allocator)
        if before is None:
            joined[each.allocator] = each
            continue
        known = [size for size in (before.bytes, each.bytes) if size is not None]
        joined[each.allocator] = Kept(
            each.allocator, sum(known) if known else None, before.resident_bytes + each.resident_bytes
        )
    return list(joined.values())


def _at(heap: Heap, divisions: Mapping[tuple[int, int], Division], moment_ns: int) -> list[Division]:
    """The division of each process that is there at a moment: at its last reading before, else at its first."""
    found: dict[int, tuple[int, Division]] = {}
    for (process, time_ns), division in divisions.items():
        if heap.lifetimes.start_ns[process] > moment_ns or heap.gone_ns[process] < moment_ns:
            continue
        rank = time_ns if time_ns <= moment_ns else -time_ns
        if process not in found or rank > found[process][0]:
            found[process] = rank, division
    return [division for _, division in found.values()]


def _largest(heap: Heap, divisions: Mapping[tuple[int, int], Division]) -> int:
    """The reading at which the resident sets were largest together."""
    moments = sorted({time_ns for _, time_ns in divisions})
    if len(moments) > 4 * MAX_POINTS:
        moments = moments[:: len(moments) // (4 * MAX_POINTS)]
    sums = [sum(each.resident_bytes for each in _at(heap, divisions, moment)) for moment in moments]
    return moments[int(np.argmax(sums))]


def _sum(divisions: Sequence[Division]) -> Division:
    def total(name: str) -> float:
        return float(sum(getattr(each, name) for each in divisions))

    def known(name: str, *, all_known: bool = True) -> float | None:
        values = [getattr(each, name) for each in divisions]
        there = [value for value in values if value is not None]
        return None if not there or (all_known and len(there) < len(values)) else float(sum(there))

    return Division(
        resident_bytes=total("resident_bytes"),
        live_bytes=known("live_bytes"),
        kept_bytes=known("kept_bytes"),
        kept_by=tuple(_joined([kept for each in divisions for kept in each.kept_by])),
        file_bytes=total("file_bytes"),
        shared_bytes=total("shared_bytes"),
        other_bytes=total("other_bytes"),
        stacks_bytes=total("stacks_bytes"),
        library_data_bytes=total("library_data_bytes"),
        recorder_bytes=total("recorder_bytes"),
        unexplained_bytes=total("unexplained_bytes"),
        private_bytes=total("private_bytes"),
        proportional_bytes=total("proportional_bytes"),
        swapped_bytes=total("swapped_bytes"),
        sparse_bytes=known("sparse_bytes"),
        sparse_live_bytes=known("sparse_live_bytes"),
        malloc_sparse_bytes=known("malloc_sparse_bytes"),
        malloc_sparse_live_bytes=known("malloc_sparse_live_bytes"),
        copied_after_fork_bytes=known("copied_after_fork_bytes", all_known=False),
        later_at_most_bytes=known("later_at_most_bytes", all_known=False),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _seconds(heap: Heap, moment_ns: int) -> float:
    return (moment_ns - heap.zero_ns) / 1e9


__all__ = ["Division", "Kept", "Verdict", "Where", "find_where"]
