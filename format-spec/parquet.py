"""Writes tables as small Parquet files that any Parquet reader can open.

``trimmed`` removes optional parts from a Parquet file's footer: of a small file they are a fifth of it. A footer is one
structure, FileMetaData, in Thrift's compact protocol. The removed parts are optional, and stand at the end of their
structure: there they are simply left out, and nothing before them changes. Field numbers are those of parquet.thrift
(apache/parquet-format).
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from .atomic import ReplacingFile
from .schema import Specification, TableSpec

if TYPE_CHECKING:
    import pyarrow as pa


MAGIC: Final = b"PAR1"
_STOP: Final = b"\0"
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_COLUMN_META_DATA: Final = 3
# The last field that is kept. Behind it: the order of statistics, of which there are none; offsets and sizes that the
# columns have as well; how often each encoding occurs, and how long values and levels are.
_LAST_OF_FILE: Final = 6
_LAST_OF_ROW_GROUP: Final = 4
_LAST_OF_COLUMN: Final = 11

_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_INTEGERS: Final = (4, 5, 6)


def trimmed(file: bytes) -> bytes:
    """A Parquet file without the unneeded parts of its footer; unchanged if the footer has an unknown form.

    No page is moved or changed. Statistics go as well: not for files that have some.
    """
    if len(file) < 12 or not file.endswith(MAGIC):
        return file
    end = len(file) - 8
    start = end - int.from_bytes(file[end : end + 4], "little")
    if start < len(MAGIC):
        return file
    try:
        footer = _file(file[start:end])
    except (IndexError, ValueError):
        return file
    return b"".join((file[:start], footer, len(footer).to_bytes(4, "little"), MAGIC))


def _file(footer: bytes) -> bytes:
    place, last = 0, 0
    pieces = []
    done = 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind or field > _LAST_OF_FILE:
            if _behind_struct(footer, place, last) != len(footer):
                raise ValueError("more than one structure")
            pieces += [footer[done:place], _STOP]
            return b"".join(pieces)
        if field == _ROW_GROUPS:
            count, at = _structs(footer, at)
            pieces.append(footer[done:at])
            for _ in range(count):
                at = _row_group(footer, at, pieces)
            done = at
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _row_group(footer: bytes, place: int, pieces: list[bytes]) -> int:
    """Add the kept parts of a row group; returns the start of the next one."""
    done, last = place, 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind or field > _LAST_OF_ROW_GROUP:
            pieces += [footer[done:place], _STOP]
            return _behind_struct(footer, place, last)
        if field == _COLUMNS:
            count, at = _structs(footer, at)
            for _ in range(count):
                done, at = _column(footer, at, done, pieces)
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _column(footer: bytes, place: int, done: int, pieces: list[bytes]) -> tuple[int, int]:
    """Adds all up to the end of a column's meta data; returns up to where all is added, and where the next begins."""
    last = 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind:
            return done, at
        if field == _COLUMN_META_DATA:
            inner = 0
            while True:
                place = at
                number, kind, at = _field(footer, place, inner)
                if not kind or number > _LAST_OF_COLUMN:
                    break
                at, inner = _behind(footer, at, kind), number
            pieces += [footer[done:place], _STOP]
            done = at = _behind_struct(footer, place, inner)
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _field(data: bytes, place: int, last: int) -> tuple[int, int, int]:
    """Number and type of a field, and where its value begins; type 0: the structure ends."""
    head = data[place]
    if head == 0:
        return last, 0, place + 1
    if head < 16:
        raise ValueError("a field far from the one before it")
    return last + (head >> 4), head & 15, place + 1


def _structs(data: bytes, place: int) -> tuple[int, int]:
    """The length of a list of structures, and where the first begins."""
    count, kind, at = _list(data, place)
    if kind != _STRUCT:
        raise ValueError("not a list of structures")
    return count, at


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    head = data[place]
    count, at = _unsigned(data, place + 1) if head >> 4 == 15 else (head >> 4, place + 1)
    return count, head & 15, at


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _behind_struct(data: bytes, place: int, last: int) -> int:
    while True:
        last, kind, place = _field(data, place, last)
        if not kind:
            return place
        place = _behind(data, place, kind)


