"""What was recorded of calls, added up by process and function (the tables ``calls`` and ``call_times``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids, numbers

from ...recording.call_tree import CallTree
from ...recording.opened import Recording
from ...recording.time_window import Window
from ...recording.tree import NOTHING

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

BUCKETS = 64
"""More than any recorder writes; a bucket is the number of binary digits of a time in ns."""

_SUMS = (
    *("watched_ns", "cpu_ns", "watched_cpu_ns", "calls", "ended", "total_ns", "total_squared"),
    *("own_begun", "own_ended", "own_ns", "own_squared"),
    *("intervals", "drawn_ns", "drawn_calls", "drawn_cost_calls", "drawn_chance"),
    *("drawn_calls_squared", "drawn_calls_ns", "drawn_ns_squared"),
)
_MOST = ("longest_ns", "own_longest_ns")
_ROWS = ("time_ns", "since_ns", "process", "stack")


@dataclass(frozen=True)
class CallFacts:
    """Periods of observation, one entry for each in every array; ``group`` says which belong to one function.

    ``process`` and ``function`` are by group. ``span_ns`` is the length of a period, ``sums`` and ``longest`` have the
    columns of the table by name. ``times`` and ``own_times`` are calls by period and bucket.
    """

    group: Ids
    process: Ids
    function: Ids
    span_ns: Floats
    sums: dict[str, Floats]
    longest: dict[str, Floats]
    times: Floats
    own_times: Floats

    def by_group(self, values: Floats) -> Floats:
        """Sums over the periods of each group."""
        return added(self.group, values, len(self.function))


def added(group: Ids, values: Floats, count: int) -> Floats:
    """Sums of the values of each of ``count`` groups."""
    return np.asarray(np.bincount(group, values, count), np.float64)


def read_call_facts(
    recording: Recording, tree: CallTree, window: Window, processes: NDArray[np.bool_] | None
) -> CallFacts | None:
    """The periods that ended in the window, of ``processes`` (None: all); None if no calls were recorded.

    Errors:
        FormatError: the recording is damaged.
    """
    if recording.rows("calls") == 0:
        return None
    rows = _read(recording, "calls", (*_ROWS, *_SUMS, *_MOST))
    function = _functions(rows, tree)
    process = ids(rows.column("process"))
    kept = (function != NOTHING) & window.contains(ids(rows.column("time_ns")))
    if processes is not None:
        kept &= processes[process]
    rows = rows.filter(pa.array(kept))
    function, process = function[kept], process[kept]
    groups, group = np.unique(np.stack([process, function], axis=1), axis=0, return_inverse=True)
    span = ids(rows.column("time_ns")).astype(np.float64) - ids(rows.column("since_ns")).astype(np.float64)
    times, own_times = _histograms(recording, rows, tree)
    return CallFacts(
        group=group.reshape(-1).astype(np.int64),
        process=groups[:, 0],
        function=groups[:, 1],
        span_ns=np.maximum(span, 0.0),
        sums={name: _sound(rows, name) for name in _SUMS},
        longest={name: _sound(rows, name) for name in _MOST},
        times=times,
        own_times=own_times,
    )


def _read(recording: Recording, name: str, columns: Sequence[str]) -> pa.Table:
    schema = recording.specification.tables[name].schema
    schema = pa.schema([schema.field(column) for column in columns])
    return pa.Table.from_batches(recording.batches(name, columns), schema=schema)


def _functions(rows: pa.Table, tree: CallTree) -> Ids:
    """The function of each row, NOTHING where it could not be stored."""
    return np.append(tree.function, NOTHING)[ids(rows.column("stack"))]


def _sound(rows: pa.Table, name: str) -> Floats:
    """A column as floating point; what is no number of anything is 0: the file may come from anywhere."""
    values = numbers(rows.column(name)).astype(np.float64)
    return np.where(np.isfinite(values) & (values >= 0), values, 0.0)


def _histograms(recording: Recording, rows: pa.Table, tree: CallTree) -> tuple[Floats, Floats]:
    """Calls by period and bucket: inclusive times, and own ones."""
    times = _read(recording, "call_times", ("time_ns", "process", "stack", "own", "bucket", "calls"))
    names = ("process", "stack", "time_ns")
    periods = [(ids(rows.column(name))) for name in names]
    owners = [(ids(times.column(name))) for name in names]
    place = _place(periods, owners)
    bucket = np.minimum(ids(times.column("bucket")), BUCKETS - 1)
    own = numbers(times.column("own")).astype(np.bool_)
    calls = _sound(times, "calls")
    found: list[Floats] = []
    for wanted in (~own, own):
        mine = wanted & (place != NOTHING)
        cells = added(place[mine] * BUCKETS + bucket[mine], calls[mine], rows.num_rows * BUCKETS)
        found.append(cells.reshape(rows.num_rows, BUCKETS))
    return found[0], found[1]


def _place(periods: Sequence[Ids], owners: Sequence[Ids]) -> Ids:
    """The period that each histogram's row belongs to, NOTHING if there is none."""
    count = len(periods[0])
    both = np.stack([np.concatenate(pair) for pair in zip(periods, owners, strict=True)], axis=1)
    _, key = np.unique(both, axis=0, return_inverse=True)
    key = key.reshape(-1)
    first = np.full(int(key.max(initial=-1)) + 1, NOTHING, np.int64)
    first[key[:count][::-1]] = np.arange(count - 1, -1, -1)
    return first[key[count:]]
