"""A profile: the answer to a question about a recording, as tidy frames that renderers show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..conclusions.memory.process import Memory
from ..conclusions.parent_waits import ParentWait
from ..recording.frame import Frame
from ..recording.quality import Quality
from ..recording.sources import Sources
from ..samples.call_paths import PathFacts
from ..samples.sites import Calls
from .awaiters import Awaiting
from .last_seconds import LastSeconds
from .question import Question
from .step_waits import StepWaits

if TYPE_CHECKING:
    import pandas as pd

    from ..conclusions.gpu.gpu_report import Gpu


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole question, in seconds; None is unknown. ``main_wait_s`` is the main thread's ``wait_s``."""

    wall_s: float | None
    cpu_s: float
    python_s: float | None
    native_s: float | None
    kernel_s: float | None
    unknown_s: float
    wait_s: float | None
    main_wait_s: float | None
    gpu_wait_s: float | None
    gc_s: float | None
    """The part of ``python_s`` in the garbage collector; None where program counters are not known."""
    cpu_wait_s: float | None
    """Time in which threads were ready to run and no processor was free; no part of ``wait_s``."""
    main_cpu_wait_s: float | None
    unsampled_s: float | None
    """CPU time, by the clocks of threads where they were read, that no sample stands for; None for a part."""
    clock_cpu_s: float | None
    """CPU time as the threads' own clocks have it, where all of them were read; only for the whole recording."""
    samples: int
    effective_samples: float
    threads: int
    processes: int
    """Recorded processes."""
    native_processes: int = 0
    """Those of them that were recorded without Python stacks."""
    listed_processes: int = 0
    """Processes that were listed and not recorded; not among ``processes``."""
    process_s: float = 0.0
    """The sum of the lifetimes of the recorded processes, as far as they are known."""
    allocated_bytes: float | None = None
    """This and the next: by the exact counters for a question on the whole recording; else the sum of the lines."""
    freed_bytes: float | None = None
    net_bytes: float | None = None
    requested_bytes: float | None = None
    live_at_peak_bytes: float | None = None
    touched_at_peak_bytes: float | None = None
    """Resident part of ``live_at_peak_bytes``; None if pages were not scanned."""
    live_at_resident_peak_bytes: float | None = None
    live_at_end_bytes: float | None = None
    resident_peak_bytes: float | None = None
    """The largest resident set, as the kernel counted it where that is known; None if it was never read."""
    python_fraction: float | None = None
    """The part of ``allocated_bytes`` that Python's own allocators handed out."""
    allocation_mb_per_s: float | None = None
    allocation_samples: int | None = None
    copied_bytes: float | None = None
    copy_mb_per_s: float | None = None
    copy_samples: int | None = None
    pool_cpu_s: float = 0.0
    """CPU time of native threads, a part of ``cpu_s``; this and the next as in ``pools.PoolTime``."""
    pool_unattributed_s: float = 0.0
    """The part of that which is charged to no line."""
    pool_waiting_s: float = 0.0
    """The part of that in which they waited for work, spinning."""
    pool_shared_s: float = 0.0
    """The part of the charged time that several threads may have submitted."""
    gpu_s: float | None = None
    """Seconds that the program's GPUs were busy, summed over GPUs, while its main threads (or the selected threads)
    ran or waited."""
    gpu_share: float | None = None
    """The part of that time in which they were busy."""
    gpu_peak_bytes: float | None = None
    idle_wait_s: float | None = None
    """The part of ``wait_s`` in which threads waited in one place for more than half of the time: they were idle."""
    await_s: float | None = None
    """Time that tasks were suspended, added up over tasks: no part of any thread's time."""

    @property
    def busy_s(self) -> float:
        """CPU time, and the waiting of threads that were not idle."""
        return self.cpu_s + max(0.0, (self.wait_s or 0.0) - (self.idle_wait_s or 0.0))

    @property
    def main_s(self) -> float:
        """Time that the main threads were alive, added up: their waiting is a part of this."""
        return self.process_s if self.processes > 1 else self.wall_s or self.process_s


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata of the recording. Text is printable; times are UTC in ISO 8601."""

    path: str
    uuid: str
    program: str
    argv: list[str]
    created_utc: str | None
    host: str | None
    os: str | None
    machine: str | None
    cpu_count: int | None
    python_versions: list[str]
    samplers: list[str]
    interval_s: float | None
    format_version: str
    tachograph_version: str | None
    rotated: str | None
    """Number and state of the window of a rotated recording."""
    labels: dict[str, str]
    """Labels that the user and the environment gave the recording."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of ``Profile`` under the same names, before pandas has them."""

    lines: Frame
    functions: Frame
    native_functions: Frame
    files: Frame
    threads: Frame
    processes: Frame
    tasks: Frame
    leaks: Frame | None
    spans: Frame | None
    redundancies: Frame | None


