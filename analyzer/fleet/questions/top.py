"""``fleet top``: the lines, functions and stacks with the most time or memory over all recordings.

The parts that other questions share are here, too: resolving a place (FUNCTION, FILE:FUNCTION or FILE:LINE) to rows of
the index, and following lines through the versions of a file, as ``diff`` follows them through edits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...diff.source_functions import NOWHERE, follow
from ...recording.text import printable
from ...statistics.ratios import FEWEST, Ratios, pooled, ratios
from .selection import Selection, natural_order

MAX_VERSIONS = 200
"""Versions of a file that are followed."""


def follow_lines(selection: Selection, lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of lines (key, file, line, sha256, source, amount, recordings) with those that are one line as one.

    The version with the largest amount gives the line its number and its text. A line that it does not have, and one
    whose text is unknown, is a row of its own.
    """
    texts = _texts(selection, lines)
    amounts = lines.groupby(["file", "sha256"], dropna=True)["amount"].sum()
    heaviest = {file: of_file.idxmax()[1] for file, of_file in amounts.groupby(level=0)}
    moved: dict[tuple[str, str], list[int]] = {}
    for file, digest in amounts.index[:]:
        target = heaviest[file]
        if digest != target and (file, digest) in texts and (file, target) in texts:
            moved[file, digest] = follow(texts[file, digest], texts[file, target], replaced=True)
    places = []
    columns = (lines[name].tolist() for name in ("key", "file", "line", "sha256"))
    for key, file, line, digest in zip(*columns, strict=True):
        targets = moved.get((file, digest))
        if targets is not None and not pd.isna(line) and 0 < line <= len(targets) and targets[int(line) - 1] != NOWHERE:
            places.append((file, heaviest[file], targets[int(line) - 1] + 1))
        else:
            places.append((file, digest, key if pd.isna(line) else int(line)))
    return _as_one(lines, places)


