"""Sums by line, function, file and thread, self and total, under a scope.

A scope says whose lines are charged, and is applied after the run. The time of a frame that is out of scope (a
library's) is charged to the nearest of its callers that is in scope, as Scalene does while it samples (2023, section
2.1); here another scope needs no second run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING, CallTree
from ..recording.definitions import Threads
from ..recording.frame import Column, Frame, WholeNumbers, texts
from ..recording.sources import Sources
from ..recording.text import printable
from ..statistics.grouped_sums import summed
from ..statistics.intervals import wilson
from .reduction import MEASURES, rank, seconds_of, sums_by
from .sites import NodeSums

PROJECT, ALL = "project", "all"

_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages)/"  # installed packages
    r"|(^|/)(lib|lib64|Lib)/(python|pypy)\d+\.\d+t?/"  # the standard library of an installation
    r"|(^|/)python\d+\.zip/"  # the standard library of an embedded interpreter
    r"|(^|/)installed_wheels/(\d+/)?[0-9a-f]{40,64}/[^/]+\.whl/|(^|/)\.bootstrap/pex/"  # what a pex unpacks
    r"|(^|/)tachograph/recorder/"  # what records, which may be installed from its sources
)
_NO_FILE = "<"
"""The beginning of names of code that is in no file; there may be more behind the bracket that closes."""
OWN_CODE = ("<string>", "<stdin>")
"""Names of code without a file: that of ``python -c`` and ``python < script``, and code that libraries make by exec."""
_TYPED = ("<ipython-input", "<python-input")
"""Prefixes of the names of typed code: in IPython, and in Python's own prompt from 3.13 on."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A choice of files. ``text`` is ``project``, ``all`` or a glob."""

    text: str = PROJECT
    interpreters: tuple[str, ...] = ()
    """Directories of the interpreters that ran: programs beside them (``pip``, ``pytest``) are not the project."""
    own_code: bool = True
    """True if OWN_CODE is the program's."""
    entry_package: str | None = None
    """The package of a program that unpacks itself into a cache: the project's, wherever libraries are."""

    def includes(self, path: str) -> bool:
        """True if a file is in scope."""
        path = path.replace("\\", "/")
        if self.text == ALL:
            return True
        if self.text == PROJECT:
            return self._is_project(path)
        if self.text == path:
            return True  # names of cells have brackets, `In [3]`, which in a glob mean something else
        return any(re.match(translate(pattern), path) for pattern in self._patterns())

    def _patterns(self) -> list[str]:
        """A glob may match a whole path, the end of one, or a folder in it; ``*`` matches ``/`` too."""
        glob = self.text.replace("\\", "/").rstrip("/")
        return [glob, f"*/{glob}", f"{glob}/*", f"*/{glob}/*"]

    def _is_project(self, path: str) -> bool:
        if path.startswith(_NO_FILE):
            return (self.own_code and path in OWN_CODE) or path.startswith(_TYPED)
        if self.entry_package is not None:
            package = re.escape(self.entry_package)
            if re.search(rf"/(site-packages|[^/]+\.whl)/{package}(/|\.py$)", path):
                return True
        if path.rpartition("/")[0] in self.interpreters:
            return False
        if any(path.startswith(f"{folder}/Lib/") for folder in self.interpreters):  # Windows
            return False
        return not _LIBRARY.search(path)


OUT_OF_SCOPE = "<other code>"
UNKNOWN_CODE = "<unknown code>"

_CPU, _WAIT = MEASURES.index("cpu_ns"), MEASURES.index("wait_ns")
_Array = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placement:
    """Row of a frame to which each node of the call tree and each label is charged; rows without a line are last."""

    kind: str
    """``lines``, ``functions`` or ``files``."""
    node_rows: _Ids
    label_rows: dict[str, int]
    rows: int


Columns = Mapping[str, Column]
"""Columns by name."""


class MoreColumns(Protocol):
    """Adds columns to the frames of a summary: measures beside time."""

    def columns(self, placement: Placement, own: _Array, total: _Array) -> Columns:
        """The columns, for every row of the frame, from its own measures and its total ones."""
        ...


