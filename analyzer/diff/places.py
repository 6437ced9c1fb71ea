"""The rows of a diff: the same line, function, file, thread or node of the call tree of both sides under one number.

Native functions are matched by name and library, wherever the library is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING
from ..recording.native_names import short_library
from ..recording.text import printable, source_line
from ..report_data.difference import Metric, Status
from ..samples.sites import VARIANCES
from ..samples.summary import UNKNOWN_CODE
from ..statistics.intervals import poisson_sums
from .links import NO_FILE, Link, SourceFile
from .runs import Key, Run, Side, number_or_nothing

_Ids = NDArray[np.int64]
_NUMBERS = ("line", "base_line", "new_line")


ROOT = -1


class Row(NamedTuple):
    """A row of a frame of lines, functions or files; None for columns that it lacks."""

    file_id: int
    line: Any
    function: Any
    file: Any
    source: Any


@dataclass
class Rows:
    """Rows in the making. ``of_base`` and ``of_new`` hold for each run the row of each row of its frame."""

    count: int = 0
    """Number of rows that are described."""
    of_base: list[_Ids] = field(default_factory=list)
    of_new: list[_Ids] = field(default_factory=list)
    pseudo: list[bool] = field(default_factory=list)
    """True for rows that are not code of the program, such as memory held before the recording."""
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def add(self, place: dict[str, Any], *, pseudo: bool = False) -> None:
        """Describes the next row; all rows have the same keys."""
        self.pseudo.append(pseudo)
        for name, value in place.items():
            self._columns.setdefault(name, []).append(value)
        self.count += 1

    def number(self, key: Hashable) -> int:
        """The row of a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def without_place(self) -> list[Any]:
        """The keys of rows that are not described yet, in order."""
        return list(self._numbers)[self.count :]

    def frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """The places as a frame."""
        series: dict[str, Any] = {}
        for name in columns:
            values = self._columns.get(name, [])
            series[name] = pd.array(values, "Int64") if name in _NUMBERS else pd.Series(values, dtype=object)
        return pd.DataFrame(series)