@dataclass(frozen=True, eq=False)
class Profile:
    """The answer to a question. All frames are sorted by CPU time, largest first.

    Columns common to ``lines``, ``functions`` and ``files``:

    samples, cpu_s, python_s, native_s, kernel_s, unknown_s, wait_s, main_wait_s, gpu_wait_s, cpu_wait_s (self), the
    same with ``total_`` in front, cpu_share, cpu_share_low, cpu_share_high (of all CPU time in question, with the
    ends of the 95 % interval) and the same with ``total_`` in front. Seconds; NaN is unknown.

    wait_for is a list of (reason, seconds) of wait_s, the most first (None: nothing waited).

    await_s and total_await_s (the time that suspended tasks stood there, added up over tasks: no part of any
    thread's time), await_low_s and await_high_s (the ends of the 95 % interval of await_s), awaiting_mean and
    awaiting_peak (how many did at a time).

    Of memory and copies: allocated_bytes, freed_bytes, net_bytes, peak_bytes, live_at_peak_bytes, live_at_end_bytes,
    copied_bytes and leak_rate_bytes_per_s, each with ``_low`` and ``_high``, the ends of the 95 % interval;
    requested_bytes, requested_at_peak_bytes, touched_at_peak_bytes, average_bytes, python_fraction,
    allocation_mb_per_s, allocation_samples, copy_mb_per_s, copy_samples, leak_likelihood;
    ``total_`` of allocated, freed, net, live_at_peak, live_at_end and copied bytes;
    gpu_s, gpu_share, total_gpu_s, total_gpu_share (how busy the GPU was while a main thread was there, running or
    waiting), gpu_memory_bytes and gpu_peak_bytes (memory of the GPU then: mean and most).
    gc_s (the part of python_s that was spent in garbage collections),
    pool_cpu_s and total_pool_cpu_s (CPU time that native threads spent for it: no part of its ``cpu_s``),
    timeline (live bytes as a list of (seconds, bytes), None for places that never held much). NaN where they were not
    recorded. docs/reference/json.md says what each of them means.
    """

    question: Question
    scope: str
    """The scope that was applied."""
    widened: bool
    """True if ``scope`` is ``all`` because hardly any time was the project's."""
    metadata: Metadata
    totals: Totals
    quality: Quality
    frames: Frames
    sources: Sources
    calls: Calls
    """The call tree with the measures of every node."""
    known_paths: PathFacts | None
    """Samples by call path through Python and native code; None if the question was brief."""
    memory: Memory | None
    """The processes' memory as a whole; None if it was not recorded."""
    gpu: Gpu | None = None
    """The GPUs as wholes; None if they were not read."""
    last_seconds: LastSeconds | None = None
    """The last seconds of a process that was killed; None if none was, or the question is about a part of the whole."""
    awaiting: list[Awaiting] | None = None
    """Tasks below those that await them; None where nothing is known of that."""
    parent_waits: list[ParentWait] | None = None
    """Lines at which main threads waited for child processes, the longest first; None where that is not known: waiting
    was not recorded, or the question is about some threads, processes or spans."""
    step_waits: StepWaits | None = None
    """In which tasks and spans threads waited; None where no code is a coroutine's, or the question was brief."""

    @property
    def paths(self) -> PathFacts:
        """``known_paths`` of a profile that is not brief."""
        if self.known_paths is None:
            raise ValueError("a brief profile has no call paths")
        return self.known_paths

    @cached_property
    def lines(self) -> pd.DataFrame:
        """file, line, function, source, file_id (-1 for rows such as ``<no Python stack>``), and the common columns."""
        return self.frames.lines.pandas("source")

    @cached_property
    def functions(self) -> pd.DataFrame:
        """function, file, line (its first), file_id, language, and the common columns.

        ``language`` is ``python``, and null in rows such as ``<no Python stack>``.
        """
        return self.frames.functions.pandas()

    @cached_property
    def native_functions(self) -> pd.DataFrame:
        """Native functions: they divide once more what the rows of Python functions hold.

        function, file and line (where it begins in its source, as its compiler was called with it; unknown where there
        was no debug information), library (file name of the module that holds it), language (``native``), the columns
        of time and shares, guessed_s (the part of total_cpu_s whose native path is a guess), and native (its number).
        What they called (``total_``) is unknown where no native call paths were recorded.
        """
        return self.frames.native_functions.pandas()

    @cached_property
    def files(self) -> pd.DataFrame:
        """file, file_id, and the common columns."""
        return self.frames.files.pandas()

    @cached_property
    def threads(self) -> pd.DataFrame:
        """One row per thread: its id and name, its process, time and memory.

        thread (its id), name, tid, process, main, and samples, the self columns, cpu_share and its interval; of what it
        allocated: allocated_bytes, freed_bytes, live_at_peak_bytes, live_at_end_bytes; copied_bytes.
        """
        return self.frames.threads.pandas()

    @cached_property
    def processes(self) -> pd.DataFrame:
        """One row per process, each behind its parent: the columns of ``processes.COLUMNS``. NaN is unknown."""
        return self.frames.processes.pandas()

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """One row per root coroutine and task name: ``tasks.COLUMNS``; empty where there is none."""
        return self.frames.tasks.pandas("task")

    @cached_property
    def leaks(self) -> pd.DataFrame | None:
        """Leaks, the highest rate first: ``leak_report.LIST_COLUMNS``; None if memory was not recorded."""
        return None if self.frames.leaks is None else self.frames.leaks.pandas()

    @cached_property
    def redundancies(self) -> pd.DataFrame | None:
        """Lines whose native calls repeat loads or stores: ``redundancy.COLUMNS``; None if they were not watched."""
        return None if self.frames.redundancies is None else self.frames.redundancies.pandas("category")

    @cached_property
    def spans(self) -> pd.DataFrame | None:
        """Time and memory by the names of spans: ``span_sums.COLUMNS``.

        Empty where there are none; None where they are unknown, in recordings of format 1.0.
        """
        return None if self.frames.spans is None else self.frames.spans.pandas()
