"""Parts: full segments of the spool, turned into Parquet while the program runs.

A part keeps the spool's per-process ids and raw addresses, so making one needs no state, and a crash of the recording
command after that loses nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic import read_regular_file, unfinished
from ..errors import FormatError
from .arrow_columns import converted
from .directory import MAX_SEGMENT_SIZE, Part, SpoolDirectory
from .layout import DEFINITIONS_SEQUENCE
from .records import ROW_KINDS
from .row_kind import RowKind
from .rows import raw_table
from .segment import DefinitionsWriter, Segment, bodies_of, read_segment

if TYPE_CHECKING:
    import pyarrow as pa

DEFINITIONS_NAME = "definitions.seg"
MAX_PART_ROWS = 1 << 26


def write_part(
    spool: SpoolDirectory, prefix: str, segments: Iterable[Segment], ready: Callable[[], None] | None = None
) -> Path:
    """Make a part of consecutive segments of one process; the caller removes the segments afterwards.

    Each segment is used up before the next one is asked for: of an iterator one is in memory at a time. The part
    appears at once and whole, by a rename. ``ready`` is called when all that it will hold is made and nothing of it is
    written yet; it may raise OSError, if there is no room for it.

    Errors:
        ValueError: the segments are not consecutive.
        OSError: the part cannot be written; nothing is left of it.
    """
    import pyarrow as pa

    sequence: list[int] = []
    rows: dict[str, list[pa.Table]] = {name: [] for name in ROW_KINDS}
    definitions = DefinitionsWriter()
    torn = 0
    for segment in segments:
        sequence.append(segment.seq)
        for name, kind in ROW_KINDS.items():
            rows[name].append(raw_table(kind, segment.rows(kind.kind)))
        definitions.add(bodies_of(segment))
        torn += segment.torn
        pid, start_ns = segment.pid, segment.start_ns
        del segment  # before the next one is read
    if not sequence or sequence != list(range(sequence[0], sequence[0] + len(sequence))):
        raise ValueError(f"segments {sequence} are not consecutive")
    path = spool.parts_path / f"{prefix}.{sequence[0]:06}-{sequence[-1]:06}"
    tables = {name: pa.concat_tables(each) for name, each in rows.items()}
    whole_part(path, tables, definitions.file(pid, start_ns, torn), ready)
    return path


def whole_part(
    path: Path,
    tables: Mapping[str, pa.Table],
    definitions: bytes | bytearray,
    ready: Callable[[], None] | None = None,
) -> None:
    """Make a part at ``path`` of its tables, by the names of their kinds, and its definitions; it appears by a rename.

    ``ready`` is called as in ``write_part``.

    Errors:
        OSError: it cannot be written; nothing is left of it.
    """
    from ..parquet import plain_file

    files: dict[str, memoryview | bytes | bytearray] = {
        f"{name}.parquet": memoryview(plain_file(table, ROW_KINDS[name].time))
        for name, table in tables.items()
        if table.num_rows or not ROW_KINDS[name].optional
    }
    files[DEFINITIONS_NAME] = definitions
    if ready is not None:
        ready()
    path.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = path.parent / unfinished(path.name)
    if temporary.exists():
        shutil.rmtree(temporary)
    temporary.mkdir(mode=0o700)
    try:
        for name, content in files.items():
            descriptor = os.open(temporary / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def part_definitions(part: Part) -> Segment:
    """The segment of a part's records that are no rows.

    Errors:
        FormatError, OSError: it cannot be read.
    """
    segment = read_segment(read_regular_file(part.path / DEFINITIONS_NAME, MAX_SEGMENT_SIZE))
    if segment.seq != DEFINITIONS_SEQUENCE:
        raise FormatError(f"{part.path.name}/{DEFINITIONS_NAME} is not a segment of definitions")
    return segment


def part_rows(part: Part, kind: RowKind, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of one kind, a row group at a time, with the columns asked for.

    Errors:
        FormatError: the file cannot be read or has other columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = part.path / f"{kind.name}.parquet"
    if kind.optional and not path.is_symlink() and not path.exists():
        return
    schema = kind.raw_schema
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    try:
        if path.is_symlink() or not path.is_file():
            raise FormatError(f"{part.path.name}/{path.name} is missing")
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows > MAX_PART_ROWS:
                raise FormatError(f"{part.path.name}/{path.name} has too many rows")
            for group in range(file.metadata.num_row_groups):
                there = [name for name in schema.names if name in file.schema_arrow.names or name not in kind.later]
                rows = file.read_row_group(group, columns=there).select(there)
                if any(values.null_count for values in rows.columns):
                    raise FormatError(f"{part.path.name}/{path.name} lacks values")
                yield _with_later(rows, schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise FormatError(f"{part.path.name}/{path.name} cannot be read: {_first_line(error)}") from error


def _with_later(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """The columns of a part; what an earlier version did not write is 0."""
    import pyarrow as pa

    columns = [
        table.column(field.name)
        if field.name in table.column_names
        else pa.repeat(pa.scalar(0, field.type), len(table))
        for field in wanted
    ]
    fitting = [
        values if values.type == field.type else converted(values, field.type)
        for values, field in zip(columns, wanted, strict=True)
    ]
    return pa.Table.from_arrays(fitting, schema=wanted)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