def _texts(selection: Selection, lines: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """The texts of files that have several versions, as lists of lines."""
    versions = lines.dropna(subset=["sha256"]).groupby("file")["sha256"].nunique()
    several = versions[(versions > 1) & (versions <= MAX_VERSIONS)].index
    if not len(several):
        return {}
    digests = lines[lines["file"].isin(several)]["sha256"].dropna().unique()
    needed = pd.DataFrame({"sha256": digests})
    sources = selection.index.dataset("sources").to_table(columns=["file", "sha256", "source"]).to_pandas()
    sources = sources.merge(needed, on="sha256").drop_duplicates(["file", "sha256"])
    columns = (sources[name].tolist() for name in ("file", "sha256", "source"))
    return {
        (file, digest): text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for file, digest, text in zip(*columns, strict=True)
    }


def _as_one(lines: pd.DataFrame, places: list[tuple[str, str, int]]) -> pd.DataFrame:
    groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for row, place in enumerate(places):
        groups[place].append(row)
    # The row of the version that gives its number comes first.
    first = []
    for (_, digest, _), rows in groups.items():
        own = [row for row in rows if lines["sha256"].iat[row] == digest]
        first.append((own or rows)[0])
    result = lines.iloc[first].reset_index(drop=True)
    keys, amount = lines["key"].to_numpy(), lines["amount"].to_numpy()
    counts = lines["recordings"].to_numpy()
    result["keys"] = pd.Series([tuple(keys[rows].tolist()) for rows in groups.values()], dtype=object)
    result["amount"] = [float(amount[rows].sum()) for rows in groups.values()]
    # A recording has one version of a file.
    result["recordings"] = [int(counts[rows].sum()) for rows in groups.values()]
    result["row"] = np.arange(len(result))
    return result


LEVELS = {"functions": "key", "lines": "key", "stacks": "stack"}
"""Tables of the index that questions use, and the key column of each."""

MAX_GROUPS = 50
"""Most values of a label that are shown apart; the others are left out, and a note says so."""


@dataclass(frozen=True)
class Metric:
    """An amount and its divisor: a column of ``recordings``, None: each recording counts as one.

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
        """The column that includes the row's callees."""
        return f"total_{self.column}" if self.column in ("cpu_s", "wait_s") else self.column

    def each(self, per: str | None) -> tuple[str, str]:
        """Format and meaning of amounts: of the whole, or of one span with the name ``per``."""
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
"""The metrics of a question."""


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
    measure = metric_named(metric)
    if level == "stacks" and measure.name not in ("cpu", "wait"):
        raise FormatError("stacks have the metrics cpu and wait only")
    selection.refuse_mixed(*measure.needs, anyway=anyway)
    column = measure.total() if total and level != "stacks" else measure.column
    selection = with_spans(selection, per)
    groups = [("", selection)] if by is None else groups_of(selection, by)[:MAX_GROUPS]
    sides = [each for _, each in groups]
    sums = sums_by_group(sides, selection, level, column)
    places = [each[each["amount"] > 0].nlargest(limit, "amount", keep="first").reset_index(drop=True) for each in sums]
    amounts = amounts_by_group(sides, selection, level, column, places)
    parts = []
    for each, all_rows, rows, amount in zip(sides, sums, places, amounts, strict=True):
        by_host = each.hosts >= FEWEST
        shares = ratios(*pooled(amount, weights_of(each, measure, per), each.units(by_host=by_host)))
        part = _frame(level, rows, shares, all_rows, len(each))
        part.attrs["unit"] = "hosts" if by_host else "recordings"
        parts.append(part)
    if by is None:
        return parts[0]
    named = [part.assign(group=value) for (value, _), part in zip(groups, parts, strict=True)]
    return pd.concat([part[["group", *part.columns.drop("group")]] for part in named], ignore_index=True)


def groups_of(selection: Selection, by: str) -> list[tuple[str, Selection]]:
    """The recordings by the value of a label, in natural order; those without it are left out.

    Errors:
        FormatError: no recording has the label.
    """
    values = pd.Series(selection.values(by), dtype=object)
    counts = values.value_counts()
    if counts.empty:
        names = ", ".join(selection.label_names()[:12]) or "none"
        raise FormatError(f"no recording has the label {printable(by, 40)!r}; there are: {names}")
    return [
        (value, Selection(selection.frame[(values == value).to_numpy()].reset_index(drop=True), selection.index))
        for value in sorted(counts.index, key=natural_order)
    ]


def row_sums(selection: Selection, level: str, column: str) -> pd.DataFrame:
    """All rows with their sums over the recordings; lines of several versions of a file are one row.

    Columns: ``row`` (a number), ``keys`` (the numbers in the index that are this row), name, file, line, source,
    amount, recordings, and of stacks ``parent``.
    """
    return sums_by_group([selection], selection, level, column)[0]


def sums_by_group(groups: Sequence[Selection], whole: Selection, level: str, column: str) -> list[pd.DataFrame]:
    """``row_sums`` of each group, which are parts of ``whole``: the index is read once for all."""
    # A recording has a row once, so rows are recordings.
    sums = whole.query(
        level,
        f"SELECT part, {_described(level)}, coalesce(sum({column}), 0.0) AS amount,"
        f" count(*) FILTER ({column} > 0) AS recordings"
        " FROM t JOIN parts USING (recording) GROUP BY ALL ORDER BY amount DESC, key",
        parts=_parts(groups),
    )
    return [
        _rows_of(each, level, sums[(sums["part"] == number).to_numpy()].reset_index(drop=True))
        for number, each in enumerate(groups)
    ]


def sums_by_column(selection: Selection, level: str, columns: Sequence[str]) -> list[pd.DataFrame]:
    """``row_sums`` of each column: the index is read once for all."""
    sums = ", ".join(
        f"coalesce(sum({column}), 0.0) AS amount{at}, count(*) FILTER ({column} > 0) AS recordings{at}"
        for at, column in enumerate(columns)
    )
    totals = selection.query(level, f"SELECT {_described(level)}, {sums} FROM t GROUP BY key")
    own = [name for at in range(len(columns)) for name in (f"amount{at}", f"recordings{at}")]
    frames = []
    for at in range(len(columns)):
        of_it = totals.drop(columns=own).assign(amount=totals[f"amount{at}"], recordings=totals[f"recordings{at}"])
        of_it = of_it.sort_values(["amount", "key"], ascending=[False, True], ignore_index=True)
        frames.append(_rows_of(selection, level, of_it))
    return frames


def _described(level: str) -> str:
    """The columns that describe a row."""
    more = {
        "lines": ", any_value(line) AS line, any_value(sha256) AS sha256, any_value(source) AS source",
        "stacks": ", any_value(parent) AS parent",
    }
    return f"{LEVELS[level]} AS key, any_value(name) AS name, any_value(file) AS file{more.get(level, '')}"


def _parts(groups: Sequence[Selection]) -> pa.Table:
    """Recordings and the number of the group that each is in."""
    numbers = np.repeat(np.arange(len(groups)), [len(each) for each in groups])
    keys = np.concatenate([each.frame["recording"].to_numpy(np.int64) for each in groups])
    return pa.table({"recording": pa.array(keys, pa.int64()), "part": pa.array(numbers, pa.int64())})


def _rows_of(selection: Selection, level: str, sums: pd.DataFrame) -> pd.DataFrame:
    if level == "lines":
        return follow_lines(selection, sums)
    return sums.assign(row=np.arange(len(sums)), keys=[(key,) for key in sums["key"].tolist()])


def amounts_of(selection: Selection, level: str, column: str, places: pd.DataFrame) -> NDArray[np.float64]:
    """The amount of each row of ``places`` in each recording: rows by recordings; 0 where a recording has it not."""
    return amounts_by_group([selection], selection, level, column, [places])[0]


def amounts_by_group(
    groups: Sequence[Selection], whole: Selection, level: str, column: str, places: Sequence[pd.DataFrame]
) -> list[NDArray[np.float64]]:
    """``amounts_of`` of each group, for the places of each: the index is read once for all."""
    amounts = [np.zeros((len(rows), len(each))) for rows, each in zip(places, groups, strict=True)]
    keys = _wanted(places)
    if not len(keys):
        return amounts
    sums = whole.query(
        level,
        f"SELECT part, row, recording, sum({column}) AS amount FROM t JOIN parts USING (recording)"
        f" JOIN wanted USING (part) WHERE t.{LEVELS[level]} = wanted.key AND {column} <> 0 GROUP BY ALL ORDER BY part",
        wanted=keys,
        parts=_parts(groups),
    )
    _fill(amounts, sums, groups)
    return amounts


def amounts_by_column(
    selection: Selection, level: str, columns: Sequence[str], places: Sequence[pd.DataFrame]
) -> list[NDArray[np.float64]]:
    """``amounts_of`` of each column, for the places of each: the index is read once for all."""
    amounts = [np.zeros((len(rows), len(selection))) for rows in places]
    keys = _wanted(places)
    if not len(keys):
        return amounts
    value = "CASE part " + " ".join(f"WHEN {at} THEN {column}" for at, column in enumerate(columns)) + " END"
    sums = selection.query(
        level,
        f"SELECT part, row, recording, sum({value}) AS amount FROM t JOIN wanted ON t.{LEVELS[level]} = wanted.key"
        f" WHERE {value} <> 0 GROUP BY ALL ORDER BY part",
        wanted=keys,
    )
    _fill(amounts, sums, [selection] * len(columns))
    return amounts


def _wanted(places: Sequence[pd.DataFrame]) -> pa.Table:
    """The keys of all places, with the number of the frame and the row that each belongs to."""
    pairs = [
        (part, key, row) for part, rows in enumerate(places) for row, keys in enumerate(rows["keys"]) for key in keys
    ]
    columns = zip(*pairs, strict=True) if pairs else ((), (), ())
    arrays = [pa.array(each, pa.int64()) for each in columns]
    return pa.table(dict(zip(("part", "key", "row"), arrays, strict=True)))


def _fill(amounts: Sequence[NDArray[np.float64]], sums: pd.DataFrame, sides: Sequence[Selection]) -> None:
    """Writes rows of part, row, recording and amount, in the order of the parts, into the matrix of each part."""
    ends = np.searchsorted(sums["part"].to_numpy(), np.arange(len(amounts) + 1))
    rows, recordings, values = (sums[name].to_numpy() for name in ("row", "recording", "amount"))
    for number, (amount, each) in enumerate(zip(amounts, sides, strict=True)):
        mine = slice(ends[number], ends[number + 1])
        places_of = pd.Series(np.arange(len(each)), each.frame["recording"].to_numpy())
        amount[rows[mine], places_of[recordings[mine]].to_numpy()] = values[mine]


def with_spans(selection: Selection, per: str | None) -> Selection:
    """The recordings that have spans with the name ``per``; all if that is None.

    Errors:
        FormatError: none has.
    """
    if per is None:
        return selection
    counts = _span_counts(selection, per)
    if not counts.any():
        names = selection.query("spans", "SELECT DISTINCT name FROM t WHERE count > 0 ORDER BY name LIMIT 12")
        listed = ", ".join(printable(name, 40) for name in names["name"]) or "none"
        raise FormatError(f"no recording has a span {printable(per, 40)!r}; there are: {listed}")
    return Selection(selection.frame[counts > 0].reset_index(drop=True), selection.index)


def _span_counts(selection: Selection, name: str) -> NDArray[np.float64]:
    answer = selection.query(
        "spans",
        "SELECT recording, sum(count) AS count FROM t JOIN wanted USING (name) GROUP BY 1",
        wanted=pa.table({"name": [name]}),
    )
    counts = pd.Series(answer["count"].to_numpy(), answer["recording"].to_numpy(), dtype=np.float64)
    return np.asarray(counts.reindex(selection.frame["recording"].to_numpy(), fill_value=0.0), np.float64)


def weights_of(selection: Selection, metric: Metric, per: str | None = None) -> NDArray[np.float64]:
    """Divisors for the amounts of each recording: the metric's whole, or the number of its spans ``per``."""
    if per is not None:
        return _span_counts(selection, per)
    if metric.whole is None:
        return np.ones(len(selection))
    return np.asarray(selection.frame[metric.whole].fillna(0.0), np.float64)


def _frame(level: str, places: pd.DataFrame, shares: Ratios, everything: pd.DataFrame, of: int) -> pd.DataFrame:
    columns = {"name": places["name"], "file": places["file"]}
    if level == "lines":
        columns |= {"line": places["line"].astype("Int64"), "source": places["source"]}
    if level == "stacks":
        columns |= {"path": pd.Series(_paths(everything, places["key"].tolist()), dtype=object)}
    numbers = {"value": shares.value, "low": shares.low, "high": shares.high, "amount": places["amount"]}
    counts = {"recordings": places["recordings"].astype("int64"), "of": of}
    return pd.DataFrame({**columns, **numbers, **counts})


def _paths(rows: pd.DataFrame, stacks: Sequence[int]) -> list[list[str]]:
    """The names of the functions of stacks, the outermost first; ``rows`` has all stacks."""
    keys, above = rows["key"].tolist(), rows["parent"].tolist()
    names, parents = dict(zip(keys, rows["name"].tolist(), strict=True)), dict(zip(keys, above, strict=True))
    paths = []
    for stack in stacks:
        path: list[str] = []
        node = stack
        while node in names and len(path) < 1000:
            path.append(names[node])
            node = parents[node]
        paths.append(path[::-1])
    return paths


def find_place(selection: Selection, text: str, column: str) -> tuple[str, pd.DataFrame]:
    """The level of a place (functions or lines) and its one row of ``top.row_sums``.

    Errors:
        FormatError: no recording has it, or several functions have the name.
    """
    file, colon, name = text.rpartition(":")
    if colon and name.isdecimal():
        return "lines", _line(row_sums(selection, "lines", column), file, int(name))
    return "functions", _function(row_sums(selection, "functions", column), text)


def _line(places: pd.DataFrame, file: str, line: int) -> pd.DataFrame:
    named = places[(places["line"] == line) & _of_file(places, file)].nlargest(1, "amount")
    if named.empty:
        raise FormatError(f"no recording has anything at {printable(f'{file}:{line}', 120)}")
    return named.reset_index(drop=True)


def _function(places: pd.DataFrame, text: str) -> pd.DataFrame:
    file, colon, name = text.rpartition(":")
    named = places[places["name"] == (name if colon else text)]
    if named.empty:
        named = places[places["name"].astype(str).str.endswith(f".{name if colon else text}")]
    if colon:
        named = named[_of_file(named, file)]
    if named.empty:
        raise FormatError(f"no recording has time in a function {printable(text, 80)!r}")
    if named["file"].nunique(dropna=False) > 1 or named["name"].nunique() > 1:
        candidates = ", ".join(f"{row.file}:{row.name}" for row in named.head(5).itertuples(index=False))
        raise FormatError(f"several functions have the name {printable(text, 80)!r}: name one of {candidates}")
    return named.head(1).reset_index(drop=True)


def _of_file(places: pd.DataFrame, file: str) -> pd.Series:
    return places["file"].astype(str).str.endswith(file)
