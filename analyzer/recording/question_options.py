"""The values of options that the command line, the Python interface and the analysis share, each in one place.

It imports nothing that is slow to import: a command checks its options before the analysis is loaded.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Self


class _Told(enum.StrEnum):
    """Values that come with a text: ``NAME = value, text``."""

    doc: str
    """Description, in a few words."""

    def __new__(cls, value: str, doc: str = "") -> Self:
        """The member; a value alone finds it."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member


class Sort(_Told):
    """Order of lines, files and functions: ``--sort``, with the column of the profile's frames."""

    CPU = "cpu", "cpu_s"
    PYTHON = "python", "python_s"
    NATIVE = "native", "native_s"
    KERNEL = "kernel", "kernel_s"
    WAIT = "wait", "wait_s"
    TOTAL = "total", "total_cpu_s"
    PEAK = "peak", "peak_bytes"
    LIVE = "live", "live_at_peak_bytes"
    RESIDENT = "resident", "live_at_resident_peak_bytes"
    END = "end", "live_at_end_bytes"
    ALLOCATED = "allocated", "allocated_bytes"
    COPIES = "copies", "copied_bytes"
    LEAK = "leak", "leak_rate_bytes_per_s"
    GPU = "gpu", "gpu_s"

    @property
    def column(self) -> str:
        """The column of the profile's frames."""
        return self.doc

    @property
    def by_size(self) -> bool:
        """True if it ranks bytes, not time."""
        return "_bytes" in self.column


class Attribution(enum.StrEnum):
    """The rules that ``--attribution`` offers."""

    AUTO = "auto"
    NATIVE = "native"
    DELAY = "delay"
    OPCODE = "opcode"
    PC_ONLY = "pc-only"


class PoolRule(enum.StrEnum):
    """Rules that charge CPU time of native threads to lines: ``--pool-attribution``; the first is the default."""

    POSITIONS = "positions"
    """By where the Python threads were at each of a native thread's samples."""
    NONE = "none"
    """Not at all."""


class LeakRule(_Told):
    """The definitions of a leak, with descriptions: ``--leaks``; the first is the default."""

    DEFAULT = "default", "is Scalene's score, for growth that goes on"
    PAPER = "paper", "is Scalene's score alone"


class ExportFormat(_Told):
    """The formats of other tools that ``export`` writes, with their readers or contents."""

    SPEEDSCOPE = "speedscope", "speedscope.app"
    COLLAPSED = "collapsed", "flamegraph.pl, inferno"
    PPROF = "pprof", "go tool pprof, Pyroscope, Parca"
    OTLP = "otlp", "OpenTelemetry's collector"
    FIREFOX = "firefox", "profiler.firefox.com"
    PERFETTO = "perfetto", "ui.perfetto.dev"
    CALLGRIND = "callgrind", "KCachegrind, callgrind_annotate"
    CSV = "csv", "lines of code"


class Metric(_Told):
    """Metrics that ``export`` writes, with their weights: ``--metric``."""

    CPU = "cpu", "CPU time"
    WAIT = "wait", "waiting off the CPU"
    ALLOCATED = "allocated", "allocated bytes"
    LIVE = "live", "bytes held when the footprint was highest"
    RESIDENT = "resident", "bytes held when most was resident"
    END = "end", "bytes held at the end"
    COPIED = "copied", "copied bytes"

    @property
    def unit(self) -> str:
        """Unit of the weights: ``nanoseconds`` or ``bytes``."""
        return "nanoseconds" if self in (Metric.CPU, Metric.WAIT) else "bytes"


HEAP = "heap"
"""Values of ``--metric`` beside metrics: allocated and held memory, in formats with several values."""

HEAP_MOMENTS: Mapping[str, Metric] = {"peak": Metric.LIVE, "end": Metric.END}
"""When blocks were held that are in use: ``--at``; the first is the default."""

DEFAULT_TOKENS, LEAST_TOKENS = 2_000, 600
"""Tokens of ``--markdown`` at most: the bound, and the smallest bound. What every document has fits into that."""

DROPPABLE = ("sources", "paths", "argv", "host", "names", "labels")
"""Values of ``scrub --drop``."""

WITHOUT: Mapping[str, tuple[str, ...]] = {
    "waits": ("waits",),
    "memory": ("memory", "allocations", "copies"),
    "gpu": ("gpu",),
}
"""Values of ``scrub --without``, and the tables that hold them."""
