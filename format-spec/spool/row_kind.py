"""Descriptions of the kinds of records, for the readers of the spool; ``layout`` has one for each kind."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    import pyarrow as pa

Code = Literal["q", "Q", "I", "i", "B", "d"]
Packed = Literal["q", "Q", "I", "i", "H", "B"]
"""The type of a field of a record that is no row."""

Referred = Literal["thread", "stack", "native_stack", "pc", "span"]
SIZES: Mapping[Code, int] = {"q": 8, "Q": 8, "I": 4, "i": 4, "B": 1, "d": 8}
_ARROW = {"q": "int64", "Q": "uint64", "I": "uint32", "i": "int32", "B": "uint8", "d": "float64"}


@dataclass(frozen=True)
class Shape:
    """The layout of a record that is no row: its ``fixed`` fields, then texts.

    ``make`` takes the values of the fields in ``kept`` (places among the fixed ones; with ``array`` the last is many
    values), then the texts. Each text has the place of the field with its length, and its encoding: ``utf8``, ``hex``,
    ``bytes`` (unknown where the length is NONE), or the place of the field with the bytes of one character.
    """

    make: Callable[..., Any]
    fixed: struct.Struct
    kept: tuple[int, ...]
    texts: tuple[tuple[int, str | int], ...] = ()
    array: bool = False

    @cached_property
    def places(self) -> tuple[tuple[Packed, int], ...]:
        """The struct type of each value of the fixed fields, and its offset among them."""
        places: list[tuple[Packed, int]] = []
        offset = 0
        times = ""
        for code in self.fixed.format.lstrip("<"):
            if code.isdigit():
                times += code
                continue
            size = struct.calcsize(f"<{code}")
            for _ in range(int(times or 1)):
                if code != "x":
                    places.append((cast("Packed", code), offset))
                offset += size
            times = ""
        return tuple(places)


@dataclass(frozen=True)
class Reference:
    """A field that holds an id or an address of the process; ``column`` is its place in the table.

    ``none`` is the value that stands for none; None where there is always one.
    """

    field: str
    column: str
    to: Referred
    none: int | None


@dataclass(frozen=True)
class RowKind:
    """A kind of record that becomes rows; ``name`` is that of its file in a part, ``length`` bytes of a record.

    ``table`` is the table that the rows are in, None where they only complete others. ``fields`` are (name, struct
    type, offset in the record), ``unknown`` the values that stand for "unknown". ``joined`` are references in columns
    that rows of another kind add. A part lacks the file of an ``optional`` kind where there are no rows. Records of
    earlier versions have ``least`` bytes (0: as many) and 0 in the ``later`` fields; their parts lack those columns.
    """

    name: str
    kind: int
    length: int
    table: str | None
    time: str
    fields: tuple[tuple[str, Code, int], ...]
    references: tuple[Reference, ...]
    unknown: Mapping[str, int] = field(default_factory=dict)
    optional: bool = True
    joined: tuple[Reference, ...] = ()
    later: tuple[str, ...] = ()
    least: int = 0

    @property
    def last_time(self) -> str:
        """The field with the time at which a row is over."""
        return "end_ns" if "end_ns" in self.places else self.time

    @property
    def lengths(self) -> tuple[int, ...]:
        """Bytes of a record in each version, the longest last."""
        return (self.least, self.length) if self.least else (self.length,)

    @cached_property
    def fixed(self) -> struct.Struct:
        """A record's bytes after its header."""
        packed = "".join(code for _, code, _ in self.fields)
        return struct.Struct(f"<{packed}{self.length - 8 - struct.calcsize('<' + packed)}x")

    @cached_property
    def places(self) -> Mapping[str, tuple[Code, int]]:
        """The struct type of each field, and its offset in the record."""
        return {name: (code, offset) for name, code, offset in self.fields}

    @cached_property
    def raw_schema(self) -> pa.Schema:
        """Schema of the file in a part: the record's fields, as they are in the spool."""
        import pyarrow as pa

        types = [(name, pa.type_for_alias(_ARROW[code])) for name, code, _ in self.fields]
        return pa.schema([pa.field(name, arrow, nullable=False) for name, arrow in types])
