"""Sums by line, function, file and thread, self and total, under a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.sources import Sources
from ..recording.text import printable
from ..recording.tree import NOTHING
from .intervals import wilson
from .measures import MEASURES, rank, seconds_of, sums_by
from .nodes import NodeSums
from .scope import ALL, Scope

OUT_OF_SCOPE = "<out of scope>"
UNKNOWN_CODE = "<unknown code>"

_CPU, _WAIT = MEASURES.index("cpu_ns"), MEASURES.index("wait_ns")
_Array = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """Which row of a frame each node of the call tree and each label is charged to; rows without a line are last."""

    kind: str
    """``lines``, ``functions`` or ``files``."""
    node_rows: _Ids
    label_rows: dict[str, int]
    rows: int


Columns = Mapping[str, "NDArray[Any] | pd.arrays.IntegerArray"]
"""Columns by name: numbers, nullable whole numbers, or objects."""


class MoreColumns(Protocol):
    """Adds columns to the frames of a summary: what is measured beside time."""

    def columns(self, placement: Placement, own: _Array, total: _Array) -> Columns:
        """The columns, for every row of the frame, from its own measures and its total ones."""
        ...


class Summary:
    """The measures of every node of the call tree and of what has no stack, summed up in several ways.

    ``rows`` are the time measures by thread, ``sums`` all measures by node; those of time come first.
    """

    def __init__(
        self,
        tree: CallTree,
        rows: pd.DataFrame,
        sums: NodeSums,
        effective: float,
        *,
        waits_known: bool,
        more: Sequence[MoreColumns] = (),
    ) -> None:
        self.tree = tree
        self._rows = rows
        self.sums = sums
        self.effective = effective
        self.waits_known = waits_known
        self._more = more
        self.total_cpu_ns = float(rows["cpu_ns"].sum())
        """All CPU time in question."""

    def with_more(self, *more: MoreColumns) -> Summary:
        """The same, with more columns in the frames of lines, functions and files."""
        return Summary(self.tree, self._rows, self.sums, self.effective, waits_known=self.waits_known, more=more)

    def in_scope(self, scope: Scope) -> NDArray[np.bool_]:
        """Which nodes are in scope; code that is not known is in the scope ``all`` only."""
        files = np.array([*map(scope.includes, self.tree.paths), scope.text == ALL], np.bool_)
        return np.asarray(files[self.tree.file], np.bool_)

    def charged_cpu(self, in_scope: NDArray[np.bool_]) -> tuple[float, float]:
        """CPU time of all nodes, and of those that have themselves or a caller in scope."""
        cpu = self.sums.nodes[:, _CPU]
        return float(cpu.sum()), float(cpu[self.tree.nearest(in_scope) != NOTHING].sum())

    def lines(self, in_scope: NDArray[np.bool_], sources: Sources) -> pd.DataFrame:
        """By file and line; see ``Profile.lines``."""
        keys, label = self._lines(in_scope)
        frame = self._by("lines", keys, in_scope, label)
        frame["source"] = _source_column(frame, sources)
        return frame

    def placed_lines(self, in_scope: NDArray[np.bool_]) -> tuple[Placement, pd.DataFrame]:
        """Where the frame of lines has what, and how its rows are labelled, before it is sorted."""
        keys, label = self._lines(in_scope)
        names = [OUT_OF_SCOPE, *self.sums.labels]
        labels = pd.concat([label, _rows_without_line(names, label)], ignore_index=True)
        return self._placement("lines", keys, len(label), in_scope), labels

    def _lines(self, in_scope: NDArray[np.bool_]) -> tuple[_Ids, pd.DataFrame]:
        """The number of the line of each node, and what the lines are."""
        tree = self.tree
        # Where the line is not known, the function is the next best place.
        place = np.where(tree.line == NOTHING, tree.function, NOTHING)
        keys, size = rank([tree.file, tree.line, place])
        first = np.zeros(size, np.int64)
        first[keys[::-1]] = np.arange(len(tree) - 1, -1, -1)
        files, lines = tree.file[first], tree.line[first]
        label = pd.DataFrame(
            {
                "file": self._paths(files),
                "line": pd.array([line if line != NOTHING else None for line in lines.tolist()], "Int64"),
                "function": self._heaviest_functions(keys, size, in_scope),
                "file_id": files,
            }
        )
        return keys, label

    def functions(self, in_scope: NDArray[np.bool_]) -> pd.DataFrame:
        """By function; see ``Profile.functions``."""
        tree = self.tree
        # The last one stands for code that is not known.
        keys = np.where(tree.function == NOTHING, len(tree.function_names), tree.function)
        label = pd.DataFrame(
            {
                "function": [*map(printable, tree.function_names), UNKNOWN_CODE],
                "file": [*self._paths(tree.function_files), None],
                "line": pd.array([*tree.function_lines.tolist(), None], "Int64"),
                "language": "python",
                "file_id": [*tree.function_files.tolist(), NOTHING],
            }
        )
        return self._by("functions", keys, in_scope, label)

    def files(self, in_scope: NDArray[np.bool_]) -> pd.DataFrame:
        """By file; see ``Profile.files``."""
        paths = self.tree.paths
        keys = np.where(self.tree.file == NOTHING, len(paths), self.tree.file)
        label = pd.DataFrame({"file": [*map(printable, paths), UNKNOWN_CODE], "file_id": [*range(len(paths)), NOTHING]})
        return self._by("files", keys, in_scope, label)

    def threads(
        self, threads: pa.Table, held: pd.DataFrame | None = None, processes: NDArray[np.bool_] | None = None
    ) -> pd.DataFrame:
        """By thread; see ``Profile.threads``. ``held`` has more columns, with a row for each thread.

        Threads of which nothing was measured are left out, but for main threads; of ``processes`` only, if it is given.
        """
        sums = sums_by(self._rows, self._rows["thread"].to_numpy().astype(np.int64), threads.num_rows)
        label = pd.DataFrame(
            {
                "thread": np.arange(threads.num_rows),
                "name": [printable(name) if name is not None else None for name in threads.column("name").to_pylist()],
                "tid": pd.array(threads.column("tid").to_pylist(), "Int64"),
                "process": threads.column("process").to_numpy(),
                "main": main_threads(threads),
                "start_ns": pd.array(threads.column("start_ns").to_pylist(), "Int64"),
                "end_ns": pd.array(threads.column("end_ns").to_pylist(), "Int64"),
                "clock_cpu_s": [None if ns is None else ns / 1e9 for ns in threads.column("cpu_ns").to_pylist()],
            }
        ).astype({"clock_cpu_s": np.float64})
        more = pd.DataFrame(index=label.index) if held is None else held
        seconds = seconds_of(sums, waits_known=self.waits_known)
        shares = pd.DataFrame(self._shares(seconds["cpu_s"], ""))
        frame = pd.concat([label, pd.DataFrame(seconds), more, shares], axis=1)
        used = (sums[:, _CPU] > 0) | (sums[:, _WAIT:].sum(axis=1) > 0) | (more.fillna(0.0) > 0).any(axis=1)
        kept = used | frame["main"]
        if processes is not None:
            kept &= processes[frame["process"]]
        frame = frame[kept]
        return frame.sort_values(["cpu_s", "wait_s"], ascending=False, kind="stable").reset_index(drop=True)

    def _paths(self, files: _Ids) -> list[str | None]:
        """The paths of files, fit to be shown; None for NOTHING."""
        paths: list[str | None] = [*(printable(path, 4096) for path in self.tree.paths), None]
        return [paths[file] for file in files.tolist()]

    def _placement(self, kind: str, keys: _Ids, size: int, in_scope: NDArray[np.bool_]) -> Placement:
        """Where the frame of these keys has what; what is out of scope is in the first row without a line."""
        charged = self.tree.nearest(in_scope)
        return Placement(
            kind,
            np.where(charged != NOTHING, keys[charged], size),
            {name: size + 1 + number for number, name in enumerate(self.sums.labels)},
            size + 1 + len(self.sums.labels),
        )

    def _by(self, kind: str, keys: _Ids, in_scope: NDArray[np.bool_], label: pd.DataFrame) -> pd.DataFrame:
        """Self and total measures by key, the rows without a line behind them, sorted by CPU time."""
        size = len(label)
        charged = self.tree.nearest(in_scope)
        placed = charged != NOTHING
        own = _sum_rows(self.sums.nodes[placed], keys[charged[placed]], size)
        outermost = self.tree.outermost(np.where(in_scope, keys, NOTHING))
        total = _sum_rows(self.tree.below(self.sums.nodes)[outermost], keys[outermost], size)
        names = [OUT_OF_SCOPE, *self.sums.labels]
        extra = np.vstack([self.sums.nodes[~placed].sum(axis=0), self.sums.stackless])
        own, total = np.concatenate([own, extra]), np.concatenate([total, extra])
        placement = self._placement(kind, keys, size, in_scope)
        more = {name: values for each in self._more for name, values in each.columns(placement, own, total).items()}
        seconds = seconds_of(own, waits_known=self.waits_known)
        totals = seconds_of(total, waits_known=self.waits_known, prefix="total_")
        columns = seconds | totals | more
        columns |= self._shares(seconds["cpu_s"], "") | self._shares(totals["total_cpu_s"], "total_")
        used = (total[:, _CPU] > 0) | (total[:, _WAIT:] > 0).any(axis=1) | (totals["total_samples"] > 0)
        for values in more.values():
            if isinstance(values, np.ndarray) and values.dtype != object:
                used |= values > 0
            elif isinstance(values, pd.arrays.IntegerArray):
                used |= (values > 0).to_numpy(np.bool_, na_value=False)
        # Most first, equal rows as they were. Only rows that are used become a frame, in their order, once.
        by = [-np.nan_to_num(columns[name][used]) for name in ("total_wait_s", "total_cpu_s", "cpu_s")]
        order = np.flatnonzero(used)[np.lexsort(by)]
        labels = pd.concat([label, _rows_without_line(names, label)], ignore_index=True)
        values_of = pd.DataFrame({name: values[order] for name, values in columns.items()})
        return pd.concat([labels.take(order).reset_index(drop=True), values_of], axis=1)

    def _shares(self, seconds: _Array, prefix: str) -> dict[str, NDArray[Any]]:
        """The share of all CPU time, with the ends of its interval."""
        shares = seconds * 1e9 / self.total_cpu_ns if self.total_cpu_ns > 0 else np.full(len(seconds), np.nan)
        low, high = wilson(shares, self.effective)
        return {f"{prefix}cpu_share": shares, f"{prefix}cpu_share_low": low, f"{prefix}cpu_share_high": high}

    def _heaviest_functions(self, keys: _Ids, size: int, in_scope: NDArray[np.bool_]) -> list[str]:
        """The function that most of each line's time belongs to: a line may be shared by a function and its lambdas."""
        tree = self.tree
        charged = tree.nearest(in_scope)
        placed = charged != NOTHING
        nodes = self.sums.nodes
        weight = np.zeros(len(tree))
        # Where no time was seen, waiting decides, and then memory.
        less = nodes[:, _WAIT] * 1e-6 + nodes[:, len(MEASURES) :].sum(axis=1) * 1e-12
        np.add.at(weight, charged[placed], (nodes[:, _CPU] + less)[placed])
        frame = pd.DataFrame({"key": keys, "function": tree.function, "weight": weight})
        sums = frame.groupby(["key", "function"], sort=False, as_index=False)["weight"].sum()
        best = sums.sort_values("weight", kind="stable").drop_duplicates("key", keep="last")
        names = [UNKNOWN_CODE] * size
        for key, function in zip(best["key"].tolist(), best["function"].tolist(), strict=True):
            if function != NOTHING:
                names[key] = printable(tree.function_names[function])
        return names


