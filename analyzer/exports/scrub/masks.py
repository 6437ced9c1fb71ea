"""Masks the private parts of a recording's tables, and keeps what the analysis needs of them.

Three steps: ``Numbering`` drops the rows of tables with ids that nothing refers to any more, and numbers the rest anew;
long tables keep the rows of the selected threads and window; names and paths are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tachograph.format import TableSpec

from ...recording.opened import Recording
from ...recording.time_window import Window
from ...samples.counter_classes import GPU_DRIVER, RECORDER, RUNTIME
from ...samples.summary import Scope
from .request import Request

PLACE = "/scrubbed"
"""Where everything that had a path is put."""

_NO_NAME = re.compile(r"<[a-z ]{1,20}>")
"""Names that Python gives by itself: <module>, <lambda>, <string>."""

_SUFFIX = re.compile(r"\.(py|pyc|pyx|so)$")


def without_sources(files: pa.Table) -> pa.Table:
    """Files without text, and without the hash that would identify it."""
    return _nulled(files, "source", "sha256", "size")


def without_paths(tables: dict[str, pa.Table], project: Scope) -> dict[str, pa.Table]:
    """Replace all paths: a file of Python stays in or out of the project, a library stays recognisable as one."""
    files, modules, processes = (tables[name] for name in ("files", "modules", "processes"))

    def file(number: int, path: str) -> str:
        if _NO_NAME.fullmatch(path):
            return path
        folder = PLACE if project.includes(path) else f"{PLACE}/lib/python3.0/site-packages"
        suffix = _SUFFIX.search(path)
        return f"{folder}/file_{number}{suffix[0] if suffix else ''}"

    def module(number: int, path: str) -> str:
        name = path.rpartition("/")[2]
        if path.startswith("["):
            return name
        own = RECORDER.match(path)
        kept = RUNTIME.match(name) or GPU_DRIVER.match(name) or own
        return f"{PLACE}/{own[2] if own else name}" if kept else f"{PLACE}/module_{number}"

    programs = _numbered(_texts(processes, "executable"), lambda number, _: f"{PLACE}/bin/program_{number}")
    listed = [how == "listed" for how in _texts(processes, "recorded")]
    executable = pa.array(
        [
            path if path is None or is_listed else f"{PLACE}/bin/python"
            for path, is_listed in zip(programs, listed, strict=True)
        ]
    )
    libraries = _numbered(_texts(modules, "path"), module)
    frames = tables["native_frames"]
    for name in ("source", "function_source"):
        masked = _numbered(_texts(frames, name), lambda number, _: f"{PLACE}/source_{number}")
        frames = _with(frames, name, pa.array(masked, "string"))
    return tables | {
        "files": _with(files, "path", pa.array(_numbered(_texts(files, "path"), file), "string")),
        "modules": _nulled(_with(modules, "path", pa.array(libraries, "string")), "build_id"),
        "native_frames": frames,
        "processes": _with(processes, "executable", executable.cast("string")),
    }


def without_commands(processes: pa.Table, drop: frozenset[str]) -> pa.Table:
    """Processes without their command lines, and without what they publish of themselves, which names hosts, too."""
    commands = ["command"] if drop & {"argv", "paths"} else []
    return _nulled(processes, *commands, *(["resource"] if drop & {"host", "labels"} else []))


def _is_public(path: str) -> bool:
    """True if a module's functions have names that every process has: the C library, and the recorder."""
    return bool(RUNTIME.match(path.rpartition("/")[2]) or RECORDER.match(path))


