"""The moments that matter: where the footprint was highest, and where the program was over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .blocks import Blocks
from .books import END, Books

PEAK_ERROR = 128 << 10
"""Bytes per thread by which ``peak_bytes`` may be off (tables.toml)."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A time and the bytes that were held then; NaN where that is not known."""

    time_ns: int
    bytes: float


def footprint_at(books: Books, blocks: Blocks, process: int, moment_ns: int) -> float:
    """The bytes that a process holds just after a moment: its last row, and what sampled blocks changed since then."""
    rows = books.of(process)
    rows = rows[~np.isnan(books.footprint[rows])]
    place = int(np.searchsorted(books.time_ns[rows], moment_ns, side="right")) - 1
    if place < 0:
        return 0.0 if len(rows) else np.nan
    row = rows[place]
    if place == len(rows) - 1 or books.time_ns[row] == moment_ns:
        return float(books.footprint[row])
    since = int(books.time_ns[row])
    own = blocks.process == process
    born = own & (blocks.birth_ns > since) & (blocks.birth_ns <= moment_ns)
    died = own & (blocks.death_ns > since) & (blocks.death_ns <= moment_ns)
    change = float(blocks.bytes[born].sum() - blocks.bytes[died].sum())
    return max(0.0, float(books.footprint[row]) + change)


def highest(books: Books, blocks: Blocks, start_ns: int, end_ns: int, threads: NDArray[np.int64]) -> Moment:
    """The highest footprint of all processes together, and when it was.

    ``threads`` has the number of threads of each process. The rows tell how high it was; where between two rows, the
    sampled blocks tell.
    """
    rows = np.flatnonzero(~np.isnan(books.footprint))
    known = rows[(books.time_ns[rows] >= start_ns) & (books.time_ns[rows] <= end_ns)]
    together = _together(books, rows)
    previous = _previous(books, rows)
    candidates = [Moment(moment, _at(books, blocks, moment)) for moment in (start_ns, end_ns)]
    best = max((each for each in candidates if not np.isnan(each.bytes)), key=lambda each: each.bytes, default=None)
    highest_row = -1
    for row in known.tolist():
        before = previous[row]
        whole = before >= 0 and books.time_ns[before] >= start_ns
        top = np.fmax(books.peak[row], books.footprint[row]) if whole else books.footprint[row]
        value = float(together[row] - books.footprint[row] + top)
        if best is None or value > best.bytes or (value == best.bytes and highest_row < 0):
            best, highest_row = Moment(int(books.time_ns[row]), value), row
    if best is None:
        return Moment(start_ns, np.nan)
    if highest_row < 0:
        return best
    tolerance = PEAK_ERROR * int(threads[books.process[highest_row]])
    return Moment(_place(books, blocks, highest_row, previous[highest_row], tolerance), best.bytes)


def _at(books: Books, blocks: Blocks, moment_ns: int) -> float:
    """What the processes that have not ended hold together."""
    ended = set(books.process[(books.event == END) & (books.time_ns < moment_ns)].tolist())
    running = [process for process in np.unique(books.process).tolist() if process not in ended]
    held = [footprint_at(books, blocks, process, moment_ns) for process in running]
    return float(np.sum(held)) if len(books) else np.nan


def _together(books: Books, rows: NDArray[np.int64]) -> dict[int, float]:
    """By row, what all processes hold together just after it."""
    held: dict[int, float] = {}
    together = {}
    for row in rows.tolist():
        process = int(books.process[row])
        held[process] = float(books.footprint[row])
        together[row] = sum(held.values())
        if books.event[row] == END:
            held[process] = 0.0
    return together


def _previous(books: Books, rows: NDArray[np.int64]) -> dict[int, int]:
    """By row, the previous one of its process, -1 for the first."""
    last: dict[int, int] = {}
    previous = {}
    for row in rows.tolist():
        process = int(books.process[row])
        previous[row] = last.get(process, -1)
        last[process] = row
    return previous


def _place(books: Books, blocks: Blocks, row: int, previous: int, tolerance: int) -> int:
    """When, since the previous row, the footprint was highest."""
    end, footprint, peak = int(books.time_ns[row]), float(books.footprint[row]), float(books.peak[row])
    if previous < 0 or not footprint < peak - tolerance:
        return end
    start, before = int(books.time_ns[previous]), float(books.footprint[previous])
    if not before < peak - tolerance:
        return start
    own = blocks.process == books.process[row]
    born = own & (blocks.birth_ns > start) & (blocks.birth_ns <= end)
    died = own & (blocks.death_ns > start) & (blocks.death_ns <= end)
    times = np.concatenate((blocks.death_ns[died], blocks.birth_ns[born]))
    if not len(times):
        return end if footprint >= before else start
    changes = np.concatenate((-blocks.bytes[died], blocks.bytes[born]))
    order = np.argsort(times, kind="stable")
    times, curve = times[order], before + np.cumsum(changes[order])
    # The curve must end where the next row says; what it is off by is taken to have grown evenly.
    drift = (footprint - curve[-1]) * (times - start) / max(end - start, 1)
    return int(times[np.argmax(curve + drift)])
