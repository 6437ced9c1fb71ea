"""CPU and WAIT records as Arrow columns, first with the spool's per-process ids, then with the recording's.

No row is looked at one by one in Python: the records have a fixed length, so a column is a strided view of the joined
records.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .columns import column, scalar
from .errors import FormatError
from .records import CPU, NONE, ROW_LENGTH, WAIT

if TYPE_CHECKING:
    import pyarrow as pa

_Code = Literal["q", "Q", "I", "i", "B"]
_SIZES = {"q": 8, "Q": 8, "I": 4, "i": 4, "B": 1}
_ARROW = {"q": "int64", "Q": "uint64", "I": "uint32", "i": "int32", "B": "uint8"}


@dataclass(frozen=True)
class RowKind:
    """A kind of record that becomes the rows of a table; ``fields`` are (name, struct type, offset in the record)."""

    table: str
    kind: int
    time: str
    fields: tuple[tuple[str, _Code, int], ...]

    @property
    def raw_schema(self) -> pa.Schema:
        """Schema of the table in a part: the record's fields, as they are in the spool."""
        import pyarrow as pa

        types = [(name, pa.type_for_alias(_ARROW[code])) for name, code, _ in self.fields]
        return pa.schema([pa.field(name, arrow, nullable=False) for name, arrow in types])


CPU_ROWS = RowKind(
    "cpu",
    CPU,
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("cpu_ns", "q", 16),
        ("system_ns", "q", 24),
        ("pc", "Q", 32),
        ("thread", "I", 40),
        ("stack", "I", 44),
        ("overruns", "I", 48),
        ("gil", "B", 52),
        ("opcode", "B", 53),
        ("origin", "B", 54),
        ("stack_state", "B", 55),
    ),
)
WAIT_ROWS = RowKind(
    "waits",
    WAIT,
    "start_ns",
    (
        ("start_ns", "q", 8),
        ("end_ns", "q", 16),
        ("off_cpu_ns", "q", 24),
        ("pc", "Q", 32),
        ("thread", "I", 40),
        ("stack", "I", 44),
        ("syscall", "i", 48),
        ("target", "B", 52),
        ("stack_state", "B", 53),
    ),
)
ROW_KINDS = {"cpu": CPU_ROWS, "waits": WAIT_ROWS}


def raw_table(kind: RowKind, records: bytes) -> pa.Table:
    """The joined records as a table with the schema ``kind.raw_schema``."""
    import pyarrow as pa

    if sys.byteorder != "little":
        raise FormatError("a spool can only be read on a little-endian machine: finalise it with `tachograph recover`")
    count = len(records) // ROW_LENGTH
    schema = kind.raw_schema
    arrays = []
    for field, (_, code, offset) in zip(schema, kind.fields, strict=True):
        size = _SIZES[code]
        column = memoryview(records).cast(code)[offset // size :: ROW_LENGTH // size].tobytes()
        arrays.append(pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(column)]))
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class IdMaps:
    """For one process: from the spool's ids and addresses to the recording's ids, as pairs of (keys, values)."""

    threads: tuple[pa.Array, pa.Array]
    stacks: tuple[pa.Array, pa.Array]
    native_frames: tuple[pa.Array, pa.Array]


def id_maps(threads: Mapping[int, int], stacks: Mapping[int, int], native_frames: Mapping[int, int]) -> IdMaps:
    """Make the maps of a process ready for ``final_table``."""
    import pyarrow as pa

    def pair(mapping: Mapping[int, int], keys: pa.DataType) -> tuple[pa.Array, pa.Array]:
        return column(mapping.keys(), keys), column(mapping.values(), pa.uint32())

    return IdMaps(pair(threads, pa.uint32()), pair(stacks, pa.uint32()), pair(native_frames, pa.uint64()))


def final_table(kind: RowKind, raw: pa.Table, maps: IdMaps, schema: pa.Schema) -> pa.Table:
    """The rows of ``raw`` with the recording's ids, in the schema of the specification, with null for "unknown"."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def mapped(values: pa.ChunkedArray, pair: tuple[pa.Array, pa.Array]) -> pa.ChunkedArray:
        return pc.take(pair[1], pc.index_in(values, value_set=pair[0]))

    def null_where(values: pa.ChunkedArray, unknown: int) -> pa.ChunkedArray:
        missing = pc.equal(values, scalar(unknown, values.type))
        return pc.if_else(missing, scalar(None, values.type), values)

    columns = {name: raw.column(name) for name in raw.column_names}
    columns["thread"] = mapped(columns["thread"], maps.threads)
    columns["stack"] = mapped(columns["stack"], maps.stacks)
    columns["native_frame"] = mapped(columns.pop("pc"), maps.native_frames)
    if kind is CPU_ROWS:
        columns["system_ns"] = null_where(columns["system_ns"], -1)
        columns["opcode"] = null_where(columns["opcode"], 0)
        gil = columns["gil"]
        known = pc.less(gil, scalar(2, gil.type))
        columns["gil"] = pc.if_else(known, pc.cast(gil, pa.bool_()), scalar(None, pa.bool_()))
    else:
        columns["syscall"] = null_where(columns["syscall"], -1)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def mentioned(raw: pa.Table, column: str, none: int | None = None) -> set[int]:
    """The distinct values of a column, without the one that stands for none."""
    import pyarrow.compute as pc

    return set(pc.unique(raw.column(column)).to_pylist()) - {none}


MENTIONS = (("thread", None), ("stack", NONE), ("pc", 0))
"""The columns whose ids are mapped, each with the value that stands for none."""