def without_names(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Functions, threads and tasks with made-up names.

    Native functions keep theirs in the interpreter and the C library.
    """
    codes, stacks, threads, frames = (tables[name] for name in ("codes", "stacks", "threads", "native_frames"))

    def function(number: int, name: str) -> str:
        return name if _NO_NAME.fullmatch(name) else f"function_{number}"

    def thread(number: int, name: str) -> str:
        return name if name == "MainThread" else f"thread_{number}"

    modules = tables["modules"]
    paths = modules.column("path").to_pylist()
    marked = {path for path, inside in zip(paths, modules.column("interpreter").to_pylist(), strict=True) if inside}
    public = [path in marked or _is_public(path) for path in paths]
    kept = [module is not None and public[module] for module in frames.column("module").to_pylist()]
    made_up = _numbered(_texts(frames, "symbol"), lambda number, _: f"symbol_{number}")
    symbols = [old if keep else new for keep, old, new in zip(kept, _texts(frames, "symbol"), made_up, strict=True)]
    tasks = _numbered(_texts(stacks, "task"), lambda number, _: f"task_{number}")
    return tables | {
        "stacks": _with(stacks, "task", pa.array(tasks, "string")),
        "codes": _with(codes, "qualname", pa.array(_numbered(_texts(codes, "qualname"), function), "string")),
        "threads": _with(threads, "name", pa.array(_numbered(_texts(threads, "name"), thread), "string")),
        "native_frames": _with(frames, "symbol", pa.array(symbols, "string")),
    }


def without_identity(devices: pa.Table) -> pa.Table:
    """GPUs without their globally unique identifiers."""
    return _nulled(devices, "uuid")


def without_labels(labels: dict[str, str]) -> dict[str, str]:
    """Labels without the texts: numbers of ranks stay, which identify the recordings of a run."""
    return {name: labels[name] for name in ("rank", "world_size", "local_rank") if labels.get(name, "").isdecimal()}


def without_texts(spans: pa.Table) -> pa.Table:
    """Spans with made-up names, and without the values that the program gave them."""
    names = _numbered(_texts(spans, "name"), lambda number, _: f"span_{number}")
    return _nulled(_with(spans, "name", pa.array(names, "string")), "fields")


def without_references(referrers: pa.Table) -> pa.Table:
    """Chains of references without the names of types, attributes and keys."""
    return _nulled(referrers, "type", "name")


def within(table: pa.Table, start_ns: int, end_ns: int) -> pa.Table:
    """Processes or threads whose lifetimes are cut to a window; counts up to their end become unknown."""
    start = table.column("start_ns")
    table = _with(table, "start_ns", pc.max_element_wise(start, start_ns, skip_nulls=False))
    table = _with(table, "end_ns", pc.min_element_wise(table.column("end_ns"), end_ns, skip_nulls=False))
    if "exiting_ns" in table.column_names:
        exiting = table.column("exiting_ns")
        inside = pc.fill_null(pc.less(exiting, end_ns), False)  # noqa: FBT003  # a value
        table = _with(table, "exiting_ns", pc.if_else(inside, exiting, pa.scalar(None, exiting.type)))
        table = _nulled(table, "user_ns", "system_ns", "max_resident_bytes")
    return _nulled(table, "cpu_ns") if "cpu_ns" in table.column_names else table


def _numbered(texts: list[str | None], replace: Callable[[int, str], str]) -> list[str | None]:
    """Texts with replacements, equal ones for equal texts; a replacement is made of a number and the text."""
    numbers: dict[str, int] = {}
    return [None if text is None else replace(numbers.setdefault(text, len(numbers)), text) for text in texts]


def _texts(table: pa.Table, name: str) -> list[str | None]:
    texts: list[str | None] = table.column(name).to_pylist()
    return texts


def _nulled(table: pa.Table, *names: str) -> pa.Table:
    for name in names:
        table = _with(table, name, pa.nulls(table.num_rows, table.schema.field(name).type))
    return table


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)


__all__ = [
    "PLACE",
    "within",
    "without_commands",
    "without_identity",
    "without_labels",
    "without_names",
    "without_paths",
    "without_references",
    "without_sources",
    "without_texts",
]


_GONE = -1


class Numbering:
    """Used rows of the tables with ids, and their new ids.

    Add what is used, then call ``close``, then renumber.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        tables = recording.specification.tables
        self._used = {
            name: np.zeros(recording.rows(name), np.bool_)
            for name, spec in tables.items()
            if spec.id_column is not None
        }
        self._new: dict[str, NDArray[np.int64]] = {}

    def use(self, table: pa.Table, spec: TableSpec) -> None:
        """All that rows of a long table refer to is used."""
        for column in spec.columns:
            if column.references is not None:
                self.use_ids(column.references, _ids(table.column(column.name)))

    def use_ids(self, name: str, ids: NDArray[np.int64]) -> None:
        """Rows of a table with ids are used."""
        self._used[name][ids[ids != _GONE]] = True

    def forbid(self, name: str, allowed: NDArray[np.bool_]) -> None:
        """Rows of a table with ids are not used, whatever refers to them."""
        self._used[name] &= allowed

    def close(self) -> None:
        """Mark the rows that used rows refer to, and assign the new ids."""
        self._use_callers("native_stacks")
        for column in ("stack", "native_frame"):
            self._use_from("native_stacks", column, column + "s")
        self._use_callers("stacks")
        for name, column, target in (
            ("threads", "start_frame", "native_frames"),
            ("stacks", "code", "codes"),
            ("codes", "file", "files"),
            ("native_frames", "module", "modules"),
            ("modules", "process", "processes"),
            ("threads", "process", "processes"),
        ):
            self._use_from(name, column, target)
        for name, used in self._used.items():
            self._new[name] = np.append(np.where(used, np.cumsum(used) - 1, _GONE), _GONE)

    def kept(self, name: str) -> NDArray[np.bool_]:
        """Mask of the rows of a table of definitions that are left."""
        return self._used[name]

    def renumber(self, table: pa.Table, spec: TableSpec) -> pa.Table:
        """A table with new ids; one that leads nowhere any more is null."""
        arrays = []
        for column in spec.columns:
            values = table.column(column.name)
            target = spec.name if column.name == spec.id_column else column.references
            if target is not None:
                new = self._new[target][_ids(values)]
                values = pa.array(new, mask=new == _GONE).cast(table.schema.field(column.name).type)
            arrays.append(values)
        return pa.Table.from_arrays(arrays, schema=spec.schema)

    def _use_from(self, name: str, column: str, target: str) -> None:
        self.use_ids(target, _ids(self._recording.table(name).column(column))[self._used[name]])

    def _use_callers(self, tree: str) -> None:
        used = self._used[tree]
        parents = _ids(self._recording.table(tree).column("parent")).tolist()
        # Every parent comes before its children, so one pass from the end reaches all of them.
        for node in np.flatnonzero(used)[::-1].tolist():
            above = parents[node]
            while above != _GONE and not used[above]:
                used[above] = True
                above = parents[above]


def _ids(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.cast("int64").fill_null(_GONE).to_numpy(), np.int64)


def kept_rows(recording: Recording, name: str, request: Request) -> Iterator[pa.Table]:
    """The rows of a long table that are kept, ids as they were."""
    if name in request.tables_left_out:
        return
    schema = recording.specification.tables[name].schema
    cut = {"waits": _cut_waits, "memory": _CounterCut().cut, "allocations": _cut_blocks}.get(name, _cut_moments)
    for batch in recording.batches(name, schema.names):
        table = pa.Table.from_batches([batch], schema=schema)
        table = cut(table.filter(pa.array(_of_chosen(table, request))), request.window)
        if table.num_rows:
            yield table


def _of_chosen(table: pa.Table, request: Request) -> NDArray[np.bool_]:
    """True for rows of threads that are kept; those of no thread go with their process, those of none are kept."""
    names = table.column_names
    kept = np.zeros(table.num_rows, np.bool_)
    threadless = np.ones(table.num_rows, np.bool_)
    if "thread" in names:
        thread = table.column("thread").cast("int64").fill_null(-1).to_numpy()
        kept |= np.append(request.threads, False)[thread]
        threadless = thread < 0
    if "sampled" in names:
        kept &= request.threads[table.column("sampled").to_numpy()]
    if "process" in names:
        process = table.column("process").cast("int64").fill_null(-1).to_numpy()
        kept |= threadless & np.append(request.processes, True)[process]
    return kept


def _cut_moments(table: pa.Table, window: Window) -> pa.Table:
    """Rows of one moment each."""
    return table.filter(pa.array(window.contains(table.column("time_ns").to_numpy())))


def kept_spans(recording: Recording, request: Request) -> pa.Table:
    """The spans of threads that are kept, cut at the ends of the window; an end that is not known stays so."""
    schema = recording.specification.tables["spans"].schema
    table = pa.Table.from_batches(recording.batches("spans", schema.names), schema=schema)
    table = table.filter(pa.array(_of_chosen(table, request)))
    window = request.window
    if window.whole:
        return table
    start, end = table.column("start_ns"), table.column("end_ns")
    inside = pc.and_(pc.less(start, window.end_ns), pc.fill_null(pc.greater_equal(end, window.start_ns), True))  # noqa: FBT003  # a value
    table = _with_columns(table, "start_ns", pc.max_element_wise(start, window.start_ns))
    table = _with_columns(table, "end_ns", pc.min_element_wise(end, window.end_ns, skip_nulls=False))
    return table.filter(inside)


def _cut_waits(table: pa.Table, window: Window) -> pa.Table:
    """Spans are cut at the ends of the window; of the time off the CPU as much is kept as of the span."""
    if window.whole:
        return table
    start, end = (table.column(name).to_numpy() for name in ("start_ns", "end_ns"))
    part = window.fraction(start, end)
    start, end = np.maximum(start, window.start_ns), np.minimum(end, window.end_ns)
    off_cpu = np.minimum(np.floor(table.column("off_cpu_ns").to_numpy() * part), end - start).astype(np.int64)
    for name, values in (("start_ns", start), ("end_ns", end), ("off_cpu_ns", off_cpu)):
        table = _with_columns(table, name, pa.array(values))
    return table.filter(pa.array(part > 0))


def _cut_blocks(table: pa.Table, window: Window) -> pa.Table:
    """Blocks that were allocated in the window; later events of theirs become unknown."""
    table = _cut_moments(table, window)
    if window.whole:
        return table
    later = pc.fill_null(pc.greater_equal(table.column("freed_ns"), window.end_ns), False)  # noqa: FBT003  # a value
    for name in ("freed_ns", "freed_thread"):
        column = table.column(name)
        table = _with_columns(table, name, pc.if_else(later, pa.scalar(None, column.type), column))
    return table


class _CounterCut:
    """Cuts the table of memory: the first kept row of a process starts its counters with the bytes held then."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, str], int] = {}
        self._opened: set[int] = set()

    def cut(self, table: pa.Table, window: Window) -> pa.Table:
        if window.whole:
            return table
        rows = table.to_pylist()
        kept = [self._row(row) for row in rows if self._count(row, window)]
        return pa.Table.from_pylist(kept, schema=table.schema)

    def _count(self, row: dict[str, object], window: Window) -> bool:
        """Add a row to the held bytes, and return True if it lies in the window."""
        for name, value in row.items():
            domain, _, kind = name.rpartition("_allocated_bytes")
            if kind == "" and domain:
                key = (_number(row["process"]), domain)
                released = _number(row[f"{domain}_freed_bytes"])
                self._held[key] = self._held.get(key, 0) + _number(value) - released
        return window.start_ns <= _number(row["time_ns"]) < window.end_ns

    def _row(self, row: dict[str, object]) -> dict[str, object]:
        process = _number(row["process"])
        if process in self._opened:
            return row
        self._opened.add(process)
        opened = dict(row, event=0, peak_bytes=row["footprint_bytes"])
        for (owner, domain), held in self._held.items():
            if owner == process:
                opened[f"{domain}_allocated_bytes"], opened[f"{domain}_freed_bytes"] = max(held, 0), max(-held, 0)
        return opened


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def _with_columns(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), values)