class Summary:
    """The measures of every node of the call tree and of every label, summed up in several ways.

    ``rows`` are the time measures by thread, ``sums`` all measures by node; those of time come first.
    """

    def __init__(
        self,
        tree: CallTree,
        rows: Frame,
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
        """True for nodes in scope; unknown code is in the scope ``all`` only."""
        files = np.array([*map(scope.includes, self.tree.paths), scope.text == ALL], np.bool_)
        return np.asarray(files[self.tree.file], np.bool_)

    def charged_cpu(self, in_scope: NDArray[np.bool_]) -> tuple[float, float]:
        """CPU time of all nodes, and of those that have themselves or a caller in scope."""
        cpu = self.sums.nodes[:, _CPU]
        return float(cpu.sum()), float(cpu[self.tree.nearest(in_scope) != NOTHING].sum())

    def lines(self, in_scope: NDArray[np.bool_], sources: Sources) -> Frame:
        """Sums of each file and line; see ``Profile.lines``."""
        keys, label = self._lines(in_scope)
        frame = self._by("lines", keys, in_scope, label)
        return frame.with_columns({"source": _source_column(frame, sources)})

    def placed_lines(self, in_scope: NDArray[np.bool_]) -> tuple[Placement, Frame]:
        """The placement and the labels of the frame of lines, before it is sorted."""
        keys, label = self._lines(in_scope)
        names = [OUT_OF_SCOPE, *self.sums.labels]
        return self._placement("lines", keys, len(label), in_scope), _with_rows_without_line(label, names)

    def _lines(self, in_scope: NDArray[np.bool_]) -> tuple[_Ids, Frame]:
        """The number of the line of each node, and what the lines are."""
        tree = self.tree
        # Where the line is not known, the function is the next best place.
        place = np.where(tree.line == NOTHING, tree.function, NOTHING)
        keys, size = rank([tree.file, tree.line, place])
        first = np.zeros(size, np.int64)
        first[keys[::-1]] = np.arange(len(tree) - 1, -1, -1)
        files, lines = tree.file[first], tree.line[first]
        label = Frame(
            {
                "file": self._paths(files),
                "line": WholeNumbers(lines, lines == NOTHING),
                "function": self._heaviest_functions(keys, size, in_scope),
                "file_id": files,
            }
        )
        return keys, label

    def functions(self, in_scope: NDArray[np.bool_]) -> Frame:
        """Sums of each function; see ``Profile.functions``."""
        tree = self.tree
        # The last one stands for code that is not known.
        keys = np.where(tree.function == NOTHING, len(tree.function_names), tree.function)
        label = Frame(
            {
                "function": [*map(printable, tree.function_names), UNKNOWN_CODE],
                "file": [*self._paths(tree.function_files), None],
                "line": WholeNumbers.of([*tree.function_lines.tolist(), None]),
                "language": ["python"] * (len(tree.function_names) + 1),
                "file_id": np.append(tree.function_files, NOTHING),
            }
        )
        return self._by("functions", keys, in_scope, label)

    def files(self, in_scope: NDArray[np.bool_]) -> Frame:
        """Sums of each file; see ``Profile.files``."""
        paths = self.tree.paths
        keys = np.where(self.tree.file == NOTHING, len(paths), self.tree.file)
        names = [*map(printable, paths), UNKNOWN_CODE]
        label = Frame({"file": names, "file_id": np.append(np.arange(len(paths)), NOTHING)})
        return self._by("files", keys, in_scope, label)

    def threads(
        self, threads: Threads, held: Mapping[str, _Array] | None = None, processes: NDArray[np.bool_] | None = None
    ) -> Frame:
        """Sums of each thread; see ``Profile.threads``. ``held`` has more columns, with a value for each thread.

        Threads of which nothing was measured are left out, but for main threads; of ``processes`` only, if it is given.
        """
        sums = sums_by(self._rows, self._rows["thread"], len(threads))
        more = held or {}
        used = (sums[:, _CPU] > 0) | (sums[:, _WAIT:].sum(axis=1) > 0) | threads.main
        for values in more.values():
            used |= np.nan_to_num(values) > 0
        if processes is not None:
            used &= processes[threads.process]
        # Most first, equal ones as they were. There may be millions: their frame is made once, in its order.
        rows = np.flatnonzero(used)
        rows = rows[np.lexsort((-sums[rows, _WAIT], -sums[rows, _CPU]))]
        seconds = seconds_of(sums[rows], waits_known=self.waits_known)
        names = threads.name
        return Frame(
            {
                "thread": rows,
                "name": [None if name is None else printable(name) for name in map(names.__getitem__, rows.tolist())],
                "tid": threads.tid[rows],
                "process": threads.process[rows],
                "main": threads.main[rows],
                "start_ns": threads.start_ns[rows],
                "end_ns": threads.end_ns[rows],
                "clock_cpu_s": threads.cpu_ns[rows].floats() / 1e9,
                **seconds,
                **{name: values[rows] for name, values in more.items()},
                **self._shares(seconds["cpu_s"], ""),
            }
        )

    def _paths(self, files: _Ids) -> list[str | None]:
        """The paths of files, fit to be shown; None for NOTHING."""
        paths: list[str | None] = [*(printable(path, 4096) for path in self.tree.paths), None]
        return [paths[file] for file in files.tolist()]

    def _placement(self, kind: str, keys: _Ids, size: int, in_scope: NDArray[np.bool_]) -> Placement:
        """The placement for the frame of these keys; code out of scope is in the first row without a line."""
        charged = self.tree.nearest(in_scope)
        return Placement(
            kind,
            np.where(charged != NOTHING, keys[charged], size),
            {name: size + 1 + number for number, name in enumerate(self.sums.labels)},
            size + 1 + len(self.sums.labels),
        )

    def _by(self, kind: str, keys: _Ids, in_scope: NDArray[np.bool_], label: Frame) -> Frame:
        """Self and total measures by key, the rows without a line behind them, sorted by CPU time."""
        size = len(label)
        charged = self.tree.nearest(in_scope)
        placed = charged != NOTHING
        own = summed(keys[charged[placed]], self.sums.nodes[placed], size)
        outermost = self.tree.outermost(np.where(in_scope, keys, NOTHING))
        total = summed(keys[outermost], self.tree.below(self.sums.nodes)[outermost], size)
        names = [OUT_OF_SCOPE, *self.sums.labels]
        extra = np.vstack([self.sums.nodes[~placed].sum(axis=0), self.sums.stackless])
        own, total = np.concatenate([own, extra]), np.concatenate([total, extra])
        placement = self._placement(kind, keys, size, in_scope)
        more = {name: values for each in self._more for name, values in each.columns(placement, own, total).items()}
        seconds = seconds_of(own, waits_known=self.waits_known)
        totals = seconds_of(total, waits_known=self.waits_known, prefix="total_")
        times = seconds | totals
        columns: dict[str, Column] = {**times, **more}
        columns |= self._shares(seconds["cpu_s"], "") | self._shares(totals["total_cpu_s"], "total_")
        used = (total[:, _CPU] > 0) | (total[:, _WAIT:] > 0).any(axis=1) | (totals["total_samples"] > 0)
        for values in more.values():
            if isinstance(values, WholeNumbers):
                used |= ~values.unknown & (values.values > 0)
            elif values.dtype != object:
                used |= values > 0
        # Most first, equal rows as they were. Only rows that are used become a frame, in their order, once.
        by = [-np.nan_to_num(times[name][used]) for name in ("total_wait_s", "total_cpu_s", "cpu_s")]
        order = np.flatnonzero(used)[np.lexsort(by)]
        return _with_rows_without_line(label, names).with_columns(columns).take(order)

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
        # Where no time was seen, waiting decides, and then memory.
        less = nodes[:, _WAIT] * 1e-6 + nodes[:, len(MEASURES) :].sum(axis=1) * 1e-12
        weight = summed(charged[placed], (nodes[:, _CPU] + less)[placed], len(tree))
        group, groups = rank([keys, tree.function])
        sums = summed(group, weight, groups)
        best = np.empty(size, np.int64)
        # Where several have the most, it is the last of them to come.
        nodes_of = np.empty(groups, np.int64)
        nodes_of[group] = np.arange(len(tree))
        order = nodes_of[np.argsort(sums, kind="stable")]
        best[keys[order]] = tree.function[order]
        names = {function: printable(tree.function_names[function]) for function in set(best.tolist()) - {NOTHING}}
        return [names.get(function, UNKNOWN_CODE) for function in best.tolist()]


def _source_column(frame: Frame, sources: Sources) -> NDArray[Any]:
    """The source of each line; found file by file, so that each text is split into lines once and not kept."""
    lines, files = frame["line"], frame["file_id"]
    texts: NDArray[Any] = np.full(len(frame), None, object)
    for row in np.argsort(files, kind="stable").tolist():
        if not lines.unknown[row]:
            texts[row] = sources.line(int(files[row]), int(lines.values[row]))
    return texts


def _with_rows_without_line(label: Frame, names: list[str]) -> Frame:
    """The labels, and behind them the rows for what has no line, which are ``names``."""
    named = "function" if "function" in label else "file"
    nothing: NDArray[Any] = np.full(len(names), None, object)
    columns: dict[str, Column] = {}
    for name, values in label.columns.items():
        if isinstance(values, WholeNumbers):
            columns[name] = WholeNumbers.of([*values.tolist(), *nothing])
        elif name == "file_id":
            columns[name] = np.append(values, np.full(len(names), NOTHING))
        else:
            columns[name] = np.append(values, texts(names) if name == named else nothing)
    return Frame(columns)
