"""The tables of an index: sums of each recording, as Parquet files that any reader of tables opens.

Column ``recording`` of every table is the recording's number (``store.StoredRecording.key``). Times are in seconds,
sizes in bytes; null is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

VERSION = 6
"""Version of the tables: another one is another index."""

_TIMES = ("cpu_s", "wait_s", "main_wait_s", "total_cpu_s", "total_wait_s")
_SIZES = ("allocated_bytes", "live_at_end_bytes", "live_at_peak_bytes", "copied_bytes")
MEASURES = ("samples", *_TIMES, *_SIZES)
"""Columns of lines and functions that are summed."""

TOTALS = (
    *("wall_s", "process_s", "cpu_s", "python_s", "native_s", "kernel_s", "wait_s", "main_wait_s", "main_cpu_wait_s"),
    *("unsampled_s", "clock_cpu_s", "samples", "effective_samples", "processes", "threads"),
    *("allocated_bytes", "copied_bytes", "peak_bytes", "end_bytes", "resident_peak_bytes"),
)
"""Columns of recordings that are numbers."""

_MODE = ("sampler", "interval_s", "waits", "memory", "python", "machine")
"""Columns with the settings of a recording."""


def _schema(texts: Sequence[str], numbers: Sequence[str], ids: Sequence[str] = ()) -> pa.Schema:
    fields = [("recording", pa.int64()), *((name, pa.int64()) for name in ids)]
    fields += [(name, pa.string()) for name in texts] + [(name, pa.float64()) for name in numbers]
    return pa.schema(fields)


SCHEMAS: Mapping[str, pa.Schema] = {
    # error: why it could not be read; labels: a JSON object; bytes: its size in the store.
    "recordings": _schema(
        (
            *("path", "fingerprint", "error", "uuid", "created_utc", "host", "program", "labels", "state"),
            *("sampler", "waits", "memory", "python", "machine", "scope"),
        ),
        ("bytes", "interval_s", *TOTALS),
        ("again",),
    ),
    "losses": _schema(("loss", "severity", "doc", "advice"), ("count",)),
    "functions": _schema(("name", "file"), MEASURES, ("key",)),
    "lines": _schema(("name", "file", "sha256", "source"), MEASURES, ("key", "line")),
    "stacks": _schema(("name", "file"), ("cpu_s", "wait_s"), ("stack", "parent", "depth")),
    "spans": _schema(
        ("name",),
        (
            *("count", "duration_s", "longest_s", "cpu_s", "wait_s", "total_cpu_s", "total_wait_s", "total_await_s"),
            "total_allocated_bytes",
        ),
    ),
    # How long whole spans lasted: how many are in each bucket of ``statistics.relative_buckets``, of seconds.
    "span_durations": _schema(("name",), ("count",), ("bucket",)),
    # Of the innermost spans: where the time of each is spent. ``key`` and ``line`` are those of ``lines``.
    "span_lines": _schema(("span", "name", "file", "sha256"), ("cpu_s", "main_wait_s"), ("key", "line")),
    "leaks": _schema(("name", "file", "native"), ("likelihood", "rate_bytes_per_s", "leaked_bytes"), ("line",)),
    "sources": _schema(("file", "sha256", "source"), ()),
}
"""The tables by their names. ``again`` is 1 where the store failed and the recording is to be read another time."""


def table_of(name: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A table of the index; columns that are missing are null."""
    schema = SCHEMAS[name]
    rows = len(next(iter(columns.values()), ()))
    arrays = [
        pa.array(columns[each.name], each.type, from_pandas=True) if each.name in columns else pa.nulls(rows, each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def no_rows(name: str) -> pa.Table:
    """A table without rows."""
    return SCHEMAS[name].empty_table()


def empty() -> dict[str, pa.Table]:
    """All tables without rows."""
    return {name: no_rows(name) for name in SCHEMAS}
