"""Columns of Arrow tables as numpy arrays, nulls filled in, and back: by way of Arrow's buffers.

Arrow's own ways load pandas (``to_numpy``, ``pa.array``) or pyarrow.compute (``fill_null``, ``cast``), and
to load those takes longer than to read a recording.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Column: TypeAlias = pa.Array | pa.ChunkedArray


def known(column: Column) -> NDArray[np.bool_]:
    """True for values of a column that are not null."""
    return _joined([_known(chunk) for chunk in _chunks(column)], np.dtype(np.bool_))


def numbers(column: Column) -> NDArray[Any]:
    """A column of numbers or booleans that has no nulls, in its own type; maybe not to be written to."""
    return filled(column, 0)


def filled(column: Column, otherwise: int) -> NDArray[Any]:
    """A column of numbers or booleans, in its own type, with ``otherwise`` for null; maybe not to be written to."""
    return _joined([_filled(chunk, otherwise) for chunk in _chunks(column)], _type(column))


def ids(column: Column, otherwise: int = -1) -> NDArray[np.int64]:
    """A column of whole numbers as 64-bit ones, with ``otherwise`` for null; free to be written to."""
    values = filled(column, 0).astype(np.int64)
    if column.null_count:
        values[~known(column)] = otherwise
    return values


def floats(column: Column) -> NDArray[np.float64]:
    """A column of numbers in floating point, the nearest beyond 2^53, NaN for null; free to be written to."""
    values = filled(column, 0).astype(np.float64)
    if column.null_count:
        values[~known(column)] = np.nan
    return values


def pieces(column: Column, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Some rows of a column of bytes, end to end, and where each begins, with the end of the last; null is empty."""
    parts = []
    first = 0
    for chunk in _chunks(column):
        mine = rows[(rows >= first) & (rows < first + len(chunk))] - first
        ends = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset :]
        data, valid = memoryview(chunk.buffers()[2] or b""), _known(chunk)
        bounds = zip(ends[mine].tolist(), ends[mine + 1].tolist(), valid[mine].tolist(), strict=True)
        parts += [data[begin:end] if present else data[:0] for begin, end, present in bounds]
        first += len(chunk)
    offsets = np.concatenate(([0], np.cumsum([len(piece) for piece in parts], dtype=np.int64)))
    return offsets, np.frombuffer(b"".join(parts), np.uint8)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values of an array, sorted. ``numpy.unique`` without indices does the same, and loads numpy.ma."""
    ordered = np.sort(values, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def to_arrow(values: NDArray[np.int64], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """64-bit whole numbers as Arrow has them, null where they are not ``valid``."""
    bits = None if valid is None else _bits(valid)
    return pa.Array.from_buffers(pa.int64(), len(values), [bits, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def to_mask(mask: NDArray[np.bool_]) -> pa.Array:
    """Booleans as Arrow has them."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def selected_rows(batch: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows of a batch for which the mask is true; those in one piece are not copied.

    A window of time mostly is one piece, and pyarrow loads another module to filter.
    """
    rows = np.flatnonzero(mask)
    first = int(rows[0]) if len(rows) else 0
    if len(rows) == 0 or int(rows[-1]) - first + 1 == len(rows):
        return batch.slice(first, len(rows))
    return batch.filter(to_mask(mask))


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _chunks(column: Column) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _type(column: Column) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(column.type.to_pandas_dtype())
    return dtype


def _joined(parts: list[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _filled(chunk: pa.Array, otherwise: int) -> NDArray[Any]:
    dtype, end = _type(chunk), chunk.offset + len(chunk)
    if not len(chunk):
        return np.zeros(0, dtype)
    if pa.types.is_boolean(chunk.type):
        values: NDArray[Any] = _unpacked(chunk.buffers()[1], chunk)
    else:
        values = np.frombuffer(chunk.buffers()[1], dtype, end)[chunk.offset :]
    return np.where(_known(chunk), values, np.asarray(otherwise, dtype)) if chunk.null_count else values


def _known(chunk: pa.Array) -> NDArray[np.bool_]:
    if not chunk.null_count:
        return np.ones(len(chunk), np.bool_)
    return _unpacked(chunk.buffers()[0], chunk)


def _unpacked(bits: pa.Buffer, chunk: pa.Array) -> NDArray[np.bool_]:
    """Arrow's bits, the lowest of each byte first."""
    first, last = chunk.offset // 8, (chunk.offset + len(chunk) + 7) // 8
    flags = np.unpackbits(np.frombuffer(bits, np.uint8)[first:last], bitorder="little")
    return flags[chunk.offset % 8 :][: len(chunk)].view(np.bool_)


def _bits(values: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))
