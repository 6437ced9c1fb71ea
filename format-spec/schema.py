"""Loads the machine-readable half of the specification: ``tables.toml``, as ``make generate`` has compiled it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


MAX_STACK_DEPTH = 1 << 14
"""Levels of the deepest stack (SPEC.md, "stacks"), a power of two."""


@dataclass(frozen=True)
class ColumnSpec:
    """One column of a table.

    ``type`` is the name of an Arrow type. ``references`` names the table whose ids the column holds, ``enum`` the
    enumeration whose indexes it holds, ``encoding`` the Parquet encoding that is used instead of a dictionary.
    ``least`` is the smallest value it may hold, ``since`` the minor version that it came with: a recording may lack a
    column that came later than 1.0, and then all its values are unknown.
    """

    name: str
    type: str
    doc: str
    nullable: bool = False
    unit: str | None = None
    references: str | None = None
    enum: str | None = None
    encoding: str | None = None
    least: int | None = None
    since: int = 0


@dataclass(frozen=True)
class TableSpec:
    """One table: a file ``NAME.parquet`` of a recording.

    ``since`` is the minor version that it came with: a recording may lack a table that came later than 1.0.
    ``recorded_if`` names the key of the manifest's parameters that says whether its facts were recorded, which tells
    what it means that the table is not there; see ``Specification.recorded``.
    """

    name: str
    doc: str
    columns: tuple[ColumnSpec, ...]
    sort: tuple[str, ...] = ()
    recorded_if: str | None = None
    since: int = 0

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table; a column that is not nullable is REQUIRED in Parquet."""
        import pyarrow as pa

        return pa.schema([pa.field(c.name, pa.type_for_alias(c.type), c.nullable) for c in self.columns])

    @cached_property
    def by_name(self) -> dict[str, ColumnSpec]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @cached_property
    def id_column(self) -> str | None:
        """Name of the column that holds the table's own ids (equal to the row numbers), if it has ids."""
        return None if self.sort else self.columns[0].name


@dataclass(frozen=True)
class EnumValue:
    """One value of an enumeration; its number is its place in the list."""

    name: str
    doc: str


@dataclass(frozen=True)
class LossSpec:
    """One cause of loss; ``severity`` is ``loss`` or ``note``.

    ``index`` is its place in a control file's counters; None: it has no ``counter`` there, and readers alone count it.

    ``of`` says whether the ledger tells of a process (``its``), of the whole recording (``null``), or ``its or null``.
    One that is ``lasting`` holds from when it was counted on, so it counts in all later windows of a rotation.
    """

    index: int | None
    name: str
    severity: str
    doc: str
    advice: str
    of: str = "its"
    lasting: bool = False
    counter: bool = True


@dataclass(frozen=True)
class Specification:
    """The whole of ``tables.toml``."""

    name: str
    major: int
    minor: int
    reserved_tables: tuple[str, ...]
    tables: dict[str, TableSpec]
    enums: dict[str, list[EnumValue]]
    losses: list[LossSpec]

    @property
    def counters(self) -> list[LossSpec]:
        """The losses that a control file counts, by their index."""
        return [loss for loss in self.losses if loss.counter]

    @property
    def version(self) -> str:
        """The version of the format, ``MAJOR.MINOR``."""
        return f"{self.major}.{self.minor}"

    def recorded(self, table: str, parameters: Mapping[str, Any], version: str) -> bool:
        """True if the facts of a table were recorded, by the ``parameters`` and the ``format_version`` of a manifest.

        A recording may lack a table that came later than 1.0. If this says True the table then has no rows (nothing
        happened); if it says False nothing is known.
        """
        key = self.tables[table].recorded_if
        if key is not None:
            return parameters.get(key) is True
        major, _, minor = version.partition(".")
        return (int(major), int(minor)) >= (self.major, self.tables[table].since)


@cache
def load_specification() -> Specification:
    """Read ``tables.json``, once in a process: ``tables.toml`` as compiled by ``make generate``.

    To parse the TOML takes longer than to finish a small recording.
    """
    return _specification(json.loads(Path(__file__).with_name("tables.json").read_text(encoding="utf-8")))


def parse_specification(text: str) -> Specification:
    """Make a Specification of the text of a ``tables.toml``."""
    import tomllib

    return _specification(tomllib.loads(text))


def _specification(document: dict[str, Any]) -> Specification:
    about = document["format"]
    return Specification(
        name=about["name"],
        major=about["major"],
        minor=about["minor"],
        reserved_tables=tuple(about["reserved_tables"]),
        tables={name: _table(name, table) for name, table in document["tables"].items()},
        enums={name: [EnumValue(**value) for value in values] for name, values in document["enums"].items()},
        losses=_losses(document["losses"]),
    )


def _losses(documents: list[dict[str, Any]]) -> list[LossSpec]:
    index = count()
    return [LossSpec(index=next(index) if each.get("counter", True) else None, **each) for each in documents]


def _table(name: str, table: dict[str, Any]) -> TableSpec:
    columns = tuple(ColumnSpec(**column) for column in table["columns"])
    about = {key: table[key] for key in ("doc", "recorded_if", "since") if key in table}
    return TableSpec(name, columns=columns, sort=tuple(table.get("sort", ())), **about)
