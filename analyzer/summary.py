"""Sums by line, function, file and thread, self and total, under a scope."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from .calltree import NOTHING, CallTree
from .edges import ENDING, STARTING
from .intervals import wilson
from .measures import MEASURES, as_seconds, rank, sums_by
from .scope import ALL, Scope
from .sources import Sources
from .text import printable

OUT_OF_SCOPE = "<out of scope>"
UNKNOWN_CODE = "<unknown code>"
STATE_ROWS = {
    1: "<no Python stack>",
    2: "<torn stack>",
    4: "<lost stack>",
    5: "<not seen>",
    STARTING: "<interpreter start>",
    ENDING: "<interpreter shutdown>",
}
UNKNOWN_STACK = "<unknown stack>"
"""Names of rows for time that has no line; they keep the sum of all rows equal to the total."""

_CPU, _WAIT = MEASURES.index("cpu_ns"), MEASURES.index("wait_ns")
_STATES = 9
_Array = NDArray[np.float64]
_Ids = NDArray[np.int64]


class Summary:
    """The measures of every node of the call tree, and of the rows without a stack by their state."""

    def __init__(self, tree: CallTree, rows: pd.DataFrame, effective: float, *, waits_known: bool) -> None:
        self.tree = tree
        self._rows = rows
        self._effective = effective
        self._waits_known = waits_known
        stack, state = (rows[name].to_numpy().astype(np.int64) for name in ("stack", "stack_state"))
        placed = stack >= 0
        self._nodes = sums_by(rows[placed], stack[placed], len(tree))
        self._stackless = sums_by(rows[~placed], state[~placed], _STATES)
        self._total_cpu = float(rows["cpu_ns"].sum())

    def in_scope(self, scope: Scope) -> NDArray[np.bool_]:
        """Which nodes are in scope; code that is not known is in the scope ``all`` only."""
        files = np.array([*map(scope.includes, self.tree.paths), scope.text == ALL], np.bool_)
        return np.asarray(files[self.tree.file], np.bool_)

    def charged_cpu(self, in_scope: NDArray[np.bool_]) -> tuple[float, float]:
        """CPU time of all nodes, and of those that have themselves or a caller in scope."""
        cpu = self._nodes[:, _CPU]
        return float(cpu.sum()), float(cpu[self.tree.nearest(in_scope) != NOTHING].sum())

    def lines(self, in_scope: NDArray[np.bool_], sources: Sources) -> pd.DataFrame:
        """By file and line; see ``Profile.lines``."""
        tree = self.tree
        # Where the line is not known, the function is the next best place.
        place = np.where(tree.line == NOTHING, tree.function, NOTHING)
        keys, size = rank([tree.file, tree.line, place])
        names = self._heaviest_functions(keys, size, in_scope)
        first = np.zeros(size, np.int64)
        first[keys[::-1]] = np.arange(len(tree) - 1, -1, -1)
        files, lines = tree.file[first], tree.line[first]
        label = pd.DataFrame(
            {
                "file": [self._path(file) for file in files],
                "line": pd.array([line if line != NOTHING else None for line in lines.tolist()], "Int64"),
                "function": names,
                "file_id": files,
            }
        )
        frame = self._by(keys, size, in_scope, label)
        frame["source"] = _source_column(frame, sources)
        return frame

    def functions(self, in_scope: NDArray[np.bool_]) -> pd.DataFrame:
        """By function; see ``Profile.functions``."""
        tree = self.tree
        # The last one stands for code that is not known.
        keys = np.where(tree.function == NOTHING, len(tree.function_names), tree.function)
        label = pd.DataFrame(
            {
                "function": [*map(printable, tree.function_names), UNKNOWN_CODE],
                "file": [*map(self._path, tree.function_files), None],
                "line": pd.array([*tree.function_lines.tolist(), None], "Int64"),
                "file_id": [*tree.function_files.tolist(), NOTHING],
            }
        )
        return self._by(keys, len(label), in_scope, label)

    def files(self, in_scope: NDArray[np.bool_]) -> pd.DataFrame:
        """By file; see ``Profile.files``."""
        paths = self.tree.paths
        keys = np.where(self.tree.file == NOTHING, len(paths), self.tree.file)
        label = pd.DataFrame({"file": [*map(printable, paths), UNKNOWN_CODE], "file_id": [*range(len(paths)), NOTHING]})
        return self._by(keys, len(label), in_scope, label)

    def threads(self, threads: pa.Table) -> pd.DataFrame:
        """By thread; see ``Profile.threads``. Threads without samples or waits are left out, but for main threads."""
        sums = sums_by(self._rows, self._rows["thread"].to_numpy().astype(np.int64), threads.num_rows)
        label = pd.DataFrame(
            {
                "name": [printable(name) if name is not None else None for name in threads.column("name").to_pylist()],
                "tid": pd.array(threads.column("tid").to_pylist(), "Int64"),
                "process": threads.column("process").to_numpy(),
                "main": main_threads(threads),
                "start_ns": pd.array(threads.column("start_ns").to_pylist(), "Int64"),
                "end_ns": pd.array(threads.column("end_ns").to_pylist(), "Int64"),
                "clock_cpu_s": [None if ns is None else ns / 1e9 for ns in threads.column("cpu_ns").to_pylist()],
            }
        ).astype({"clock_cpu_s": np.float64})
        frame = pd.concat([label, as_seconds(sums, waits_known=self._waits_known)], axis=1)
        self._add_shares(frame, "")
        frame = frame[(sums[:, _CPU] > 0) | (sums[:, _WAIT:].sum(axis=1) > 0) | frame["main"]]
        return frame.sort_values(["cpu_s", "wait_s"], ascending=False, kind="stable").reset_index(drop=True)

    def _path(self, file: int) -> str | None:
        return printable(self.tree.paths[file], 4096) if file != NOTHING else None

    def _by(self, keys: _Ids, size: int, in_scope: NDArray[np.bool_], label: pd.DataFrame) -> pd.DataFrame:
        """Self and total measures by key, the rows without a line behind them, sorted by CPU time."""
        charged = self.tree.nearest(in_scope)
        placed = charged != NOTHING
        own = _sum_rows(self._nodes[placed], keys[charged[placed]], size)
        outermost = self.tree.outermost(np.where(in_scope, keys, NOTHING))
        total = _sum_rows(self.tree.below(self._nodes)[outermost], keys[outermost], size)
        extra_labels, extra = self._rows_without_line(self._nodes[~placed].sum(axis=0), label)
        own, total = np.concatenate([own, extra]), np.concatenate([total, extra])
        frame = pd.concat([pd.concat([label, extra_labels], ignore_index=True)], axis=1)
        frame = pd.concat([frame, as_seconds(own, waits_known=self._waits_known)], axis=1)
        frame = pd.concat([frame, as_seconds(total, waits_known=self._waits_known, prefix="total_")], axis=1)
        self._add_shares(frame, "")
        self._add_shares(frame, "total_")
        used = (total[:, _CPU] > 0) | (total[:, _WAIT:].sum(axis=1) > 0) | (frame["total_samples"].to_numpy() > 0)
        order = ["cpu_s", "total_cpu_s", "total_wait_s"]
        return frame[used].sort_values(order, ascending=False, kind="stable").reset_index(drop=True)

    def _rows_without_line(self, out_of_scope: _Array, label: pd.DataFrame) -> tuple[pd.DataFrame, _Array]:
        names = [OUT_OF_SCOPE, *(STATE_ROWS.get(state, UNKNOWN_STACK) for state in range(_STATES))]
        sums = np.vstack([out_of_scope, self._stackless])
        keys = {name: number for number, name in enumerate(dict.fromkeys(names))}
        merged = _sum_rows(sums, np.array([keys[name] for name in names]), len(keys))
        labels = pd.DataFrame(
            {
                column: pd.array([None] * len(keys), label[column].dtype)
                for column in ("file", "line")
                if column in label
            }
        )
        labels["function" if "function" in label else "file"] = list(keys)
        labels["file_id"] = NOTHING
        return labels, merged

    def _add_shares(self, frame: pd.DataFrame, prefix: str) -> None:
        cpu = frame[f"{prefix}cpu_s"].to_numpy(np.float64)
        shares = cpu * 1e9 / self._total_cpu if self._total_cpu > 0 else np.full(len(cpu), np.nan)
        low, high = wilson(shares, self._effective)
        for name, values in (("share", shares), ("share_low", low), ("share_high", high)):
            frame[f"{prefix}cpu_{name}"] = values

    def _heaviest_functions(self, keys: _Ids, size: int, in_scope: NDArray[np.bool_]) -> list[str]:
        """The function that most of each line's time belongs to: a line may be shared by a function and its lambdas."""
        tree = self.tree
        charged = tree.nearest(in_scope)
        placed = charged != NOTHING
        weight = np.zeros(len(tree))
        np.add.at(weight, charged[placed], self._nodes[placed, _CPU] + self._nodes[placed, _WAIT] * 1e-6)
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


def _sum_rows(values: _Array, keys: _Ids, size: int) -> _Array:
    sums = np.zeros((size, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(keys, weights=values[:, column], minlength=size)
    return sums
