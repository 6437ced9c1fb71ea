"""The sampled blocks of the table ``allocations``, as arrays, and what each of them stands for.

A block that dies young and was sampled stands for many, which lived and died one after the other, hardly ever
together. If they were counted as all held at once there would be a spike, and the highest point of a curve of such
spikes says more about chance than about memory. So ``smooth_short_lived`` spreads what such a block stands for over the
time in which it and its nearest in the sample were born, as long as any of them lived: its bytes, times the part of
that time that it lived.

Blocks that a program builds one upon the other and drops in one go are different: the last of them live for a moment,
too, but all of them together. So a block is spread only if some of its nearest, before it and after it, were over
before the other of the two was born; or if it lived for next to nothing of the time between two births.

``touched_part`` is how much of the large blocks was resident: untouched memory takes up none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import filled, ids, no_rows, numbers, selected_rows
from tachograph.format.enumerations import NativePath

from ...recording.frame import take_rows
from ...recording.opened import Recording
from ...recording.tables import BATCH_ROWS, prefetched
from ...samples.sites import Sites
from .counters import Members

NEVER = np.iinfo(np.int64).max
"""Time of death of a block that was not released while it was recorded."""

MAX_BYTES = 1 << 53
"""Larger sizes are refused: no machine has so much memory, and sums in floating point would not be exact."""

_Floats = NDArray[np.float64]
_COLUMNS = (
    "time_ns",
    "process",
    "thread",
    "domain",
    "size_bytes",
    "requested_bytes",
    "mean_bytes",
    "weight_bytes",
    "stack",
    "native_frame",
    "stack_state",
    "followed",
    "freed_ns",
    "native_stack",
    "native_path",
    "block",
    "span",
)


@dataclass(frozen=True)
class Blocks:
    """One entry per sampled block in every array, in the order of birth.

    ``certain`` is the block itself; ``beyond`` is the rest of what it stands for. Blocks much larger than the mean of
    the sampling are all there, and stand for nothing beyond themselves.
    """

    birth_ns: NDArray[np.int64]
    death_ns: NDArray[np.int64]
    process: NDArray[np.int32]
    thread: NDArray[np.int32]
    site: NDArray[np.int64]
    native_frame: NDArray[np.int32]
    domain: NDArray[np.uint8]
    followed: NDArray[np.bool_]
    certain: _Floats
    beyond: _Floats
    variance: _Floats
    """The block's part of the variance of a sum."""
    scale: NDArray[np.int8]
    """Binary logarithm of the mean of its sampling, or of the bytes beyond itself where it stands for others that have
    no row, rounded.
    """
    requested: _Floats
    """Requested bytes per byte that it occupies."""
    native_stack: NDArray[np.int32]
    """The callers of ``native_frame``, a row of the table ``native_stacks``; -1 where they are not known."""
    native_path: NDArray[np.uint8]
    """Source of the native paths: the enumeration ``native_path``."""
    number: NDArray[np.int64]
    """Its id within its process, as in the page scans (``touched``); -1 where there are none."""
    span: NDArray[np.int32]
    """The innermost span that its thread was in; -1 where there is none, or the row does not say so."""

    def __len__(self) -> int:
        return len(self.birth_ns)

    @property
    def bytes(self) -> _Floats:
        """Bytes that each block stands for."""
        return self.certain + self.beyond

    @cached_property
    def _members(self) -> Members:
        return Members(self.process)

    def of(self, process: int) -> NDArray[np.int64]:
        """The numbers of a process's blocks."""
        return self._members.of(process)

    def alive(self, moment_ns: int | NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for blocks held just after a moment (or each at a moment of its own)."""
        alive: NDArray[np.bool_] = (self.birth_ns <= moment_ns) & (self.death_ns > moment_ns) & self.followed
        return alive

    def where(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Blocks:
        """Only these blocks: a mask, or their numbers."""
        return take_rows(self, mask)

    def scaled(self, factor: _Floats) -> Blocks:
        """The same blocks with their estimated parts multiplied by ``factor``."""
        return replace(self, beyond=self.beyond * factor, variance=self.variance * factor**2)


def beyond(size: _Floats, mean: _Floats) -> _Floats:
    """Bytes that a block of s bytes stands for beyond itself: s / p - s with p = 1 - exp(-s / mean).

    Its variance is that of independent samples.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rest = size / np.expm1(size / mean)
    return np.where(size > 0, rest, 0.0)


def scales(mean: _Floats, rest: _Floats) -> NDArray[np.int8]:
    """The scale of each block (``Blocks.scale``); ``rest``: the bytes beyond itself that it stands for."""
    return np.rint(np.log2(np.maximum(np.maximum(mean, rest), 1.0))).astype(np.int8)


def thinned(blocks: Blocks) -> _Floats:
    """Bytes that each block stands for because others of its site have no row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(blocks.bytes > 0, blocks.variance / blocks.bytes, 0.0)
    return np.maximum(0.0, blocks.beyond - drawn)


def read_blocks(recording: Recording, sites: Sites, processes: NDArray[np.bool_] | None = None) -> Blocks:
    """Reads the table ``allocations``, a batch at a time; of some processes only, where ``processes`` says which."""
    names = [field.name for field in fields(Blocks)]
    schema = pa.schema([recording.specification.tables["allocations"].schema.field(name) for name in _COLUMNS])
    nothing = _decode(no_rows(schema), sites)
    rows = recording.rows("allocations")
    arrays = {name: np.empty(rows, getattr(nothing, name).dtype) for name in names}
    filled = 0
    batches: Iterable[pa.RecordBatch] = recording.batches("allocations", _COLUMNS)
    for batch in prefetched(batches) if rows > BATCH_ROWS else batches:  # one batch is not worth a thread
        if processes is not None:
            batch = selected_rows(batch, processes[numbers(batch.column("process"))])  # noqa: PLW2901
        part = _decode(batch, sites)
        for name, array in arrays.items():
            array[filled : filled + len(part)] = getattr(part, name)
        filled += len(part)
    blocks = Blocks(**{name: array[:filled] for name, array in arrays.items()})
    if filled and (np.diff(blocks.birth_ns) < 0).any():
        order = np.argsort(blocks.birth_ns, kind="stable")
        blocks = Blocks(*(getattr(blocks, name)[order] for name in names))
    return blocks


def _decode(batch: pa.RecordBatch, sites: Sites) -> Blocks:
    birth = numbers(batch.column("time_ns"))
    death = filled(batch.column("freed_ns"), NEVER)
    stack, native, thread = (ids(batch.column(name)) for name in ("stack", "native_frame", "thread"))
    size, mean, requested, weight = (
        sizes(batch, "allocations", f"{name}_bytes") for name in ("size", "mean", "requested", "weight")
    )
    return Blocks(
        birth_ns=birth,
        death_ns=np.maximum(birth, death),
        process=numbers(batch.column("process")).astype(np.int32),
        thread=thread.astype(np.int32),
        site=sites.number(stack, numbers(batch.column("stack_state")), native, thread, birth),
        native_frame=native.astype(np.int32),
        domain=numbers(batch.column("domain")),
        followed=numbers(batch.column("followed")),
        certain=size,
        beyond=np.maximum(weight - size, 0.0),
        variance=weight * beyond(size, np.maximum(mean, 1.0)),
        scale=scales(mean, weight - size),
        requested=requested / np.maximum(size, 1.0),
        native_stack=ids(batch.column("native_stack")).astype(np.int32),
        native_path=filled(batch.column("native_path"), NativePath.UNRECORDED).astype(np.uint8),
        number=ids(batch.column("block")),
        span=ids(batch.column("span")).astype(np.int32),
    )


def sizes(batch: pa.RecordBatch, table: str, name: str) -> _Floats:
    """Numbers of bytes in floating point.

    Errors:
        FormatError: one of them is impossible.
    """
    values = numbers(batch.column(name))
    if len(values) and (values.min() < 0 or values.max() > MAX_BYTES):
        worst = values.min() if values.min() < 0 else values.max()
        raise FormatError(f"table {table}, column {name}: {worst} bytes cannot be true")
    return np.asarray(values, np.float64)


YOUNG_NS = 2_000_000_000
"""Blocks that lived longer are not spread: the blocks that they stand for lived long as well, and so together."""

UNCERTAIN = 0.05
"""Blocks whose estimated part is less than this share of them are exact, and are not spread."""

NEIGHBOURS = 4
"""Samples of the same site before and after a block whose births decide over which time it is spread."""

APART = 0.25
"""A block is spread if this part of its neighbours, on either side, did not live at the same time."""

AT_ONCE = 0.02
"""Blocks that lived for less than this part of the time between two births near them are spread in any case."""

ALONE_NS = 1_000_000_000
"""Blocks are spread over no longer than this, and over just this if nothing near is known."""


def smooth_short_lived(blocks: Blocks, callers: NDArray[np.int64]) -> Blocks:
    """Spread the blocks that stand for many short-lived ones; the others are unchanged.

    ``callers`` has by site who called its function. The only block of its site is spread over the time in which others
    of the same function were born: it stands for as many as they do.
    """
    lived = np.where(blocks.death_ns == NEVER, YOUNG_NS, blocks.death_ns - blocks.birth_ns)
    chosen = np.flatnonzero((lived < YOUNG_NS) & (blocks.beyond > UNCERTAIN * blocks.certain) & blocks.followed)
    if not len(chosen):
        return blocks
    order = chosen[np.argsort(blocks.site[chosen], kind="stable")]
    birth, site = blocks.birth_ns[order], blocks.site[order]
    first = np.searchsorted(site, site, side="left")
    last = np.searchsorted(site, site, side="right") - 1
    place = np.arange(len(order))
    before, after = np.maximum(place - NEIGHBOURS, first), np.minimum(place + NEIGHBOURS, last)
    steps = after - before
    # From a birth to the last of the neighbours after it, as all those near say; near the ends there are fewer.
    span = (birth[after] - birth[before]) * (NEIGHBOURS / np.maximum(steps, 1))
    alone = steps == 0
    span = np.where(alone, _births_near(blocks, order, alone, callers), np.minimum(span, ALONE_NS))
    width = np.maximum(span, lived[order]).astype(np.int64)
    gap = span / NEIGHBOURS
    apart = _apart(birth, blocks.death_ns[order], before, after) | (lived[order] < AT_ONCE * gap)
    width = np.where(apart, width, lived[order])
    part = np.where(width > 0, lived[order] / np.maximum(width, 1), 1.0)

    death, factor = blocks.death_ns.copy(), np.ones(len(blocks))
    # In the middle this is hardly ever shorter; at the end nothing is held when the last of the neighbours has died.
    highest = _highest_near(blocks.death_ns[order], before, after)
    death[order] = np.where(apart, np.minimum(birth + width, highest), blocks.death_ns[order])
    factor[order] = part
    return replace(
        blocks,
        death_ns=death,
        certain=blocks.certain * factor,
        beyond=blocks.beyond * factor,
        variance=blocks.variance * factor**2,
    )


def _apart(
    birth: NDArray[np.int64], death: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """True where enough of the neighbours lived at other times, both of those before and of those after."""
    place = np.arange(len(birth))
    over, ahead = np.zeros(len(birth)), np.zeros(len(birth))
    for step in range(1, NEIGHBOURS + 1):
        earlier, later = np.maximum(place - step, 0), np.minimum(place + step, len(birth) - 1)
        over += (place - step >= before) & (death[earlier] <= birth)
        ahead += (place + step <= after) & (death <= birth[later])
    # A side without neighbours says nothing against it.
    return np.asarray((over >= APART * (place - before)) & (ahead >= APART * (after - place)), np.bool_)


def _births_near(
    blocks: Blocks, order: NDArray[np.int64], short_lived: NDArray[np.bool_], callers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Time between the births of the first and last neighbour in the same function, for ``short_lived`` blocks."""
    spans = np.full(len(order), ALONE_NS)
    function, birth = callers[blocks.site[order]], blocks.birth_ns[order]
    sorting = np.lexsort((birth, function))
    function, birth = function[sorting], birth[sorting]
    for place in np.flatnonzero(short_lived[sorting]).tolist():
        low, high = (int(np.searchsorted(function, function[place], side=side)) for side in ("left", "right"))
        own = birth[low:high]
        first = int(np.searchsorted(own, birth[place] - ALONE_NS, side="left"))
        last = int(np.searchsorted(own, birth[place] + ALONE_NS, side="right")) - 1
        if last > first:
            spans[sorting[place]] = min(ALONE_NS, int(own[last] - own[first]))
    return spans


def _highest_near(values: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Highest of the values from ``before`` to ``after`` of each block, no further than the neighbours."""
    place = np.arange(len(values))
    highest = values.copy()
    for step in range(1, NEIGHBOURS + 1):
        for near in (np.maximum(place - step, before), np.minimum(place + step, after)):
            highest = np.maximum(highest, values[near])
    return highest


_TOUCHED_COLUMNS = ("time_ns", "process", "block", "resident_bytes")


@dataclass(frozen=True)
class Looks:
    """One entry per row of the table ``touched``, in the order of process, block and time.

    ``key`` is the same for all scans of one block (``keys``).
    """

    key: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    resident: NDArray[np.float64]


def read_looks(recording: Recording) -> Looks | None:
    """Read the table ``touched``; None if pages were not scanned: then the touched part is unknown."""
    if not recording.recorded("touched"):
        return None
    batches = list(recording.batches("touched", _TOUCHED_COLUMNS)) if recording.rows("touched") else []
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
    """Share of each block that was resident at its process's moment: as it was at the last page scan before.

    Before the first scan it is taken to have grown evenly from nothing. A block that was never scanned, small or
    short-lived, counts as touched.
    """
    part = np.ones(len(blocks))
    large = np.flatnonzero(blocks.number >= 0)
    large_keys = keys(blocks.process[large], blocks.number[large])
    first, end = np.searchsorted(looks.key, large_keys, "left"), np.searchsorted(looks.key, large_keys, "right")
    large, first, end = large[end > first], first[end > first], end[end > first]
    if not len(large):
        return part
    scans_before = np.concatenate(([0], np.cumsum(looks.time_ns <= moments_ns[looks.key >> 32])))
    before = scans_before[end] - scans_before[first]
    resident = looks.resident[np.maximum(first + before - 1, first)]
    birth, look, moment_ns = blocks.birth_ns[large], looks.time_ns[first], moments_ns[blocks.process[large]]
    grown = np.clip((moment_ns - birth) / np.maximum(look - birth, 1), 0.0, 1.0)
    resident = np.where(before > 0, resident, resident * grown)
    part[large] = np.clip(resident / np.maximum(blocks.certain[large], 1.0), 0.0, 1.0)
    return part
