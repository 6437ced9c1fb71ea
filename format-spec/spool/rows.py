"""Records as Arrow columns, first with the spool's per-process ids, then with the recording's.

No row is looked at one by one in Python: the records of a kind have a fixed length, so a column is a strided view of
the joined records.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import FormatError
from .arrow_columns import bounds, call, index_in, numbers_of, scalar
from .id_numbers import SPARSEST, IdNumbers, pairs_of
from .row_kind import SIZES, Referred, RowKind

if TYPE_CHECKING:
    import pyarrow as pa

    from .threads_table import ThreadIds

FEW_KEYS = 1 << 12
"""An ``IdMap`` with more keys has a place for each number, if they lie closely."""


def raw_table(kind: RowKind, records: bytes, columns: Collection[str] | None = None) -> pa.Table:
    """The joined records as a table with the schema ``kind.raw_schema``, or those columns of it."""
    import pyarrow as pa

    count = len(records) // kind.length
    fields, arrays = [], []
    for field in kind.raw_schema:
        if columns is not None and field.name not in columns:
            continue
        values = values_of(kind, records, field.name).tobytes()
        fields.append(field)
        arrays.append(pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(values)]))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def values_of(kind: RowKind, records: bytes, name: str) -> memoryview[int]:
    """One field of the joined records, without a copy; it may be one of floats.

    Errors:
        FormatError: this machine has the most significant byte of a number first.
    """
    if sys.byteorder != "little":
        raise FormatError("a spool can only be read on a little-endian machine: finalise it with `tachograph recover`")
    code, offset = kind.places[name]
    size = SIZES[code]
    return cast("memoryview[int]", memoryview(records).cast(code)[offset // size :: kind.length // size])


def sound_rows(raw: pa.Table, least: Mapping[str, int]) -> pa.Table:
    """The rows without those in which a value is smaller than it can be: such a record is damaged."""
    import pyarrow as pa

    for name, bound in least.items():
        limit = scalar(bound, pa.int64())
        if call("any", call("less", raw.column(name), limit)).as_py():
            raw = call("filter", raw, call("greater_equal", raw.column(name), limit))
    return raw


class Translation(Protocol):
    """From the spool's ids and addresses to the recording's ids, for the rows of one process or of several."""

    def processes(self, rows: int) -> pa.Array:
        """The process of each of ``rows`` rows."""

    def of(self, to: Referred, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """The recording's id of each row's id; null where there is none."""


@dataclass(frozen=True)
class IdMaps:
    """The translation of the rows of one process, whose id in the recording is ``process``."""

    process: int
    ids: Mapping[Referred, IdMap]

    def processes(self, rows: int) -> pa.Array:
        """The process of each of ``rows`` rows."""
        import pyarrow as pa

        return pa.repeat(scalar(self.process, pa.uint32()), rows)

    def of(self, to: Referred, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """The recording's id of each row's id; null where there is none."""
        return self.ids[to].of(ids)


class IdMap:
    """From ids or addresses of the spool to the recording's ids, for whole columns."""

    def __init__(self, keys: pa.Array, values: pa.Array) -> None:
        self._keys = keys
        self._values = values
        self._first: int | None = None
        if len(keys) > FEW_KEYS:
            self._spread_out()

    def of(self, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """The recording's id of each; null where there is none."""
        if self._first is None:
            return call("take", self._values, index_in(ids, self._keys))
        # What is below the first wraps around, and lies behind the last.
        places = call("subtract", ids, scalar(self._first, ids.type))
        there = call("less", places, scalar(len(self._values), ids.type))
        return call("take", self._values, call("if_else", there, places, scalar(None, ids.type)))

    def _spread_out(self) -> None:
        """Give each key a place of its own, so that it need not be looked for, where that takes little room.

        To look for keys Arrow enters all of them into a table, and would do so for each piece of a recording.
        """
        first, last = bounds(self._keys)
        if last - first < SPARSEST * len(self._keys):
            every = array("I" if self._keys.type.bit_width == 32 else "Q", range(first, last + 1))
            self._values = call("take", self._values, index_in(numbers_of(every), self._keys))
            self._first = first


def id_maps(
    process: int,
    threads: ThreadIds,
    stacks: IdNumbers,
    native_stacks: tuple[array[int], array[int]],
    native_frames: tuple[array[int], array[int]],
    spans: IdNumbers,
) -> IdMaps:
    """Make the maps of a process ready for ``final_table``."""
    maps = {
        "thread": IdMap(threads.keys, threads.values),
        "stack": IdMap(*pairs_of(stacks)),
        "native_stack": IdMap(*map(numbers_of, native_stacks)),
        "pc": IdMap(*map(numbers_of, native_frames)),
        "span": IdMap(*pairs_of(spans)),
    }
    return IdMaps(process, maps)  # type: ignore[arg-type]  # the keys are those of Referred


def final_table(kind: RowKind, raw: pa.Table, translation: Translation, schema: pa.Schema) -> pa.Table:
    """The rows of ``raw`` with the recording's ids, in the schema of the specification, with null for "unknown"."""
    import pyarrow as pa

    columns = {name: raw.column(name) for name in raw.column_names}
    for reference in (*kind.references, *kind.joined):
        columns[reference.column] = translation.of(reference.to, columns.pop(reference.field))
    for name, unknown in kind.unknown.items():
        missing = call("equal", columns[name], scalar(unknown, columns[name].type))
        columns[name] = call("if_else", missing, scalar(None, columns[name].type), columns[name])
    for field in schema:
        if field.name == "process":
            columns["process"] = translation.processes(raw.num_rows)
        elif field.type == pa.bool_():
            values = columns[field.name]
            zero_is_unknown = kind.unknown.get(field.name) == 0
            columns[field.name] = _told(values) if zero_is_unknown else _flags(values, nullable=field.nullable)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def _flags(values: pa.ChunkedArray, *, nullable: bool) -> pa.ChunkedArray:
    """0 is false, 1 is true; all else is unknown where that may be, else true."""
    import pyarrow as pa

    flags = call("not_equal", values, scalar(0, values.type))
    if not nullable:
        return flags
    return call("if_else", call("less", values, scalar(2, values.type)), flags, scalar(None, pa.bool_()))


def _told(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """1 is true and 2 false, where 0 was unknown; so is all else."""
    import pyarrow as pa

    told = call("less", values, scalar(3, values.type))
    return call("if_else", told, call("equal", values, scalar(1, values.type)), scalar(None, pa.bool_()))


def mentioned(raw: pa.Table, name: str, none: int | None = None) -> set[int]:
    """The distinct values of a column, without the one that stands for none."""
    return set(call("unique", raw.column(name)).to_pylist()) - {none}
