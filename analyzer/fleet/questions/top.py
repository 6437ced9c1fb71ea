"""``fleet top``: the lines, functions and stacks with the most time or memory over all recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.text import printable
from ..statistics import FEWEST, Ratios, pooled, ratios
from .following import follow_lines
from .selection import Selection

LEVELS = {"functions": "key", "lines": "key", "stacks": "stack"}
"""Tables of the index that can be asked, and the column that tells their rows apart."""

MAX_GROUPS = 50
"""Values of a label that are told apart; the others are left out, and said."""


@dataclass(frozen=True)
class Metric:
    """An amount and what it is divided by: a column of ``recordings``, None: each recording counts as one.

    ``kind`` says how ``report_data.numbers`` writes it, and ``of_recording`` is the column of ``recordings`` that has
    the amount of a recording as a whole.
    """

    name: str
    column: str
    whole: str | None
    kind: str
    unit: str
    of_recording: str
    needs: tuple[str, ...] = ()

    def total(self) -> str:
        """The column with what the row's callees did as well."""
        return f"total_{self.column}" if self.column in ("cpu_s", "wait_s") else self.column

    def each(self, per: str | None) -> tuple[str, str]:
        """How amounts are written, and what they are: of the whole, or of one span with the name ``per``."""
        if per is None:
            return self.kind, self.unit
        return ("bytes" if self.kind == "bytes" else "s"), f"{self.name} in each {printable(per, 60)}"


METRICS = {
    each.name: each
    for each in (
        Metric("cpu", "cpu_s", "cpu_s", "share", "share of the CPU time", "cpu_s"),
        Metric("wait", "wait_s", "wall_s", "s", "waiting in a second", "wait_s", ("waits",)),
        Metric(
            *("allocated", "allocated_bytes", "cpu_s", "bytes", "bytes in a second of CPU", "allocated_bytes"),
            ("memory",),
        ),
        Metric("copied", "copied_bytes", "cpu_s", "bytes", "bytes in a second of CPU", "copied_bytes", ("memory",)),
        Metric("held", "live_at_end_bytes", None, "bytes", "bytes in a recording", "end_bytes", ("memory",)),
        Metric("peak", "live_at_peak_bytes", None, "bytes", "bytes in a recording", "peak_bytes", ("memory",)),
    )
}
"""What can be asked for."""


def metric_named(name: str) -> Metric:
    """A metric. Raises FormatError if there is none of the name."""
    if name not in METRICS:
        raise FormatError(f"there is no metric {printable(name, 40)!r}; there are: {', '.join(METRICS)}")
    return METRICS[name]


def top(
    selection: Selection,
    *,
    level: str = "functions",
    metric: str = "cpu",
    by: str | None = None,
    total: bool = False,
    per: str | None = None,
    limit: int = 20,
    anyway: bool = False,
) -> pd.DataFrame:
    """The rows with the largest amounts, the largest first.

    Columns: with ``by`` first ``group`` (the label's value); ``name``, ``file``, ``line`` and ``source`` (of lines),
    ``path`` (of stacks); ``value`` (the amount divided by the metric's whole), ``low`` and ``high`` (the ends of its
    95 % interval over hosts, or over recordings where there are fewer than 5 hosts; NaN with fewer than 5 of them),
    ``amount`` (the sum), ``recordings`` (how many have the row), ``of`` (how many there are). With ``per``, the name of
    spans, amounts are divided by how many there were, and recordings without any are left out.

    Errors:
        FormatError: there is no such level or metric, or the recordings were made in different ways.
    """
    if level not in LEVELS:
        raise FormatError(f"there is no level {printable(level, 40)!r}; there are: {', '.join(LEVELS)}")
    asked = metric_named(metric)
    if level == "stacks" and asked.name not in ("cpu", "wait"):
        raise FormatError("stacks have the metrics cpu and wait only")
    selection.refuse_mixed(*asked.needs, anyway=anyway)
    column = asked.total() if total and level != "stacks" else asked.column
    selection = with_spans(selection, per)
    if by is None:
        return _top_of(selection, level, asked, column, per, limit)
    groups = groups_of(selection, by)
    parts = [_top_of(each, level, asked, column, per, limit).assign(group=value) for value, each in groups[:MAX_GROUPS]]
    return pd.concat([part[["group", *part.columns.drop("group")]] for part in parts], ignore_index=True)


def groups_of(selection: Selection, by: str) -> list[tuple[str, Selection]]:
    """The recordings by the value of a label, those with the most recordings first; those without it are left out.

    Errors:
        FormatError: no recording has the label.
    """
    values = pd.Series(selection.values(by), dtype=object)
    counts = values.value_counts()
    if counts.empty:
        known = ", ".join(selection.label_names()[:12]) or "none"
        raise FormatError(f"no recording has the label {printable(by, 40)!r}; there are: {known}")
    return [
        (value, Selection(selection.frame[(values == value).to_numpy()].reset_index(drop=True), selection.index))
        for value in sorted(counts.index, key=lambda value: (-counts[value], value))
    ]


