"""Reads the Parquet tables of a recording, whole or in batches, checked against the specification.

``prefetched`` makes the batches of a long table ahead of their use, ``release_unused`` gives memory back after a pass.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from tachograph.format import (
    Container,
    FormatError,
    Specification,
    TableSpec,
    check_batch,
    check_depth,
    check_schema,
    complete,
)
from tachograph.format.arrays import no_rows

BATCH_ROWS = 1 << 19
"""Rows that are in memory at a time while a long table is read."""

MANY_ROWS = 1 << 16
"""A table with fewer rows is read by one thread: handing columns to others takes longer than reading them."""

MAX_READY = 1 << 20
"""Bytes of a file that stays open after its rows were counted: most tables are read next, and small ones many."""

_PIECE = 1 << 20

MAX_DEFINITIONS = 50_000_000
"""Rows of a table of definitions; the recorder's limits lie far below."""


@dataclass(frozen=True, slots=True)
class _Footer:
    """Metadata of a table's file that was opened, and its columns, which were checked."""

    metadata: pq.FileMetaData
    columns: frozenset[str]


class Tables:
    """The tables of one container, read at first use and validated then.

    ``listed`` is what the manifest says of each table: one that came after version 1.0 and is not among them is not
    missing, it has no rows.

    Errors (everywhere): FormatError, one line that names the table, and the column where it is one column's fault.
    """

    def __init__(
        self, container: Container, specification: Specification, listed: Mapping[str, Any] | None = None
    ) -> None:
        self._container = container
        self._specification = specification
        self._listed = dict(listed or {})
        self._opened: dict[str, _Footer] = {}
        self._ready: dict[str, pq.ParquetFile] = {}

    def has(self, name: str) -> bool:
        """True if the recording has the table; False only for those that it may lack."""
        optional = self._specification.tables[name].since > 0 and name not in self._listed
        return not optional or self._container.has(_file(name))

    def rows(self, name: str) -> int:
        """The number of rows of a table, from its file's footer."""
        if not self.has(name):
            return 0
        if name not in self._opened:
            with _one_line(name):
                file = self._file(name)
                if self.size(name) <= MAX_READY:
                    self._ready[name] = file
                else:
                    file.close(force=True)
        return self._opened[name].metadata.num_rows  # type: ignore[no-any-return]

    def close(self) -> None:
        """Closes files that are open and not being read."""
        while self._ready:
            self._ready.popitem()[1].close(force=True)  # it did not open the file itself

    def size(self, name: str) -> int:
        """Bytes of a table's file."""
        return self._container.size(_file(name)) if self.has(name) else 0

    def read(self, name: str) -> pa.Table:
        """A table of definitions, whole, with exactly the columns of the specification."""
        spec = self._specification.tables[name]
        if not self.has(name):
            return pa.Table.from_batches([no_rows(spec.schema)])
        with self._open(name) as file:
            rows = file.metadata.num_rows
            if rows > MAX_DEFINITIONS:
                raise FormatError(f"{_file(name)}: has {rows} rows, more than the {MAX_DEFINITIONS} it may have")
            table = complete(spec, _plain(_read(file, self._present(name, spec.schema.names)), spec))
            _check_rows(name, table.num_rows, rows)
            check_batch(spec, table, self._limits(spec), _file(name))
        if name in ("stacks", "native_stacks"):
            check_depth(table, _file(name))
        for column in spec.columns:
            if column.type in ("string", "binary"):
                _check_text(table.column(column.name), f"{_file(name)}: the column {column.name}")
        return table

    def verify(self, name: str) -> bool:
        """Compares a table's file with the checksum in the manifest; True if there is one (since format 1.5).

        Errors:
            FormatError: the checksums differ.
        """
        listed = self._listed.get(name, {}).get("sha256")
        if listed is None or not self.has(name):
            return False
        with self._container.open(_file(name)) as file:
            # A member of an archive has no file descriptor, and is read through its own methods.
            digest = hashlib.sha256()
            while piece := file.read(_PIECE):
                digest.update(piece)
        if digest.hexdigest() != listed:
            raise FormatError(
                f"{_file(name)}: its SHA-256 is not the one in the manifest: it was changed or is damaged"
            )
        return True

    def batches(self, name: str, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, a batch of at most ``rows`` rows at a time."""
        if not self.has(name):
            return
        spec = self._specification.tables[name]
        limits = self._limits(spec)
        schema = pa.schema([spec.schema.field(column) for column in columns])
        with self._open(name) as file:
            present = self._present(name, columns)
            read, whole = 0, file.metadata.num_rows
            for batch in _batches(file, rows, present):
                read += batch.num_rows
                plain = _plain(batch.select(present), spec)
                check_batch(spec, plain, limits, _file(name))
                # Other writers may say that a column can have nulls where it has none; older recordings lack columns.
                arrays = [
                    plain.column(field.name) if field.name in present else pa.nulls(plain.num_rows, field.type)
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            _check_rows(name, read, whole)

    def row_groups(self, name: str) -> list[int]:
        """The number of rows in each row group of a table's file."""
        if not self.has(name):
            return []
        with self._open(name) as file:
            return [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]

    def read_group(self, name: str, group: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of one row group of a table."""
        spec = self._specification.tables[name]
        with self._open(name) as file:
            many = file.metadata.row_group(group).num_rows >= MANY_ROWS
            rows = file.read_row_group(group, columns=list(columns), use_threads=many)
            table = _plain(rows.select(list(columns)), spec)
            check_batch(spec, table, self._limits(spec), _file(name))
        return table

    def _present(self, name: str, columns: Sequence[str]) -> list[str]:
        """Those of the columns that the opened file has; ``check_schema`` has seen to it that none else is missing."""
        return [column for column in columns if column in self._opened[name].columns]

    def _limits(self, spec: TableSpec) -> Mapping[str, int]:
        """The number of rows of the tables that a table's ids point into."""
        return {column.references: self.rows(column.references) for column in spec.columns if column.references}

    def _check_listed(self, name: str, rows: int) -> None:
        told = self._listed.get(name, {"rows": rows})["rows"]
        if rows != told:
            raise FormatError(f"{_file(name)}: has {rows} rows, and the manifest says {told}")

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        """The Parquet file of a table, its columns checked; what goes wrong while it is read becomes a FormatError."""
        with _one_line(name), self._file(name) as file:
            yield file

    def _file(self, name: str) -> pq.ParquetFile:
        # A file is in the hands of one reader at a time, also where another thread reads ahead.
        ready = self._ready.pop(name, None)
        if ready is not None:
            return ready
        footer = self._opened.get(name)
        file = self._container.parquet(_file(name), footer and footer.metadata)
        if footer is None:
            try:
                column_names = check_schema(self._specification.tables[name], file.schema_arrow, _file(name))
                self._check_listed(name, file.metadata.num_rows)
            except FormatError:
                file.close(force=True)
                raise
            self._opened[name] = _Footer(file.metadata, frozenset(column_names))
        return file


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Turn errors while a table is read into a FormatError."""
    try:
        yield
    except (pa.ArrowException, OSError, OverflowError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise FormatError(f"{_file(name)} is damaged: {reason}") from None


def _file(table: str) -> str:
    return f"{table}.parquet"


def _read(file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    return file.read(columns=columns, use_threads=file.metadata.num_rows >= MANY_ROWS)


def _batches(file: pq.ParquetFile, rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of at most ``rows`` rows: some row groups at a time, or one.

    One pass over all of them would keep what it decoded of each until its end, and take half as long again.
    """
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    first = 0
    while first < len(sizes):
        last, total = first + 1, sizes[first]
        while last < len(sizes) and total + sizes[last] <= rows:
            total += sizes[last]
            last += 1
        groups = list(range(first, last))
        yield from file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=total >= MANY_ROWS)
        first = last


def _plain(columns: pa.Table | pa.RecordBatch, spec: TableSpec) -> Any:
    """The columns with the types of the specification: a writer may have used a dictionary or a large string."""
    schema = pa.schema([spec.schema.field(name) for name in columns.schema.names])
    if columns.schema.types == schema.types:
        return columns
    return columns.cast(pa.schema([pa.field(field.name, field.type) for field in schema]))


def _check_rows(name: str, read: int, declared: int) -> None:
    """Refuse a table whose number of rows is not that of its footer, against which references were checked."""
    if read != declared:
        raise FormatError(f"{_file(name)}: has {read} rows, and its footer says {declared}")


def _check_text(values: pa.ChunkedArray, where: str) -> None:
    """Checks the inside of a column of text or bytes (offsets, UTF-8)."""
    try:
        values.validate(full=True)
    except pa.ArrowException:
        raise FormatError(f"{where} holds text that is not UTF-8 or is damaged") from None


T = TypeVar("T")
END = object()


def prefetched(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items; up to ``depth`` of them are made ahead, in a thread: decoding overlaps with what uses them.

    An exception of the source is raised where it belongs.
    """
    from concurrent.futures import ThreadPoolExecutor  # not loaded for short recordings

    source = iter(items)
    # One thread, so that the source is never asked for two items at once, and in order.
    with ThreadPoolExecutor(1, thread_name_prefix="tachograph-prefetch") as thread:
        waiting = deque(thread.submit(next, source, END) for _ in range(depth))
        while (item := waiting.popleft().result()) is not END:
            waiting.append(thread.submit(next, source, END))
            yield item  # type: ignore[misc]  # it is not END


def release_unused() -> None:
    """Give freed memory back: Arrow and glibc would keep it, for a next large step that does not come."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
