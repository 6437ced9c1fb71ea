"""The sampled blocks of the table ``allocations``, as arrays, and what each of them stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import filled, ids, no_rows, numbers, to_mask
from tachograph.format.enumerations import NativePath

from ...recording.long_reads import prefetched
from ...recording.opened import Recording
from ...recording.tables import BATCH_ROWS
from ...samples.sites import Sites
from .members import Members

NEVER = np.iinfo(np.int64).max
"""Time of death of a block that was not released while it was recorded."""

MAX_BYTES = 1 << 53
"""Larger sizes are refused: no machine has them, and sums in floating point would not be exact."""

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
    """What the block adds to the variance of a sum."""
    scale: NDArray[np.int8]
    """Binary logarithm of the mean of its sampling, rounded."""
    requested: _Floats
    """Requested bytes per byte that it occupies."""
    native_stack: NDArray[np.int32]
    """The callers of ``native_frame``, a row of the table ``native_stacks``; -1 where they are not known."""
    native_path: NDArray[np.uint8]
    """How they were got: the enumeration ``native_path``."""
    number: NDArray[np.int64]
    """Its id within its process, as looks at it have it (``touched``); -1 where there are none."""

    def __len__(self) -> int:
        return len(self.birth_ns)

    @property
    def bytes(self) -> _Floats:
        """What each block stands for."""
        return self.certain + self.beyond

    @cached_property
    def _members(self) -> Members:
        return Members(self.process)

    def of(self, process: int) -> NDArray[np.int64]:
        """The numbers of a process's blocks."""
        return self._members.of(process)

    def alive(self, moment_ns: int | NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which blocks are held just after a moment (or: each at a moment of its own)."""
        alive: NDArray[np.bool_] = (self.birth_ns <= moment_ns) & (self.death_ns > moment_ns) & self.followed
        return alive

    def where(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Blocks:
        """Only these blocks: a mask, or their numbers."""
        return Blocks(*(getattr(self, field.name)[mask] for field in fields(self)))

    def scaled(self, factor: _Floats) -> Blocks:
        """The same blocks; what each stands for beyond itself is multiplied."""
        return replace(self, beyond=self.beyond * factor, variance=self.variance * factor**2)


def beyond(size: _Floats, mean: _Floats) -> _Floats:
    """What a copy of s bytes stands for beyond itself: s / p - s with p = 1 - exp(-s / mean).

    Of a block it is what it would stand for as one of independent samples, which its variance is taken from.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rest = size / np.expm1(size / mean)
    return np.where(size > 0, rest, 0.0)


def thinned(blocks: Blocks) -> _Floats:
    """By block, bytes that it stands for because others of its place have no row."""
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
            batch = batch.filter(to_mask(processes[numbers(batch.column("process"))]))  # noqa: PLW2901
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
        scale=np.rint(np.log2(np.maximum(mean, 1.0))).astype(np.int8),
        requested=requested / np.maximum(size, 1.0),
        native_stack=ids(batch.column("native_stack")).astype(np.int32),
        native_path=filled(batch.column("native_path"), NativePath.UNRECORDED).astype(np.uint8),
        number=ids(batch.column("block")),
    )


def sizes(batch: pa.RecordBatch, table: str, name: str) -> _Floats:
    """Numbers of bytes in floating point.

    Errors:
        FormatError: one of them cannot be true.
    """
    values = numbers(batch.column(name))
    if len(values) and (values.min() < 0 or values.max() > MAX_BYTES):
        worst = values.min() if values.min() < 0 else values.max()
        raise FormatError(f"table {table}, column {name}: {worst} bytes cannot be true")
    return np.asarray(values, np.float64)