def _behind(data: bytes, place: int, kind: int) -> int:
    """Where a value ends."""
    if kind in _INTEGERS:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind == _BINARY:
        length, place = _unsigned(data, place)
        return place + length
    if kind == _STRUCT:
        return _behind_struct(data, place, 0)
    if kind in (_LIST, _SET):
        count, element, place = _list(data, place)
        for _ in range(count):
            place = place + 1 if element < _BYTE else _behind(data, place, element)
        return place
    if kind > _DOUBLE:
        raise ValueError("a value of a type that footers have not")
    return place + {_BYTE: 1, _DOUBLE: 8}.get(kind, 0)


_DELTA_TYPES = ("int32", "uint32", "int64", "uint64")
ROW_GROUP = 1 << 19
"""Rows in a row group of a large table: enough to compress well, few enough to hold in memory."""
FEW_ROWS = 256
"""Up to so many rows a dictionary's page takes more than it saves."""
FEW_BYTES = 32
"""Up to so many bytes a compressed page is larger than a plain one."""
MANY_BYTES = 2 << 20
"""More than so many bytes of a column, the text of a library's files for example, are not packed as hard: it would take
six times as long for the last sixth."""


class TableWriter:
    """Writes one table of the specification, piece by piece, into a file that appears only when it is whole.

    Use it as a context manager; leaving it by an exception leaves no file.

    ``uuid`` is that of the recording; it stands in the file's own metadata (``file_metadata``).

    Errors:
        OSError: the file cannot be written.
        pyarrow.ArrowInvalid: a piece does not have the table's schema.
    """

    def __init__(self, path: Path | str, spec: Specification, name: str, uuid: str) -> None:
        self.rows = 0
        self.bytes = 0
        self.sha256 = ""
        self._table = spec.tables[name]
        self._metadata = file_metadata(spec, name, uuid)
        self._path = Path(path)
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._file = ReplacingFile(self._path)
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        self.rows += table.num_rows
        self._pending.append(table)
        self._pending_rows += table.num_rows
        if self._pending_rows >= ROW_GROUP:
            self._flush()

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            self._file.discard()
            return
        with self._file:
            if self._writer is None:
                self._file.stream.write(self._whole())
            else:
                self._flush()
                self._writer.close()
        self.bytes = self._file.size
        with self._path.open("rb") as written:
            self.sha256 = hashlib.file_digest(written, "sha256").hexdigest()

    @property
    def entry(self) -> dict[str, Any]:
        """What the manifest says of the table, once it is written."""
        return {"rows": self.rows, "bytes": self.bytes, "sha256": self.sha256}

    def _whole(self) -> bytes:
        """The file of a table of one row group."""
        import pyarrow as pa

        file = pa.BufferOutputStream()
        table = (
            pa.concat_tables(self._pending) if self._pending else pa.Table.from_batches([], schema=self._table.schema)
        )
        writer = _open_writer(file, self._table, table)
        writer.add_key_value_metadata(self._metadata)
        if table.num_rows:
            writer.write_table(table, row_group_size=ROW_GROUP)
        writer.close()
        return trimmed(file.getvalue().to_pybytes())

    def _flush(self) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = _open_writer(self._file.stream, self._table)
            self._writer.add_key_value_metadata(self._metadata)
        if self._pending_rows:
            table = pa.concat_tables(self._pending)
            self._pending, self._pending_rows = [], 0
            self._writer.write_table(table, row_group_size=ROW_GROUP)


def write_table(table: pa.Table, path: Path | str, spec: Specification, name: str, uuid: str) -> dict[str, Any]:
    """Write a whole table of the specification; returns its entry in the manifest.

    Errors: as TableWriter.
    """
    with TableWriter(path, spec, name, uuid) as writer:
        writer.write(table)
    return writer.entry