def main_threads(threads: pa.Table) -> NDArray[np.bool_]:
    """Which threads are their process's main thread; one of which only the id is left counts as another."""
    return np.array([main is True for main in threads.column("main").to_pylist()], np.bool_)


def _source_column(frame: pd.DataFrame, sources: Sources) -> pd.Series:
    """The source of each line; found file by file, because a text is split into lines once and not kept for ever."""
    located = frame[frame["line"].notna()].sort_values("file_id", kind="stable")
    places = zip(located["file_id"].tolist(), located["line"].tolist(), strict=True)
    found = pd.Series([sources.line(file, int(line)) for file, line in places], located.index, dtype=object)
    return found.reindex(frame.index).astype(object).where(lambda values: values.notna(), None)


def _rows_without_line(names: list[str], label: pd.DataFrame) -> pd.DataFrame:
    """The labels of the rows for what has no line, in the shape of ``label``."""
    frame = pd.DataFrame(
        {column: pd.array([None] * len(names), label[column].dtype) for column in ("file", "line") if column in label}
    )
    frame["function" if "function" in label else "file"] = names
    frame["file_id"] = NOTHING
    return frame


def _sum_rows(values: _Array, keys: _Ids, size: int) -> _Array:
    sums = np.zeros((size, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(keys, weights=values[:, column], minlength=size)
    return sums
