"""Reads the Parquet tables of a recording, whole or in batches, in terms of the specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tachograph.format import ColumnSpec, FormatError, Specification, TableSpec

from .validation import MAX_DIMENSION_ROWS, check_columns, check_nulls, check_references, check_text

BATCH_ROWS = 1 << 21
"""Rows that are in memory at a time while a long table is read."""


class Tables:
    """The tables in one directory. Nothing is read before it is asked for; every column is validated when it is."""

    def __init__(self, directory: Path, specification: Specification) -> None:
        self.directory = directory
        self.specification = specification
        self._rows: dict[str, int] = {}

    def spec(self, name: str) -> TableSpec:
        """What the specification says of a table."""
        return self.specification.tables[name]

    def size(self, name: str) -> int:
        """Bytes of the table's file."""
        return self._path(name).stat().st_size

    def rows(self, name: str) -> int:
        """Number of rows, from the file's footer.

        Errors:
            FormatError: the table is missing or damaged.
        """
        if name not in self._rows:
            with self._open(name) as file:
                self._rows[name] = file.metadata.num_rows
        return self._rows[name]

    def read(self, name: str) -> pa.Table:
        """A table of definitions, whole and validated, with exactly the columns of the specification."""
        spec = self.spec(name)
        if self.rows(name) > MAX_DIMENSION_ROWS:
            raise FormatError(
                f"table {name}: has {self.rows(name)} rows, more than the {MAX_DIMENSION_ROWS} it may have"
            )
        with self._open(name) as file:
            table = file.read(columns=[column.name for column in spec.columns])
        columns = [self._checked(table.column(column.name), column, name) for column in spec.columns]
        for values, column in zip(columns, spec.columns, strict=True):
            if column.type in ("string", "binary"):
                check_text(values, column, name)
        return pa.table(columns, schema=spec.schema)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, a batch of rows at a time, validated."""
        spec = self.spec(name)
        specs = [spec.by_name[column] for column in columns]
        schema = pa.schema([spec.schema.field(column) for column in columns])
        with self._open(name) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=True):
                arrays = [self._checked(batch.column(column.name), column, name) for column in specs]
                yield pa.record_batch(arrays, schema=schema)

    def _checked(self, values: pa.ChunkedArray, column: ColumnSpec, name: str) -> pa.ChunkedArray:
        check_nulls(values, column, name)
        wanted = pa.type_for_alias(column.type)
        if values.type != wanted:
            values = values.cast(wanted)
        if column.references is not None:
            check_references(values, column, name, self.rows(column.references))
        return values

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.parquet"

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        """The Parquet file of a table, its columns checked; what goes wrong while it is read becomes a FormatError."""
        path = self._path(name)
        if not path.is_file():
            raise FormatError(f"table {name}: {path.name} is missing")
        try:
            with pq.ParquetFile(path, memory_map=False) as file:
                check_columns(file.schema_arrow, self.spec(name))
                yield file
        except (pa.ArrowException, OSError, OverflowError) as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise FormatError(f"table {name}: {path.name} is damaged or not Parquet: {reason}") from None
