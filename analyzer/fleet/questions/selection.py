"""Selects the recordings of a question (``--where``), and refuses those that cannot be taken together."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.text import printable

if TYPE_CHECKING:
    import duckdb

    from ..index import Index

COLUMNS = ("host", "program", "day", "state", "python", "machine", "sampler", "path", "uuid")
"""Names in conditions beside labels; a label of that name takes precedence."""

MODES = {"sampler": "sampler", "interval_s": "interval", "machine": "processor"}
"""Columns that must be equal in all recordings of a question, and their names in messages."""

RECORDED = ("waits", "memory")
"""Columns for kinds of data that a recording may have: yes, no or null."""


def natural_order(text: str) -> list[tuple[bool, int, str]]:
    """A key to sort by: numbers in a text count as numbers, so that version 1.10 comes after 1.9."""
    parts = re.findall(r"\d+|\D+", text)
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


@dataclass(frozen=True)
class Condition:
    """``key=value``: a label, or one of COLUMNS, and a value or a glob of it."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def parse_conditions(texts: str | Sequence[str]) -> list[Condition]:
    """Conditions of ``key=value``, or of several of them divided by commas.

    Errors:
        FormatError: one is not ``key=value``.
    """
    conditions = []
    for text in [texts] if isinstance(texts, str) else texts:
        for part in text.split(","):
            key, sign, value = part.partition("=")
            if not sign or not key.strip():
                raise FormatError(f"{printable(part, 80)!r} is not KEY=VALUE, such as version=1.4 or host=web-*")
            conditions.append(Condition(key.strip(), value.strip()))
    return conditions


@dataclass(frozen=True)
class Selection:
    """The recordings of a question: their rows of ``recordings``, by number."""

    frame: pd.DataFrame
    index: Index

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def keys(self) -> pa.Array:
        """The recordings' numbers, in the order of the rows."""
        return pa.array(self.frame["recording"].to_numpy(), pa.int64())

    def only(self, conditions: Sequence[Condition]) -> Selection:
        """The recordings that meet all conditions.

        Errors:
            FormatError: there are none, with what there is.
        """
        frame = self.frame
        for condition in conditions:
            values = self.values(condition.key, frame)
            frame = frame[[value is not None and fnmatchcase(value, condition.value) for value in values]]
        if frame.empty and not self.frame.empty:
            raise FormatError(self._no_such(conditions))
        return Selection(frame.reset_index(drop=True), self.index)

    def values(self, key: str, frame: pd.DataFrame | None = None) -> list[str | None]:
        """The value of a label or column of each recording, None where it has none."""
        frame = self.frame if frame is None else frame
        labels = [each.get(key) for each in frame["tags"]]
        if key not in COLUMNS:
            return labels
        own = [value if isinstance(value, str) else None for value in frame[key].tolist()]
        return [label if label is not None else value for label, value in zip(labels, own, strict=True)]

    def label_names(self) -> list[str]:
        """All labels that a recording has."""
        return sorted({name for each in self.frame["tags"] for name in each})

    def units(self, *, by_host: bool) -> NDArray[np.int64]:
        """The number of the unit of statistics that each recording belongs to: its host, or itself.

        Recordings of one host (windows of a run, nights of a machine) are alike, so they tell less than as many of
        different ones. Of an unknown host each recording is a unit.
        """
        if not by_host:
            return np.arange(len(self))
        hosts = self.frame["host"].fillna(self.frame["path"])
        return np.asarray(pd.factorize(hosts)[0], np.int64)

    @property
    def hosts(self) -> int:
        """Number of units of each host."""
        return int(self.units(by_host=True).max(initial=-1)) + 1

    def refuse_mixed(self, *more: str, anyway: bool = False) -> None:
        """Refuses recordings that were made in different ways; ``more`` names columns beside MODES.

        Errors:
            FormatError: they were, and ``anyway`` is false; or none of them recorded the metric.
        """
        for column in more:
            if column in RECORDED and not (self.frame[column] == "yes").any():
                raise FormatError(f"none of these recordings has {column}: it was not recorded")
        for column in (*MODES, *more):
            counts = self.frame[column].value_counts(dropna=False)
            if len(counts) > 1 and not anyway:
                modes = " and ".join(f"{_mode(column, value)} in {count:,}" for value, count in counts.head(3).items())
                name = MODES.get(column, f"whether {column} was recorded" if column in RECORDED else column)
                raise FormatError(
                    f"these recordings were made in different ways ({name}: {modes}): choose some with --where, or"
                    " --anyway takes them together"
                )

    def query(self, table: str, sql: str, **frames: Any) -> pd.DataFrame:
        """The answer of DuckDB: ``t`` is a table of the index, with the rows of these recordings only.

        Errors:
            FormatError: the index is damaged.
        """
        import duckdb

        connection = self._connection
        connection.register("live", pa.table({"recording": self.keys}))
        for name, frame in frames.items():
            connection.register(name, frame)
        text = f"WITH t AS (SELECT * FROM everything SEMI JOIN live USING (recording)) {sql}"
        try:
            if files := self.index.local_files(table):
                connection.from_parquet(files).create_view("everything", replace=True)
            else:
                connection.register("everything", self.index.dataset(table))
            return connection.execute(text).df()
        except duckdb.Error as error:
            # Some damage has a class of its own, and some only the base class; other refusals of DuckDB are our faults.
            if type(error) not in {duckdb.Error, duckdb.IOException, duckdb.InvalidInputException}:
                raise
            raise self.index.damaged(str(error).partition("\n")[0]) from None

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        # Nothing is downloaded: support for Parquet is built in.
        return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})

    def _no_such(self, conditions: Sequence[Condition]) -> str:
        required = ", ".join(map(str, conditions))
        for condition in conditions:
            values = sorted({value for value in self.values(condition.key) if value is not None})
            if not any(fnmatchcase(value, condition.value) for value in values):
                present = ", ".join(printable(value, 40) for value in values[:8]) or "no recording has it"
                more = f" and {len(values) - 8} more" if len(values) > 8 else ""
                return f"no recording has {printable(str(condition), 80)}; {condition.key} is: {present}{more}"
        return f"no recording has {printable(required, 200)}"


def with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``recordings`` with their labels as objects, in column ``tags``, and ``day``."""
    tags = [json.loads(text) if isinstance(text, str) else {} for text in frame["labels"]]
    return frame.assign(tags=pd.Series(tags, frame.index, object), day=frame["created_utc"].str[:10])


def _mode(column: str, value: object) -> str:
    if not isinstance(value, (str, float)) or value != value:
        return "unknown"
    return f"{value * 1e3:g} ms" if isinstance(value, float) else printable(value, 40)
