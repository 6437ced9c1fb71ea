"""Which rows of the long tables are kept, and what of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...recording.opened import Recording
from ...recording.time_window import Window
from .request import Request


def kept_rows(recording: Recording, name: str, request: Request) -> Iterator[pa.Table]:
    """The rows of a long table that are kept, ids as they were."""
    if name in request.tables_left_out:
        return
    schema = recording.specification.tables[name].schema
    cut = {"waits": _cut_waits, "memory": _Books().cut, "allocations": _cut_blocks}.get(name, _cut_moments)
    for batch in recording.batches(name, schema.names):
        table = pa.Table.from_batches([batch], schema=schema)
        table = cut(table.filter(pa.array(_of_chosen(table, request))), request.window)
        if table.num_rows:
            yield table


def _of_chosen(table: pa.Table, request: Request) -> NDArray[np.bool_]:
    """Which rows belong to threads that are kept; those of no thread go with their process, those of none are kept."""
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
    table = _with(table, "start_ns", pc.max_element_wise(start, window.start_ns))
    table = _with(table, "end_ns", pc.min_element_wise(end, window.end_ns, skip_nulls=False))
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
        table = _with(table, name, pa.array(values))
    return table.filter(pa.array(part > 0))


def _cut_blocks(table: pa.Table, window: Window) -> pa.Table:
    """Blocks that were allocated in the window; what happened to them after it is not known."""
    table = _cut_moments(table, window)
    if window.whole:
        return table
    later = pc.fill_null(pc.greater_equal(table.column("freed_ns"), window.end_ns), False)  # noqa: FBT003  # a value
    for name in ("freed_ns", "freed_thread"):
        column = table.column(name)
        table = _with(table, name, pc.if_else(later, pa.scalar(None, column.type), column))
    return table


class _Books:
    """Cuts the table of memory: the first row that is kept of a process starts its counters with what was held then."""

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
        """Adds a row to what is held; whether it lies in the window."""
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


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), values)
