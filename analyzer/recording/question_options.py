"""The values of options that the command line, the Python interface and the analysis share, each in one place.

It imports nothing that is slow to import: a command says what it takes before the analysis is loaded.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

_SIZES = {
    "allocated": "allocated_bytes",
    "peak": "peak_bytes",
    "live": "live_at_peak_bytes",
    "resident": "live_at_resident_peak_bytes",
    "end": "live_at_end_bytes",
    "copies": "copied_bytes",
    "leak": "leak_rate_bytes_per_s",
}
_OTHERS = {"total": "total_cpu_s", "gpu": "gpu_s"}

_METRICS = {
    "cpu": "CPU time",
    "wait": "waiting off the CPU",
    "allocated": "allocated bytes",
    "live": "bytes held when the footprint was highest",
    "resident": "bytes held when most was resident",
    "end": "bytes held at the end",
    "copied": "copied bytes",
}
_FORMATS = {
    "speedscope": "speedscope.app",
    "collapsed": "flamegraph.pl, inferno",
    "pprof": "go tool pprof, Pyroscope, Parca",
    "otlp": "OpenTelemetry's collector",
    "firefox": "profiler.firefox.com",
    "perfetto": "ui.perfetto.dev",
    "callgrind": "KCachegrind, callgrind_annotate",
    "csv": "lines of code",
}


class Sort(enum.StrEnum):
    """What decides which lines, files and functions come first: ``--sort``."""

    CPU = "cpu"
    PYTHON = "python"
    NATIVE = "native"
    KERNEL = "kernel"
    WAIT = "wait"
    TOTAL = "total"
    PEAK = "peak"
    LIVE = "live"
    RESIDENT = "resident"
    END = "end"
    ALLOCATED = "allocated"
    COPIES = "copies"
    LEAK = "leak"
    GPU = "gpu"

    @property
    def column(self) -> str:
        """The column of the profile's frames."""
        return _SIZES.get(self.value) or _OTHERS.get(self.value, f"{self.value}_s")

    @property
    def by_size(self) -> bool:
        """Whether it ranks bytes, not time."""
        return self.value in _SIZES


class Attribution(enum.StrEnum):
    """The rules that ``--attribution`` offers."""

    AUTO = "auto"
    NATIVE = "native"
    DELAY = "delay"
    OPCODE = "opcode"
    PC_ONLY = "pc-only"


class PoolRule(enum.StrEnum):
    """How CPU time of native threads is charged to lines: ``--pool-attribution``; the first is the default."""

    POSITIONS = "positions"
    """By where the Python threads were at each of a native thread's samples."""
    NONE = "none"
    """Not at all."""


class LeakRule(enum.StrEnum):
    """The definitions of a leak: ``--leaks``; the first is the default."""

    DEFAULT = "default"
    PAPER = "paper"


class ExportFormat(enum.StrEnum):
    """The formats of other tools that ``export`` writes."""

    SPEEDSCOPE = "speedscope"
    COLLAPSED = "collapsed"
    PPROF = "pprof"
    OTLP = "otlp"
    FIREFOX = "firefox"
    PERFETTO = "perfetto"
    CALLGRIND = "callgrind"
    CSV = "csv"

    @property
    def doc(self) -> str:
        """What reads it, or what it holds."""
        return _FORMATS[self.value]


class Metric(enum.StrEnum):
    """What ``export`` writes: ``--metric``."""

    CPU = "cpu"
    WAIT = "wait"
    ALLOCATED = "allocated"
    LIVE = "live"
    RESIDENT = "resident"
    END = "end"
    COPIED = "copied"

    @property
    def doc(self) -> str:
        """What the weights are, in a few words."""
        return _METRICS[self.value]

    @property
    def unit(self) -> str:
        """Unit of the weights: ``nanoseconds`` or ``bytes``."""
        return "nanoseconds" if self in (Metric.CPU, Metric.WAIT) else "bytes"


HEAP = "heap"
"""What ``--metric`` takes beside metrics: what was allocated and what was held, in formats with several values."""

HEAP_MOMENTS: Mapping[str, Metric] = {"peak": Metric.LIVE, "end": Metric.END}
"""When blocks were held that are in use: ``--at``; the first is the default."""

DEFAULT_TOKENS, LEAST_TOKENS = 2_000, 600
"""Tokens of ``--markdown`` at most: the bound, and the smallest bound. What every document has fits into that."""

DROPPABLE = ("sources", "paths", "argv", "host", "names", "labels")
"""What ``scrub --drop`` removes."""

WITHOUT: Mapping[str, tuple[str, ...]] = {
    "waits": ("waits",),
    "memory": ("memory", "allocations", "copies"),
    "gpu": ("gpu",),
}
"""What ``scrub --without`` leaves out, and the tables that it is in."""
