"""How much of the large blocks was in memory: what a program allocates and has not touched takes up none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import numbers

from ...recording.opened import Recording
from .blocks import Blocks, sizes

_COLUMNS = ("time_ns", "process", "block", "resident_bytes")


@dataclass(frozen=True)
class Looks:
    """One entry per row of the table ``touched``, in the order of process, block and time.

    ``key`` is the same for all looks at one block (``keys``).
    """

    key: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    resident: NDArray[np.float64]


def read_looks(recording: Recording) -> Looks | None:
    """Reads the table ``touched``; None if blocks were not looked at: then what they have touched is not known."""
    if not recording.recorded("touched"):
        return None
    batches = list(recording.batches("touched", _COLUMNS)) if recording.rows("touched") else []
    process, block, time_ns = (
        np.concatenate([np.zeros(0, np.int64), *(numbers(batch.column(name)).astype(np.int64) for batch in batches)])
        for name in ("process", "block", "time_ns")
    )
    resident = np.concatenate([np.zeros(0), *(sizes(batch, "touched", "resident_bytes") for batch in batches)])
    key = keys(process, block)
    order = np.lexsort((time_ns, key))
    return Looks(key[order], time_ns[order], resident[order])


def keys(process: NDArray[np.integer], block: NDArray[np.integer]) -> NDArray[np.int64]:
    """A number for each block of each process; block ids are below 2^32."""
    return np.asarray(process.astype(np.int64) << 32 | block.astype(np.int64), np.int64)


def touched_part(looks: Looks, blocks: Blocks, moments_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """By block, the part of it that was in memory at its process's moment: as it was when it was last looked at.

    Before the first look it is taken to have grown evenly from nothing. A block that was never looked at, small or
    short-lived, counts as touched.
    """
    part = np.ones(len(blocks))
    known = np.flatnonzero(blocks.number >= 0)
    wanted = keys(blocks.process[known], blocks.number[known])
    first, end = np.searchsorted(looks.key, wanted, "left"), np.searchsorted(looks.key, wanted, "right")
    known, first, end = known[end > first], first[end > first], end[end > first]
    if not len(known):
        return part
    seen = np.concatenate(([0], np.cumsum(looks.time_ns <= moments_ns[looks.key >> 32])))
    before = seen[end] - seen[first]
    resident = looks.resident[np.maximum(first + before - 1, first)]
    birth, look, moment_ns = blocks.birth_ns[known], looks.time_ns[first], moments_ns[blocks.process[known]]
    grown = np.clip((moment_ns - birth) / np.maximum(look - birth, 1), 0.0, 1.0)
    resident = np.where(before > 0, resident, resident * grown)
    part[known] = np.clip(resident / np.maximum(blocks.certain[known], 1.0), 0.0, 1.0)
    return part