def write_nowhere(table: pa.Table, spec: Specification, name: str) -> None:
    """Write a table into memory, and discard it: all that writing needs is loaded afterwards."""
    import pyarrow as pa

    writer = _open_writer(pa.BufferOutputStream(), spec.tables[name], table)
    writer.write_table(table)
    writer.close()


def file_metadata(spec: Specification, name: str, uuid: str) -> dict[str, str]:
    """Key-value metadata with which a table's file says what it is, as in SPEC.md "Parquet"."""
    units = {column.name: column.unit for column in spec.tables[name].columns if column.unit is not None}
    return {
        f"{spec.name}.format_version": spec.version,
        f"{spec.name}.uuid": uuid,
        f"{spec.name}.table": name,
        f"{spec.name}.units": json.dumps(units, ensure_ascii=False, separators=(",", ":")),
    }


def plain_file(table: pa.Table, time: str) -> pa.Buffer:
    """The bytes of a part's table: made quickly, not as small as possible."""
    import pyarrow as pa

    wide = [field.name for field in table.schema if str(field.type) in ("int64", "uint64")]
    narrow = [name for name in table.column_names if name not in wide]
    stream = pa.BufferOutputStream()
    writer = _writer(
        stream,
        table.schema,
        compression="zstd",
        use_dictionary=[name for name in [*narrow, "pc"] if name != time],
        column_encoding={name: "DELTA_BINARY_PACKED" for name in wide if name != "pc"},
    )
    writer.write_table(table)
    writer.close()
    return stream.getvalue()


def _open_writer(stream: Any, table: TableSpec, rows: pa.Table | None = None) -> Any:
    """A writer of the table, or of these ``rows`` of it and no others."""
    encodings = {column.name: column.encoding for column in table.columns if column.encoding}
    dictionary = [column.name for column in table.columns if not column.encoding] if table.sort else []
    if not table.sort:
        # Small tables, hardly a value twice: a dictionary would only add pages.
        dense = {column.name: "DELTA_BINARY_PACKED" for column in table.columns if column.type in _DELTA_TYPES}
        encodings = {**dense, **encodings}
    columns = {} if rows is None else dict(zip(table.schema.names, rows.columns, strict=True))
    packed = table.schema.names
    if rows is not None and rows.num_rows <= FEW_ROWS:
        dictionary = []
        packed = [name for name, values in columns.items() if not _tiny(values)]
    many = {name for name, values in columns.items() if values.nbytes > MANY_BYTES}
    return _writer(
        stream,
        table.schema,
        compression={name: "zstd" if name in packed else "none" for name in table.schema.names},
        compression_level={name: 3 if name in many else 9 for name in packed},
        use_dictionary=dictionary,
        column_encoding=encodings,
    )


@lru_cache(maxsize=1)
def load_writer() -> Any:
    """The class of Arrow's writers, without ``pyarrow.parquet``; loading it takes a while the first time.

    That module loads all of Arrow's file systems, which takes longer than writing a small recording. The class that it
    wraps does the same, and is None where there is none of that name.
    """
    import pyarrow as pa  # noqa: F401  # the class needs all of it

    try:
        from pyarrow._parquet import ParquetWriter
    except ImportError:
        return None
    return ParquetWriter


def _writer(stream: Any, schema: pa.Schema, **options: Any) -> Any:
    """A writer of Arrow's. What differs from the defaults of ``pyarrow.parquet`` is in ``options`` or here."""
    options |= {"write_statistics": False, "write_page_checksum": True, "store_schema": False}
    plain = load_writer()
    if plain is not None:
        try:
            return plain(stream, schema, version="2.6", data_page_version="1.0", writer_engine_version="V2", **options)
        except TypeError:
            pass  # another version of Arrow, where it takes other options
    import pyarrow.parquet as pq

    return pq.ParquetWriter(stream, schema, **options)


def _tiny(values: pa.ChunkedArray) -> bool:
    return bool(values.null_count == len(values) or values.nbytes <= FEW_BYTES)
