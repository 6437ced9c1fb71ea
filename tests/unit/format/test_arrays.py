"""Columns as numpy arrays by way of Arrow's buffers are what Arrow itself makes of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tachograph.format.arrays import distinct, filled, floats, ids, known, no_rows, pieces, to_arrow, to_mask

VALUES = [3, None, 0, 255, None, 7, 1, 2, 3, None, 5]


def columns(values: list[object], kind: pa.DataType) -> list[pa.Array | pa.ChunkedArray]:
    """The same values whole, as a slice that begins within a byte of Arrow's bits, and in several chunks."""
    whole = pa.array(values, kind)
    sliced = pa.array([None, *values, None], kind).slice(1, len(values))
    return [whole, sliced, pa.chunked_array([whole.slice(0, 2), whole.slice(2, 0), sliced.slice(2)])]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
def test_numbers(kind: pa.DataType) -> None:
    for column in columns(list(VALUES), kind):
        assert known(column).tolist() == [value is not None for value in VALUES]
        assert filled(column, 9).tolist() == [9 if value is None else value for value in VALUES]
        assert filled(column, 9).dtype == kind.to_pandas_dtype()
        assert ids(column).tolist() == [-1 if value is None else value for value in VALUES]
        assert np.isnan(floats(column)).tolist() == [value is None for value in VALUES]


def test_large_numbers_are_exact() -> None:
    large = [(1 << 63) - 1, None, (1 << 53) + 1]
    for column in columns(list(large), pa.int64()):
        assert ids(column).tolist() == [(1 << 63) - 1, -1, (1 << 53) + 1]


def test_booleans() -> None:
    values = [True, None, False, True, True, False, False, True, None, True]
    for column in columns(list(values), pa.bool_()):
        assert filled(column, 0).tolist() == [value is True for value in values]


def test_nothing() -> None:
    for column in (pa.array([], pa.int32()), pa.chunked_array([], pa.int32()), pa.nulls(0, pa.int32())):
        assert ids(column).tolist() == filled(column, 1).tolist() == known(column).tolist() == []
    schema = pa.schema([("number", pa.int64()), ("text", pa.string())])
    assert no_rows(schema).schema == schema
    assert no_rows(schema).num_rows == 0


def test_pieces_of_bytes() -> None:
    values = [b"abc", None, b"", b"de", b"f", b"ghij", b"k", b"", b"l", b"mno"]
    for column in columns(list(values), pa.binary()):
        offsets, data = pieces(column, np.array([0, 1, 3, 5, 9]))
        assert offsets.tolist() == [0, 3, 3, 5, 9, 12]
        assert bytes(data) == b"abcdeghijmno"
        assert pieces(column, np.zeros(0, np.int64))[0].tolist() == [0]


def test_back_to_arrow() -> None:
    numbers, valid = np.arange(11), np.arange(11) % 3 > 0
    assert to_arrow(numbers).equals(pa.array(numbers))
    assert to_arrow(numbers, valid).equals(pa.array(numbers, mask=~valid))
    assert to_mask(valid).equals(pa.array(valid))


@pytest.mark.parametrize("values", [[], [3], [2, 2, 2], [5, 1, 3, 1, 5], [0.5, 2.0, 0.5]])
def test_distinct_values_are_those_of_numpy(values: list[float]) -> None:
    found, expected = distinct(np.array(values)), np.unique(np.array(values))
    assert (found.tolist(), found.dtype) == (expected.tolist(), expected.dtype)
