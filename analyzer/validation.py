"""Checks what a recording's tables hold against the specification, so that nothing behind has to.

Every error is a FormatError of one line that names the table and the column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tachograph.format import ColumnSpec, FormatError, TableSpec

MAX_DIMENSION_ROWS = 50_000_000
"""Rows of a table of definitions; the recorder's limits lie far below."""


def stored_type(field: pa.Field, column: ColumnSpec, table: str) -> pa.DataType:
    """The type that the column is to be read as.

    Errors:
        FormatError: the file has another type than the specification.
    """
    wanted = pa.type_for_alias(column.type)
    plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    same = plain == wanted or (plain, wanted) in ((pa.large_string(), pa.string()), (pa.large_binary(), pa.binary()))
    if not same:
        raise FormatError(f"table {table}, column {column.name}: has type {plain}, the specification says {wanted}")
    return wanted


def check_columns(schema: pa.Schema, table: TableSpec) -> None:
    """Checks that every column of the specification is there, once, with its type; further columns do not matter."""
    for column in table.columns:
        indices = schema.get_all_field_indices(column.name)
        if len(indices) != 1:
            problem = "is missing" if not indices else "is there more than once"
            raise FormatError(f"table {table.name}, column {column.name}: {problem}")
        stored_type(schema.field(indices[0]), column, table.name)


def check_nulls(values: pa.Array | pa.ChunkedArray, column: ColumnSpec, table: str) -> None:
    """Checks that a column that is always known holds no null."""
    if not column.nullable and values.null_count:
        raise FormatError(f"table {table}, column {column.name}: {values.null_count} nulls where none may be")


def check_references(values: pa.Array | pa.ChunkedArray, column: ColumnSpec, table: str, limit: int) -> None:
    """Checks that the ids in a column lie below ``limit``, the number of rows of the table that they point into."""
    if column.references is None or len(values) == values.null_count:
        return
    largest = pc.max(values).as_py()
    if largest >= limit:
        raise FormatError(
            f"table {table}, column {column.name}: id {largest} is out of range, {column.references} has {limit} rows"
        )


def check_text(values: pa.ChunkedArray, column: ColumnSpec, table: str) -> None:
    """Checks the inside of a column of text or bytes (offsets, UTF-8)."""
    try:
        values.validate(full=True)
    except pa.ArrowException:
        raise FormatError(f"table {table}, column {column.name}: holds text that is not UTF-8 or is damaged") from None


def in_id_order(table: pa.Table, spec: TableSpec) -> pa.Table:
    """The table sorted by its id column, which must hold 0, 1, 2 ... each once."""
    name = spec.columns[0].name
    if table.num_rows == 0:
        return table
    ids = table.column(name).combine_chunks()
    dense = pa.array(range(0), ids.type) if len(ids) == 0 else pa.arange(0, len(ids)).cast(ids.type)
    if ids.equals(dense):
        return table
    ordered = table.sort_by(name)
    if not ordered.column(name).combine_chunks().equals(dense):
        raise FormatError(f"table {spec.name}, column {name}: ids are not 0, 1, 2 ... each once")
    return ordered


def check_parents_first(stacks: pa.Table) -> None:
    """Checks that every node of the calling context tree comes after its parent, so that there are no circles."""
    late = pc.any(pc.greater_equal(stacks.column("parent"), stacks.column("stack"))).as_py()
    if late:
        raise FormatError("table stacks, column parent: a node comes before its parent")
