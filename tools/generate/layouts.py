"""The layouts of the spool, read from records.toml: offsets worked out, repeated fields written out."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

SIZES = {"i64": 8, "u64": 8, "i32": 4, "u32": 4, "u16": 2, "u8": 1, "f64": 8}
CODES = {"i64": "q", "u64": "Q", "i32": "i", "u32": "I", "u16": "H", "u8": "B", "f64": "d"}
"""The types in Python's module struct."""

NONE = 0xFFFFFFFF
RECORD_HEADER = 8
_ARRAY = re.compile(r"(\w+)\[(\d+)\]")


@dataclass(frozen=True)
class Field:
    """A field, or reserved bytes (no name) at ``offset``; ``count`` is more than 1 in an array.

    ``unknown`` is the value that stands for null. ``column`` is what the field feeds: None if that is nothing.
    ``group`` is the name of the repeated field that it is a part of. ``since`` is the minor version that added it.
    ``yes`` and ``no`` are the values of a byte that feeds a bool column, ``bit`` is the one of flags that does.
    """

    name: str
    type: str
    offset: int
    count: int = 1
    unknown: int | None = None
    refers: str | None = None
    column: str | None = None
    doc: str = ""
    group: str | None = None
    since: int = 0
    yes: int | None = None
    no: int | None = None
    bit: int | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return SIZES[self.type] * self.count

    @property
    def reserved(self) -> bool:
        """Whether a writer writes 0 and a reader looks away."""
        return not self.name

    @property
    def code(self) -> str:
        """The field in a format of Python's module struct."""
        if self.reserved:
            return f"{self.size}x"
        if self.type == "u8" and self.count > 1:
            return f"{self.size}s"
        return f"{self.count}{CODES[self.type]}" if self.count > 1 else CODES[self.type]


@dataclass(frozen=True)
class Text:
    """A text behind the fields: the field with its ``length``, and its encoding as records.toml says.

    ``empty`` is "null" where a text of no length is null.
    """

    name: str
    length: str
    encoding: str
    column: str | None
    doc: str
    empty: str | None = None


@dataclass(frozen=True)
class Layout:
    """A record kind (``kind`` is its number) or a file's header (``magic``); ``rows`` is the file in a part.

    ``least`` are the bytes of a record of an earlier version, if it was shorter; else 0.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    size: int
    magic: str | None = None
    kind: int = 0
    table: str | None = None
    by: str | None = None
    rows: str | None = None
    time: str | None = None
    in_parts: bool = True
    completes: str | None = None
    extends: str | None = None
    least: int = 0
    texts: tuple[Text, ...] = ()

    @property
    def named(self) -> tuple[Field, ...]:
        """The fields that are not reserved."""
        return tuple(field for field in self.fields if not field.reserved)

    def format(self, *, header: bool = False) -> str:
        """The fields for Python's module struct; with ``header`` the magic before them, too."""
        return "<" + ("8s" if header else "") + "".join(field.code for field in self.fields)


@dataclass(frozen=True)
class Enumeration:
    """Numbers with names, in the spool only."""

    name: str
    doc: str
    values: Mapping[str, int]


@dataclass(frozen=True)
class Layouts:
    """All of records.toml."""

    constants: Mapping[str, tuple[int, str]]
    enums: tuple[Enumeration, ...]
    files: Mapping[str, Layout]
    records: Mapping[str, Layout]


def load_layouts(path: Path, columns: Mapping[str, Sequence[str]], domains: Sequence[str]) -> Layouts:
    """Read records.toml; ``columns`` are those of each table, ``domains`` the values of the enumeration.

    Errors:
        ValueError: a field is not aligned, a record's length is not a multiple of 8, or a row has a field of a
            type that no table has.
    """
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    records: dict[str, Layout] = {}
    for name, each in document["records"].items():
        before = records[each["extends"]] if "extends" in each else None
        records[name] = _record(name, each, before, columns, domains)
    return Layouts(
        constants={name: (each["value"], each["doc"]) for name, each in document["constants"].items()},
        enums=tuple(Enumeration(name, each["doc"], each["values"]) for name, each in document["enums"].items()),
        files={name: _file(name, each) for name, each in document["files"].items()},
        records=records,
    )


def _file(name: str, each: Mapping[str, Any]) -> Layout:
    fields = _placed(each["fields"], len(each["magic"]), {}, ())
    return Layout(name, each["doc"], fields, fields[-1].offset + fields[-1].size, magic=each["magic"])


def _record(
    name: str,
    each: Mapping[str, Any],
    before: Layout | None,
    columns: Mapping[str, Sequence[str]],
    domains: Sequence[str],
) -> Layout:
    table = each.get("table")
    own = {column: column for column in columns.get(table or "", ())}
    first = before.fields if before is not None else ()
    start = before.size if before is not None else RECORD_HEADER
    fields = first + _placed(each["fields"], start, own, domains)
    size = fields[-1].offset + fields[-1].size if fields else RECORD_HEADER
    texts = tuple(
        Text(text["name"], text["length"], text["as"], _column(text, own), text.get("doc", ""), text.get("empty"))
        for text in each.get("texts", ())
    )
    if size % 8:
        raise ValueError(f"{name}: {size} bytes are not a multiple of 8")
    if "rows" in each and any(field.type == "u16" and not field.reserved for field in fields):
        raise ValueError(f"{name}: no column of a table is u16, so no field of a row can be")
    more = {key: each[key] for key in ("kind", "by", "rows", "time", "completes", "extends", "least") if key in each}
    return Layout(name, each["doc"], fields, size, table=table, in_parts=each.get("parts", True), texts=texts, **more)


def _placed(
    entries: Sequence[Mapping[str, Any]], start: int, own: Mapping[str, str], domains: Sequence[str]
) -> tuple[Field, ...]:
    """The fields with their offsets, from ``start`` on."""
    fields: list[Field] = []
    at = start
    for entry in entries:
        for field in _fields(entry, own, domains):
            if at % (1 if field.reserved else SIZES[field.type]):
                raise ValueError(f"{field.name} at {at} is not aligned")
            fields.append(replace(field, offset=at))
            at += field.size
    return tuple(fields)


def _fields(entry: Mapping[str, Any], own: Mapping[str, str], domains: Sequence[str]) -> list[Field]:
    if "reserved" in entry:
        return [Field("", "u8", 0, entry["reserved"], since=entry.get("since", 0))]
    if "each" in entry:
        names = [f"{domain}_{part}_bytes" for domain in domains for part in entry["parts"]]
        return [Field(name, entry["type"], 0, column=name, group=entry["name"]) for name in names]
    array = _ARRAY.fullmatch(entry["type"])
    kind, count = (array[1], int(array[2])) if array else (entry["type"], 1)
    unknown = NONE if entry.get("none") else entry.get("unknown")
    if unknown == "least":
        unknown = -(1 << (8 * SIZES[kind] - 1))
    return [
        Field(
            name=entry["name"],
            type=kind,
            offset=0,
            count=count,
            unknown=unknown,
            refers=entry.get("refers"),
            column=_column(entry, own),
            doc=entry.get("doc", ""),
            since=entry.get("since", 0),
            **{key: entry[key] for key in ("yes", "no", "bit") if key in entry},
        )
    ]


def _column(entry: Mapping[str, Any], own: Mapping[str, str]) -> str | None:
    return entry.get("column", own.get(entry["name"])) or None