def _top_of(selection: Selection, level: str, metric: Metric, column: str, per: str | None, limit: int) -> pd.DataFrame:
    places = row_sums(selection, level, column)
    places = places[places["amount"] > 0].nlargest(limit, "amount", keep="first").reset_index(drop=True)
    amounts = amounts_of(selection, level, column, places)
    by_host = selection.hosts >= FEWEST
    units = selection.units(by_host=by_host)
    frame = _frame(selection, level, places, ratios(*pooled(amounts, weights_of(selection, metric, per), units)))
    frame.attrs["unit"] = "hosts" if by_host else "recordings"
    return frame


def row_sums(selection: Selection, level: str, column: str) -> pd.DataFrame:
    """All rows with their sums over the recordings; lines of several versions of a file are one row.

    Columns: ``row`` (a number), ``keys`` (the numbers in the index that are this row), name, file, line, source,
    amount, recordings.
    """
    key = LEVELS[level]
    more = (
        ", any_value(line) AS line, any_value(sha256) AS sha256, any_value(source) AS source"
        if level == "lines"
        else ""
    )
    found = selection.query(
        level,
        f"SELECT {key} AS key, any_value(name) AS name, any_value(file) AS file{more}, sum({column}) AS amount,"
        f" count(DISTINCT recording) FILTER ({column} > 0) AS recordings FROM t GROUP BY 1 ORDER BY amount DESC, key",
    )
    found["amount"] = found["amount"].fillna(0.0)
    if level != "lines":
        return found.assign(row=np.arange(len(found)), keys=[(key,) for key in found["key"].tolist()])
    return follow_lines(selection, found)


def amounts_of(selection: Selection, level: str, column: str, places: pd.DataFrame) -> NDArray[np.float64]:
    """The amount of each row of ``places`` in each recording: rows by recordings; 0 where a recording has it not."""
    pairs = [(key, row) for row, keys in enumerate(places["keys"]) for key in keys]
    amounts = np.zeros((len(places), len(selection)))
    if not pairs:
        return amounts
    keys, rows = zip(*pairs, strict=True)
    wanted = pa.table({"key": pa.array(keys, pa.int64()), "row": pa.array(rows, pa.int64())})
    found = selection.query(
        level,
        f"SELECT wanted.row AS row, recording, sum({column}) AS amount FROM t JOIN wanted"
        f" ON t.{LEVELS[level]} = wanted.key GROUP BY 1, 2",
        wanted=wanted,
    )
    places_of = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    values = found["amount"].fillna(0.0).to_numpy(np.float64)
    amounts[found["row"].to_numpy(np.int64), places_of[found["recording"].to_numpy()].to_numpy()] = values
    return amounts


def with_spans(selection: Selection, per: str | None) -> Selection:
    """The recordings that have spans with the name ``per``; all if that is None.

    Errors:
        FormatError: none has.
    """
    if per is None:
        return selection
    counts = _span_counts(selection, per)
    if not counts.any():
        known = selection.query("spans", "SELECT DISTINCT name FROM t WHERE count > 0 ORDER BY name LIMIT 12")
        told = ", ".join(printable(name, 40) for name in known["name"]) or "none"
        raise FormatError(f"no recording has a span {printable(per, 40)!r}; there are: {told}")
    return Selection(selection.frame[counts > 0].reset_index(drop=True), selection.index)


def _span_counts(selection: Selection, name: str) -> NDArray[np.float64]:
    found = selection.query(
        "spans",
        "SELECT recording, sum(count) AS count FROM t JOIN wanted USING (name) GROUP BY 1",
        wanted=pa.table({"name": [name]}),
    )
    counts = pd.Series(found["count"].to_numpy(), found["recording"].to_numpy(), dtype=np.float64)
    return np.asarray(counts.reindex(selection.frame["recording"].to_numpy(), fill_value=0.0), np.float64)


def weights_of(selection: Selection, metric: Metric, per: str | None = None) -> NDArray[np.float64]:
    """What the amounts of each recording are divided by: the metric's whole, or how many spans ``per`` it has."""
    if per is not None:
        return _span_counts(selection, per)
    if metric.whole is None:
        return np.ones(len(selection))
    return np.asarray(selection.frame[metric.whole].fillna(0.0), np.float64)


def _frame(selection: Selection, level: str, places: pd.DataFrame, found: Ratios) -> pd.DataFrame:
    columns = {"name": places["name"], "file": places["file"]}
    if level == "lines":
        columns |= {"line": places["line"].astype("Int64"), "source": places["source"]}
    if level == "stacks":
        columns |= {"path": pd.Series(_paths(selection, places["key"].tolist()), dtype=object)}
    numbers = {"value": found.value, "low": found.low, "high": found.high, "amount": places["amount"]}
    counts = {"recordings": places["recordings"].astype("int64"), "of": len(selection)}
    return pd.DataFrame({**columns, **numbers, **counts})


def _paths(selection: Selection, stacks: Sequence[int]) -> list[list[str]]:
    """The names of the functions of stacks, the outermost first."""
    known = selection.query(
        "stacks", "SELECT stack, any_value(parent) AS parent, any_value(name) AS name FROM t GROUP BY 1"
    )
    names = dict(zip(known["stack"].tolist(), known["name"].tolist(), strict=True))
    parents = dict(zip(known["stack"].tolist(), known["parent"].tolist(), strict=True))
    paths = []
    for stack in stacks:
        path: list[str] = []
        node = stack
        while node in names and len(path) < 1000:
            path.append(names[node])
            node = parents[node]
        paths.append(path[::-1])
    return paths
