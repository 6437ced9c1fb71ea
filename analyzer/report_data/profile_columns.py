"""The columns of a profile's frames, by frame, in the order in which documents list them."""

from __future__ import annotations

from collections.abc import Mapping

from ..conclusions import calls, copies, gpu, pools
from ..conclusions.leaks import leak_report as leaks
from ..conclusions.memory import memory_columns as memory
from ..conclusions.redundancy import findings
from ..profile import collector_time, processes, span_sums, tasks, wait_columns
from ..profile.held_memory import THREAD_COLUMNS
from ..samples.measures import SECONDS

_SELF = ("samples", *SECONDS)
_SHARES = ("cpu_share", "cpu_share_low", "cpu_share_high")
_TOTAL = tuple(f"total_{name}" for name in (*_SELF, *_SHARES))
_OTHERS = (
    *(wait_columns.COLUMN, *memory.COLUMNS, *copies.COLUMNS, *leaks.COLUMNS, *gpu.COLUMNS),
    *(collector_time.COLUMN, *pools.COLUMNS, "timeline"),
)

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "lines": ("file", "line", "function", *_SELF, *_SHARES, *_TOTAL, *_OTHERS, "source"),
    "functions": (
        *("function", "file", "line", "language", "library"),
        *(*_SELF, *_SHARES, *_TOTAL, "guessed_s", *calls.COLUMNS, *_OTHERS),
    ),
    "files": ("file", *_SELF, *_SHARES, *_TOTAL, *_OTHERS),
    "threads": ("name", "tid", "process", "main", *_SELF, *_SHARES, "clock_cpu_s", *THREAD_COLUMNS),
    "tasks": tuple(tasks.COLUMNS),
    "processes": tuple(processes.COLUMNS),
    "leaks": tuple(name for name in leaks.LIST_COLUMNS if name != "file_id"),
    "spans": tuple(span_sums.COLUMNS),
    "redundancies": findings.COLUMNS,
}
