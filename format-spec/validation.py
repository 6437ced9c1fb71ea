"""Checks tables of a recording against the specification, a batch at a time, never a row at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .arrays import filled, ids
from .errors import FormatError
from .schema import MAX_STACK_DEPTH, TableSpec

if TYPE_CHECKING:
    import pyarrow as pa


def check_schema(table: TableSpec, schema: pa.Schema, where: str) -> list[str]:
    """The columns to read of a table that has ``schema``: those that the specification knows.

    Unknown columns are skipped, and so are missing ones that came later than the table: all their values are unknown
    (see ``complete``). A string may be stored as a large or dictionary-coded one.

    Errors:
        FormatError: a column is missing, doubled, or has another type.
    """
    import pyarrow as pa

    found_names = []
    for column in table.columns:
        indexes = schema.get_all_field_indices(column.name)
        if not indexes and column.since > table.since:
            continue
        if not indexes:
            raise FormatError(f"{where}: the column {column.name} is missing")
        if len(indexes) > 1:
            raise FormatError(f"{where}: there are {len(indexes)} columns {column.name}")
        actual = schema.field(indexes[0]).type
        if pa.types.is_dictionary(actual):
            actual = actual.value_type
        expected = table.schema.field(column.name).type
        if actual not in (expected, _large(expected)):
            raise FormatError(f"{where}: the column {column.name} has the type {actual}, not {expected}")
        found_names.append(column.name)
    return found_names


def complete(table: TableSpec, content: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """``content`` with all the table's columns, or those named; null in those that an older recording lacks."""
    import pyarrow as pa

    schema = pa.schema([table.schema.field(name) for name in table.schema.names if columns is None or name in columns])
    present = set(content.schema.names)
    arrays = [
        content.column(field.name) if field.name in present else pa.nulls(content.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def check_batch(
    table: TableSpec,
    batch: pa.RecordBatch | pa.Table,
    rows: Mapping[str, int],
    where: str,
    first_row: int = 0,
) -> None:
    """Check rows of a table, the first of which is row ``first_row``; columns that the batch lacks are not checked.

    ``rows`` has the number of rows of every table that ids can refer to.

    Errors:
        FormatError: there is a null where none may be, a value is too small, an id is out of range,
            a table's own ids are not its row numbers, or a row comes before its parent.
    """
    present = set(batch.schema.names)
    for column in table.columns:
        if column.name not in present:
            continue
        values = batch.column(column.name)
        if not column.nullable and values.null_count:
            raise FormatError(f"{where}: the column {column.name} has {values.null_count} nulls, and may have none")
        if column.least is not None:
            _check_least(values, column.least, f"{where}: the column {column.name}")
        if column.references is not None and column.references in rows:
            _check_range(values, rows[column.references], f"{where}: the column {column.name}", column.references)
    own = table.id_column
    if own is not None and own in present:
        _check_ids(batch.column(own), first_row, f"{where}: the column {own}")
        parent = table.by_name.get("parent")
        if parent is not None and parent.references == table.name and "parent" in present:
            _check_parents(batch, own, where)


def check_depth(stacks: pa.Table, where: str) -> None:
    """Check that no row of the whole table ``stacks`` has more than ``MAX_STACK_DEPTH`` levels.

    Errors:
        FormatError: one has.
    """
    count = stacks.num_rows
    # Each round doubles how far up an entry points; the last entry stands for "above the root".
    above = np.append(ids(stacks.column("parent"), count), count)
    for _ in range(MAX_STACK_DEPTH.bit_length() - 1):
        if (above == count).all():
            return
        above = above[above]
    if (above != count).any():
        raise FormatError(f"{where}: a stack has more than the {MAX_STACK_DEPTH} levels that it may have")


def _check_range(values: pa.ChunkedArray, limit: int, what: str, referenced: str) -> None:
    if values.null_count == len(values):
        return
    highest = int(filled(values, 0).max())
    if highest >= limit:
        raise FormatError(f"{what} has the id {highest}, but the table {referenced} has only {limit} rows")


def _check_least(values: pa.ChunkedArray, least: int, what: str) -> None:
    lowest = int(filled(values, least).min(initial=least))
    if lowest < least:
        raise FormatError(f"{what} has the value {lowest}, and may have none below {least}")


def _check_ids(values: pa.ChunkedArray, first_row: int, what: str) -> None:
    numbers = ids(values)
    if not np.array_equal(numbers, np.arange(first_row, first_row + len(numbers))):
        raise FormatError(f"{what} must hold the row numbers, in order")


def _check_parents(batch: pa.RecordBatch | pa.Table, own: str, where: str) -> None:
    if not (ids(batch.column("parent")) < ids(batch.column(own))).all():
        raise FormatError(f"{where}: the column parent has an id that is not before its own row")


def _large(expected: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(expected, expected)
