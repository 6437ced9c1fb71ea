"""The metrics that a diff compares: their columns in a profile, their units, and the words for a change."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: ``column`` in a profile's frames, ``name`` in a diff."""

    name: str
    column: str
    unit: str
    """``s``, ``bytes``, ``bytes/s`` or ``calls``."""
    label: str
    sampled: str
    """What the sampling unit is: ``cpu``, ``wait``, ``blocks``, ``copies``; empty: measured, not sampled. ``calls`` and
    ``per call``: counted while watched, with an interval of their own."""
    judged: bool = True
    """Whether a difference is the program's doing."""

    @property
    def more(self) -> str:
        """The verdict when it grew."""
        return "slower" if self.unit == "s" else "more"

    @property
    def less(self) -> str:
        """The verdict when it shrank."""
        return "faster" if self.unit == "s" else "less"


_TIMES = (
    Metric("cpu", "cpu_s", "s", "CPU", "cpu"),
    Metric("python", "python_s", "s", "Python", "cpu"),
    Metric("native", "native_s", "s", "native", "cpu"),
    Metric("kernel", "kernel_s", "s", "kernel", "cpu"),
    Metric("wait", "wait_s", "s", "waiting", "wait"),
    Metric("main_wait", "main_wait_s", "s", "waiting in main", "wait"),
    Metric("gpu_wait", "gpu_wait_s", "s", "waiting for GPU", "wait"),
    Metric("cpu_wait", "cpu_wait_s", "s", "ready, no processor", "wait", judged=False),
)
_SIZES = (
    Metric("memory.allocated", "allocated_bytes", "bytes", "allocated", "blocks"),
    Metric("memory.peak", "peak_bytes", "bytes", "peak memory", "blocks"),
    Metric("memory.live_at_peak", "live_at_peak_bytes", "bytes", "live at peak", "blocks"),
    Metric("memory.live_at_end", "live_at_end_bytes", "bytes", "live at end", "blocks"),
    Metric("memory.copied", "copied_bytes", "bytes", "copied", "copies"),
    Metric("memory.leak_rate", "leak_rate_bytes_per_s", "bytes/s", "leak rate", "blocks"),
)
SELF = (*_TIMES, *_SIZES)
"""Metrics of a place itself: of lines, functions, files (and times of threads)."""


def _total(metric: Metric) -> Metric:
    return Metric(
        f"total_{metric.name}", f"total_{metric.column}", metric.unit, f"{metric.label}, total", metric.sampled
    )


TOTAL = tuple(_total(metric) for metric in SELF if metric.name not in ("memory.peak", "memory.leak_rate"))
"""The same with everything that was called from there."""

_OF_NATIVE = ("cpu", "kernel", "wait", "main_wait")
NATIVE = tuple(metric for metric in (*SELF, *TOTAL) if metric.name.removeprefix("total_") in _OF_NATIVE)
"""Metrics of a native function, itself and with what it called."""

TREE = tuple(
    metric for metric in SELF if metric.name not in ("memory.peak", "memory.leak_rate", "gpu_wait", "cpu_wait")
)
"""Metrics of a node of the merged call tree, with everything below it."""

CALLS = Metric("calls", "calls", "calls", "calls", "calls")
CALL_TIME = Metric("call_mean", "call_mean_s", "s", "time per call", "per call")
OF_CALLS = (CALLS, CALL_TIME)
"""Metrics of functions whose calls were watched. Neither is a part of a whole: a function that is called eight times
may be what matters."""


def told_of_calls(calls: str | None, per_call: str | None) -> str | None:
    """What the verdicts about a function's calls say together: ``called more often``, ``slower per call``, or both."""
    often = {"more": "called more often", "less": "called less often"}.get(calls or "")
    slow = f"{per_call} per call" if per_call in ("slower", "faster") else None
    return ", ".join(part for part in (slow, often) if part) or None


WALL = Metric("wall", "wall_s", "s", "wall time", "")
COLLECTING = Metric("gc", "gc_s", "s", "garbage collection", "cpu")
PEAK = Metric("memory.peak", "peak_bytes", "bytes", "peak memory", "")
RESIDENT = Metric("memory.resident_peak", "resident_peak_bytes", "bytes", "peak resident set", "")
_MEASURED = tuple(
    Metric(metric.name, metric.column, metric.unit, metric.label, "")
    for metric in _SIZES
    if metric.name not in ("memory.peak", "memory.leak_rate")
)
OVERALL = (WALL, *_TIMES, COLLECTING, PEAK, RESIDENT, *_MEASURED)
"""Metrics of the program as a whole. Bytes are exact there."""

BY_NAME = {metric.name: metric for metric in (*SELF, *TOTAL, *OF_CALLS, *OVERALL)}