class Placer:
    """Finds the rows of lines, functions, files and threads of two linked sides."""

    def __init__(self, base: Side, new: Side, link: Link) -> None:
        self._base, self._new, self._link = base, new, link

    def lines(self) -> Rows:
        """Rows of the lines."""
        return self._rows("lines", self._line_key, self._line_place)

    def functions(self) -> Rows:
        """Rows of the functions."""
        return self._rows("functions", self._function_key, self._function_row)

    def files(self) -> Rows:
        """Rows of the files."""
        return self._rows("files", self._file_key, self._file_place)

    def threads(self) -> Rows:
        """Rows of the threads, by name: nothing else identifies a thread across runs."""
        rows = Rows()
        names_of: list[set[str | None]] = []
        for side, numbers in ((self._base, rows.of_base), (self._new, rows.of_new)):
            names_of.append(set())
            for run in side.runs:
                names = [name if isinstance(name, str) else None for name in run.profile.threads["name"]]
                numbers.append(np.array([rows.number(name) for name in names], np.int64))
                names_of[-1].update(names)
        for name in rows.without_place():
            in_base, in_new = (name in names for names in names_of)
            status = Status.SAME if in_base and in_new else Status.VANISHED if in_base else Status.NEW
            rows.add({"status": status, "name": name})
        return rows

    def _rows(
        self,
        name: str,
        key_of: Callable[[Side, int, Row], Key],
        place_of: Callable[[Key | None, Key | None, Row, str | None], dict[str, Any]],
    ) -> Rows:
        rows = Rows()
        for end, side, row_numbers in (("base", self._base, rows.of_base), ("new", self._new, rows.of_new)):
            for number, run in enumerate(side.runs):
                # A run with its side's own numbers has the same places as the side.
                speaks_for = end if side.directions[number] is None else None
                numbers = []
                for row in _rows_of(getattr(run.profile, name)):
                    own = key_of(side, number, row)
                    base, new = self._both(name, side, own)
                    key = ("new", new) if new is not None else ("base", base)
                    numbers.append(rows.number(key))
                    if numbers[-1] == rows.count:
                        rows.add(place_of(base, new, row, speaks_for), pseudo=own[0] == NO_FILE)
                row_numbers.append(np.array(numbers, np.int64))
        return rows

    def _both(self, name: str, side: Side, own: Key) -> tuple[Key | None, Key | None]:
        """The keys on both sides of a row that is ``own`` on one of them."""
        is_base = side is self._base
        other = self.follow(name, own, forward=is_base)
        return (own, other) if is_base else (other, own)

    def follow(self, name: str, key: Key, *, forward: bool) -> Key | None:
        """The key on the other side; None if there is none."""
        direction = self._link.forward if forward else self._link.backward
        if key[0] == "only":
            return None
        file: Any = key[0]
        if file == NO_FILE:
            return key
        if name == "files":
            followed = direction.files.get(file)
            return None if followed is None else (followed,)
        if name == "functions":
            return direction.function(key)  # type: ignore[arg-type]
        if key[1] is None:
            followed = direction.files.get(file)
            return None if followed is None else (followed, *key[1:])
        return direction.line(*key)  # type: ignore[arg-type]

    def _line_key(self, side: Side, run: int, row: Row) -> Key:
        return side.keys[run].line(row.file_id, number_or_nothing(row.line), row.function)

    def _function_key(self, side: Side, run: int, row: Row) -> Key:
        return side.keys[run].function((row.file_id, row.function, number_or_nothing(row.line) or 0))

    def _file_key(self, side: Side, run: int, row: Row) -> Key:
        # Rows without a file have their label in its place.
        return (side.keys[run].file(row.file_id),) if row.file_id != NO_FILE else (NO_FILE, row.file)

    def _line_place(self, base: Key | None, new: Key | None, row: Row, speaks_for: str | None) -> dict[str, Any]:
        place: dict[str, Any] = {"status": self._status(base, new, self._line_status), "function": row.function}
        for end, side, key in (("base", self._base, base), ("new", self._new, new)):
            file, line = _place(side, key)
            if end == speaks_for:
                source = row.source
            elif place["status"] == Status.SAME:
                source = row.source if speaks_for is not None else _source(side, file, line)
            else:
                source = _source(side, file, line)
            place |= {f"{end}_file": _path(side, file), f"{end}_line": line, f"{end}_source": source}
        return _best(place, ("file", "line", "source"))

    def function_place(self, base: Key | None, new: Key | None, name: str) -> dict[str, Any]:
        """Describes a function by its keys on both sides; ``name`` is for rows without a function."""
        place: dict[str, Any] = {"status": self._status(base, new, self._link.function_status)}
        for end, side, key in (("base", self._base, base), ("new", self._new, new)):
            file, line = _place(side, key, 2)
            own = None if key is None else name if key[0] == NO_FILE else key[-2]
            place |= {f"{end}_function": own, f"{end}_file": _path(side, file), f"{end}_line": line}
        return _best(place, ("function", "file", "line"))

    def _function_row(self, base: Key | None, new: Key | None, row: Row, _: str | None) -> dict[str, Any]:
        return self.function_place(base, new, row.function)

    def _file_place(self, base: Key | None, new: Key | None, row: Row, _: str | None) -> dict[str, Any]:
        def status(one: Any, other: Any) -> Status:
            own, its = self._base.files[one[0]], self._new.files[other[0]]
            if own.paths.isdisjoint(its.paths) and not (own.is_cell and its.is_cell):
                return Status.MOVED
            return Status.SAME if one[0] in self._link.forward.same else Status.EDITED

        place: dict[str, Any] = {"status": self._status(base, new, status)}
        for end, side, key in (("base", self._base, base), ("new", self._new, new)):
            labelled = key is not None and key[0] == NO_FILE
            place[f"{end}_file"] = row.file if labelled else _path(side, _place(side, key)[0])
        return _best(place, ("file",))

    def _line_status(self, base: Any, new: Any) -> Status:
        return Status.SAME if base[1] is None else self._link.line_status(base, new)

    def _status(self, base: Key | None, new: Key | None, both: Callable[[Any, Any], Status]) -> Status:
        if base is not None and new is not None:
            return Status.SAME if base[0] == NO_FILE else both(base, new)
        key, blind = (base, self._link.forward.blind) if new is None else (new, self._link.backward.blind)
        if key is not None and key[0] in blind:
            return Status.NOT_FOLLOWED
        return Status.VANISHED if new is None else Status.NEW


def _rows_of(frame: pd.DataFrame) -> Iterator[Row]:
    columns = [frame[name].tolist() if name in frame else [None] * len(frame) for name in Row._fields]
    return map(Row._make, zip(*columns, strict=True))


def _place(side: Side, key: Key | None, line_at: int = 1) -> tuple[tuple[int, int] | None, int | None]:
    """Run (-1: the side's own numbers) and file of a key, and its line."""
    if key is None or key[0] == NO_FILE:
        return None, None
    plain: Any = key
    run = -1
    if key[0] == "only":
        run, plain = plain[1], plain[2:]
    line = plain[line_at] if len(plain) > line_at else None
    return (run, plain[0]), line


def _path(side: Side, file: tuple[int, int] | None) -> str | None:
    return None if file is None else _files(side, file[0])[file[1]].name


def _files(side: Side, run: int) -> list[SourceFile]:
    return side.files if run < 0 else side.runs[run].files


def _source(side: Side, file: tuple[int, int] | None, line: int | None) -> str | None:
    if file is None or line is None:
        return None
    lines = _files(side, file[0])[file[1]].lines
    return source_line(lines[line - 1]) if lines and 0 < line <= len(lines) else None


def _best(place: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """``place`` with ``names`` as the new recording has them, else as the base has them."""
    end = "base" if place["status"] == Status.VANISHED or place[f"new_{names[0]}"] is None else "new"
    return {**{name: place[f"{end}_{name}"] for name in names}, **place}


class MergedTree:
    """Nodes of all runs by their path of functions; a caller always has a smaller number than its callees."""

    def __init__(self, base: Side, new: Side, link: Link, placer: Placer) -> None:
        self._link, self._placer = link, placer
        self._base, self._new = base, new
        self._numbers: dict[tuple[int, int], int] = {}
        self._functions: dict[tuple[str, Key | None], int] = {}
        self._labels: list[dict[str, Any]] = []
        self._parents: list[int] = []
        self._function: list[int] = []
        self.of_base = [self._add(base, number, run) for number, run in enumerate(base.runs)]
        self.of_new = [self._add(new, number, run) for number, run in enumerate(new.runs)]

    def places(self) -> pd.DataFrame:
        """``Level.places`` of the calls."""
        labels = [self._labels[function] for function in self._function]
        frame = pd.DataFrame({"parent": np.array(self._parents, np.int64)})
        for column in ("function", "file", "line", "status"):
            values = [label[column] for label in labels]
            frame[column] = pd.array(values, "Int64") if column == "line" else pd.Series(values, dtype=object)
        return frame

    def sums(self, run: Run, nodes: _Ids, metrics: Sequence[Metric]) -> pd.DataFrame:
        """Amounts of a run for each node of the merged tree, with what is below it; of blocks with intervals."""
        own = pd.concat([run.profile.calls.nodes, run.profile.calls.stackless], ignore_index=True)
        size = len(self._parents)
        names = *(metric.column for metric in metrics), *VARIANCES
        columns = [name for name in names if name in own and own[name].notna().any()]
        sums = np.zeros((size, len(columns)))
        for column, name in enumerate(columns):
            weights = np.nan_to_num(own[name].to_numpy(np.float64))
            sums[:, column] = np.bincount(nodes, weights=weights, minlength=size)
        frame = pd.DataFrame(self._below(sums), columns=columns)
        for name in VARIANCES:
            of = name.replace("_variance", "_bytes")
            if name in frame and of in frame:
                amount, variance = (frame[each].to_numpy(np.float64) for each in (of, name))
                frame[f"{of}_low"], frame[f"{of}_high"] = poisson_sums(np.zeros(size), amount, variance)
        return frame

    def _below(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add to each node the sums below it, level by level from the deepest."""
        parents = np.array(self._parents, np.int64)
        depth = [0] * len(parents)
        for node, parent in enumerate(self._parents):
            depth[node] = depth[parent] + 1 if parent >= 0 else 0
        order = np.argsort(-np.array(depth, np.int64), kind="stable")
        steps = np.array(depth, np.int64)[order]
        ends = np.flatnonzero(np.diff(steps, append=-1)) + 1
        start = 0
        for end in ends.tolist():
            level = order[start:end]
            callers = parents[level]
            np.add.at(sums, callers[callers >= 0], sums[level[callers >= 0]])
            start = end
        return sums

    def _add(self, side: Side, number: int, run: Run) -> _Ids:
        """Merges a run; its nodes and then its labels, by their numbers in the merged tree."""
        calls = run.profile.calls
        functions = [self._known(side, number, key) for key in run.functions()]
        unknown = self._label(("label", (UNKNOWN_CODE,)), UNKNOWN_CODE)
        merged: list[int] = []
        parents: list[int] = calls.tree.parent.tolist()
        for parent, function in zip(parents, calls.tree.function.tolist(), strict=True):
            above = merged[parent] if parent >= 0 else ROOT
            merged.append(self._node(above, functions[function] if function != NOTHING else unknown))
        labels = calls.stackless["label"].tolist()
        merged += [self._node(ROOT, self._label(("label", (label,)), label)) for label in labels]
        return np.array(merged, np.int64)

    def _node(self, parent: int, function: int) -> int:
        node = self._numbers.setdefault((parent, function), len(self._parents))
        if node == len(self._parents):
            self._parents.append(parent)
            self._function.append(function)
        return node

    def _known(self, side: Side, number: int, function: tuple[int, str, int]) -> int:
        """The merged tree's number of a run's function."""
        own = side.keys[number].function(function)
        other = self._placer.follow("functions", own, forward=side is self._base)
        base, new = (own, other) if side is self._base else (other, own)
        key = ("new", new) if new is not None else ("base", base)
        if key in self._functions:
            return self._functions[key]
        place = self._placer.function_place(base, new, function[1])
        return self._label(key, place["function"], place)

    def _label(self, key: tuple[str, Key | None], name: str, place: dict[str, Any] | None = None) -> int:
        if key not in self._functions:
            self._functions[key] = len(self._labels)
            plain = {"function": printable(name), "file": None, "line": None, "status": Status.SAME}
            self._labels.append({name: (place or plain)[name] for name in plain})
        return self._functions[key]


class _NativeFunction(NamedTuple):
    """A native function as one side has it."""

    module: str | None
    build: str | None
    source: str | None
    line: int | None

    def place(self) -> dict[str, str | int | None]:
        """Where it is, under the names of the document's columns."""
        return {"library": self.module, "file": self.source, "line": self.line}


_UNSEEN = _NativeFunction(None, None, None, None)


def native_places(base: Side, new: Side) -> Rows:
    """The rows of native functions of two sides.

    A function is the same if its name is, and the short name of its library: packages are installed at other places,
    and wheels have a hash in the names of the libraries that they bring. What has no time on one side is *same* if that
    side has the same build of the library, and else *vanished* or *new*: of native code no source tells.
    """
    rows = Rows()
    of_sides: list[dict[tuple[str, str], _NativeFunction]] = []
    for side, row_numbers in ((base, rows.of_base), (new, rows.of_new)):
        functions: dict[tuple[str, str], _NativeFunction] = {}
        for run in side.runs:
            numbers = []
            for key, place in _functions(run):
                numbers.append(rows.number(key))
                # A run may have been recorded where the library had no debug information.
                first = functions.setdefault(key, place)
                if first.source is None:
                    functions[key] = first._replace(source=place.source, line=place.line)
            row_numbers.append(np.array(numbers, np.int64))
        of_sides.append(functions)
    builds = [{build for run in side.runs for build in run.builds.values() if build} for side in (base, new)]
    for key in rows.without_place():
        places = [functions.get(key) for functions in of_sides]
        present = [place for place in reversed(places) if place is not None]
        source = next((place for place in present if place.source is not None), present[0])
        rows.add(
            {
                "status": _status(places, builds),
                "function": key[0],
                "module": key[1],
                **source.place(),
                "library": present[0].module,
                **{
                    f"{end}_{name}": value
                    for end, place in zip(("base", "new"), places, strict=True)
                    for name, value in (place or _UNSEEN).place().items()
                },
            }
        )
    return rows


def _functions(run: Run) -> list[tuple[tuple[str, str], _NativeFunction]]:
    """Key and place of each row in the frame of native functions."""
    functions = run.profile.paths.functions
    rows = []
    for number in run.profile.frames.native_functions["native"].tolist():
        path = functions.paths[number]
        build = None if path is None else run.builds.get(path)
        place = _NativeFunction(functions.libraries[number], build, functions.sources[number], functions.lines[number])
        rows.append(((functions.names[number], short_library(path)), place))
    return rows


def _status(places: list[_NativeFunction | None], builds: list[set[str]]) -> Status:
    one, other = places
    if one is not None and other is not None:
        return Status.SAME
    if one is not None:
        return Status.SAME if one.build in builds[1] else Status.VANISHED
    return Status.SAME if other is not None and other.build in builds[0] else Status.NEW
