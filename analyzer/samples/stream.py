"""The one stream of samples: CPU samples and waits of a question, with weights, stack states and parts by the rule.

All reported sums are fed from here: lines, spans, report data, exports and GPUs are sinks, and one pass feeds all that
a command needs. Columns that no sink reads are not computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import filled, ids, numbers, selected_rows
from tachograph.format.enumerations import NativePath, Origin

from ..recording.filter import Mask
from ..recording.frame import take_rows
from ..recording.opened import Recording
from ..recording.process_lifetimes import STARTING, InterpreterPhases, find_interpreter_phases
from ..recording.question_options import Attribution
from ..recording.span_tracks import Tracks
from ..recording.tables import BATCH_ROWS, prefetched
from ..recording.time_window import Window
from .attribution import STATES, Division, Parts
from .counter_classes import gpu_frames
from .groups import PATH_COLUMNS, CpuSums, SampleGroups
from .weights import REASONS, Reasons, share_ticks, weighted_batches, whole_ticks

MAX_WEIGHT_NS = 1 << 53
"""Weights beyond this (104 days in one sample) are refused; below it their sums are exact enough in floating point."""

WORLD, GPU, CPU = range(3)
"""Objects of waiting, as far as they matter here: waiting for a CPU is no wait that the program asked for."""

_CPU_COLUMNS = (
    "thread",
    "stack",
    "native_frame",
    "cpu_ns",
    "system_ns",
    "opcode",
    "origin",
    "stack_state",
    "collecting",
)
_WAIT_COLUMNS = (
    "start_ns",
    "end_ns",
    "off_cpu_ns",
    "thread",
    "stack",
    "native_frame",
    "syscall",
    "target",
    "stack_state",
)
SPAN = ("span",)
"""The column that says in which span a row was."""

_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


class Sink(Protocol):
    """Takes the batches of a stream, in the order of time."""

    times: bool
    """True if the sink reads ``CpuBatch.time_ns``."""

    def cpu(self, batch: CpuBatch) -> None:
        """Take some CPU samples; sums by group come from ``Stream.sums`` instead."""
        ...

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits; never called where waiting was not recorded."""
        ...


class Stream:
    """The CPU samples and the waits of a recording in a window, of the selected threads (None: all)."""

    def __init__(
        self,
        recording: Recording,
        window: Window | None = None,
        threads: Mask | None = None,
        rule: Attribution = Attribution.AUTO,
        phases: InterpreterPhases | None = None,
        tracks: Tracks | None = None,
    ) -> None:
        self.recording = recording
        self.window = window or Window()
        self.threads = threads
        self.tracks = tracks
        self.nodes = recording.rows("stacks")
        """Number of nodes of the call tree; as the stack of a sample, it stands for none."""
        self.phases: InterpreterPhases = phases or find_interpreter_phases(recording)
        self.division = Division(rule)
        self._process = recording.all_threads.process
        self._signals = has_signals(recording)
        self.has_paths = recording.rows("native_stacks") > 0
        """True if there are native call paths."""
        self.groups = SampleGroups(recording)
        self.sums = CpuSums(self.groups)
        """Sums of the CPU samples by group, for sinks that need no single samples."""

    def whole(self) -> Stream:
        """A stream of all samples of the recording, of any time and thread."""
        return Stream(self.recording, phases=self.phases)

    @cached_property
    def waits_known(self) -> bool:
        """True if waiting was recorded at all: otherwise it is unknown, not zero."""
        samplers = set(self.recording.all_processes.sampler)
        return self.recording.rows("waits") > 0 or (
            self.recording.manifest.parameters.get("waits") is True and samplers <= {"native", None}
        )

    def feed(self, *sinks: Sink) -> None:
        """Reads both tables once, for all of the sinks; ``sums`` are those of this pass then."""
        self.sums = CpuSums(self.groups)
        for batch in self.cpu(times=any(sink.times for sink in sinks)):
            self.sums.add(batch.group, batch.weight_ns, batch.elapsed_ns, batch.system_ns, batch.delay_ns)
            for sink in sinks:
                sink.cpu(batch)
        if self.waits_known:
            for waits in self.waits():
                for sink in sinks:
                    sink.waits(waits)

    def cpu(self, *, times: bool) -> Iterator[CpuBatch]:
        """The CPU samples; ``times`` says whether their times are needed."""
        columns = [*_CPU_COLUMNS, *(PATH_COLUMNS if self.has_paths else ()), *(SPAN if self.tracks else ())]
        if times or self._signals or not self.window.whole:
            columns.append("time_ns")
        # A sink that looks at times makes a dozen numbers of each row.
        rows = max(1, BATCH_ROWS // 2) if times else BATCH_ROWS
        batches: Iterable[pa.RecordBatch] = weighted_batches(self.recording, columns, rows)
        if self.recording.rows("cpu") > rows:
            batches = prefetched(batches)
        if self._signals:
            batches = whole_ticks(batches)
        row = 0
        for batch in batches:
            yield self._cpu_batch(batch, row)
            row += batch.num_rows

    def waits(self) -> Iterator[WaitBatch]:
        """The waits, those for a processor too; those that reach out of the window count with the part within."""
        targets = [value.name for value in self.recording.specification.enums["target"]]
        reasons = Reasons(targets, self.recording.manifest.machine)
        drivers = gpu_frames(self.recording.table("native_frames"), self.recording.table("modules"))
        columns = [*_WAIT_COLUMNS, *(PATH_COLUMNS if self.has_paths else ()), *(SPAN if self.tracks else ())]
        for batch in self.recording.batches("waits", columns):
            start_ns, end_ns = (numbers(batch.column(name)) for name in ("start_ns", "end_ns"))
            thread, target = numbers(batch.column("thread")), numbers(batch.column("target"))
            native = filled(batch.column("native_frame"), len(drivers) - 1)
            kind = np.where(np.take(drivers, native) | (target == targets.index("gpu")), GPU, WORLD)
            kind[target == targets.index("cpu")] = CPU
            track = self.track(batch, thread)
            part = self.window.part(track, start_ns, end_ns)
            state = self.phases.mark_times(_states(batch.column("stack_state")), thread, start_ns, end_ns)
            selected = part > 0 if self.threads is None else (part > 0) & self.threads[thread]
            yield WaitBatch(
                start_ns=start_ns,
                end_ns=end_ns,
                thread=thread.astype(np.int64),
                track=track.astype(np.int64),
                stack=filled(batch.column("stack"), self.nodes).astype(np.int64),
                native=np.where(native == len(drivers) - 1, -1, native.astype(np.int64)),
                native_stack=_ids_of(batch, "native_stack", -1),
                native_path=_ids_of(batch, "native_path", NativePath.UNRECORDED),
                state=state.astype(np.int64),
                kind=kind,
                reason=np.where(
                    kind == GPU,
                    REASONS.index("GPU"),
                    reasons.of(filled(batch.column("syscall"), -1).astype(np.int64), target),
                ),
                whole_ns=_weights(batch.column("off_cpu_ns"), "waits", "off_cpu_ns"),
                part=part,
                nodes=self.nodes,
            ).only(selected)

    def _cpu_batch(self, batch: pa.RecordBatch, first_row: int) -> CpuBatch:
        thread = numbers(batch.column("thread"))
        state = self.phases.mark_rows(_states(batch.column("stack_state")), thread, first_row)
        elapsed = weight = _weights(batch.column("cpu_ns"), "cpu", "cpu_ns")
        delay = None
        if self._signals:
            weight, delay = self._shared(batch, thread, weight)
        inside = self._inside(batch, thread)
        if inside is not None:
            state, elapsed, weight = state[inside], elapsed[inside], weight[inside]
            delay = None if delay is None else delay[inside]
            batch = selected_rows(batch, inside)
        return CpuBatch(self, batch, state, elapsed, weight, delay)

    def _inside(self, batch: pa.RecordBatch, thread: NDArray[np.integer]) -> Mask | None:
        """Mask of the rows in the question; None if all are."""
        if self.window.whole:
            return None if self.threads is None else self.threads[thread]
        inside = self.window.selects(self.track(batch, thread), numbers(batch.column("time_ns")))
        return inside if self.threads is None else inside & self.threads[thread]

    def track(self, batch: pa.RecordBatch, thread: NDArray[np.integer]) -> NDArray[np.integer]:
        """The thread of each row, or its track where it says in which span it was."""
        return thread if self.tracks is None else self.tracks.of(thread, ids(batch.column("span")))

    def _shared(
        self, batch: pa.RecordBatch, thread: NDArray[np.integer], elapsed: _Floats
    ) -> tuple[_Floats, _Floats | None]:
        """Weights with the time of the signal sampler's ticks shared out, and the delays of all rows."""
        origin = numbers(batch.column("origin"))
        signal = (origin == Origin.SIGNAL) | (origin == Origin.SIGNAL_THREAD)
        if not signal.any():
            return elapsed, None
        interval = self.recording.interval_ns
        if interval is None:
            raise FormatError("manifest.json: parameters.interval_ns is missing, and the signal sampler's rows need it")
        weight, delay = elapsed.copy(), np.zeros(len(elapsed))
        time_ns, process = numbers(batch.column("time_ns"))[signal], self._process[thread[signal]]
        weight[signal], delay[signal] = share_ticks(time_ns, process, elapsed[signal], interval)
        return weight, delay


class CpuBatch:
    """Some CPU samples. All arrays have one length; ids are integers of any width."""

    def __init__(
        self,
        stream: Stream,
        rows: pa.RecordBatch,
        state: NDArray[np.integer],
        elapsed_ns: _Floats,
        weight_ns: _Floats,
        delay_ns: _Floats | None,
    ) -> None:
        self._stream = stream
        self._rows = rows
        self._delay = delay_ns
        self.state = state
        """State of each stack, with interpreter start and end as states of their own."""
        self.elapsed_ns = elapsed_ns
        """The CPU time that had passed: for the signal sampler, of all threads of its tick together."""
        self.weight_ns = weight_ns
        """CPU time that each sample stands for."""

    def __len__(self) -> int:
        return len(self.weight_ns)

    @cached_property
    def thread(self) -> NDArray[np.integer]:
        """Ids of threads."""
        threads: NDArray[np.integer] = numbers(self._rows.column("thread"))
        return threads

    @cached_property
    def track(self) -> NDArray[np.integer]:
        """Threads, or the tracks of those that say in which span they were."""
        return self._stream.track(self._rows, self.thread)

    @cached_property
    def time_ns(self) -> _Ids:
        """When each sample was taken."""
        return np.asarray(numbers(self._rows.column("time_ns")), np.int64)

    @cached_property
    def stack(self) -> NDArray[np.integer]:
        """Nodes of the call tree; the number of nodes where there is none."""
        return filled(self._rows.column("stack"), self._stream.nodes)

    @cached_property
    def place(self) -> _Ids:
        """The node or, behind the nodes, the state of the stack."""
        nodes = self._stream.nodes
        return np.where(self.stack == nodes, nodes + self.state.astype(np.int64), self.stack)

    @cached_property
    def native(self) -> _Ids:
        """Ids of native frames; -1 where there is none."""
        return _ids_of(self._rows, "native_frame", -1)

    @cached_property
    def native_stack(self) -> _Ids:
        """Rows of ``native_stacks``; -1 where there is none."""
        return _ids_of(self._rows, "native_stack", -1)

    @cached_property
    def native_path(self) -> _Ids:
        """Source of each native path: values of the enumeration ``native_path``."""
        return _ids_of(self._rows, "native_path", NativePath.UNRECORDED)

    @cached_property
    def group(self) -> _Ids:
        """Numbers of ``groups.SampleGroups``."""
        return self._stream.groups.of(self._rows, self.state)

    @cached_property
    def cell(self) -> NDArray[np.uint16]:
        """Attribution cells of the rows (``attribution.unpacked``)."""
        return np.take(self._stream.groups.cell, self.group)

    @cached_property
    def system_ns(self) -> _Floats | None:
        """The kernel's part of the weight, 0 where it was not recorded; None if it is 0 everywhere."""
        column = self._rows.column("system_ns")
        system = _weights(column, "cpu", "system_ns")
        return np.minimum(system, self.weight_ns, out=system) if system.any() else None

    @cached_property
    def delay_ns(self) -> _Floats | None:
        """Delay of the signal, as part of the weight without the kernel's; None if it is 0 everywhere."""
        if self._delay is None:
            return None
        rest = self.weight_ns if self.system_ns is None else self.weight_ns - self.system_ns
        return np.minimum(self._delay, rest)

    @cached_property
    def squared(self) -> _Floats:
        """For the effective number of samples: rows of one signal are one observation, however many share its time."""
        return self.weight_ns * self.elapsed_ns

    @cached_property
    def parts(self) -> Parts:
        """The weights by whose time it is, by the rule."""
        return self._stream.division.parts(self.cell, self.weight_ns, self.system_ns, self.delay_ns)


@dataclass(frozen=True)
class WaitBatch:
    """Some waits, from ``start_ns`` to ``end_ns`` as recorded. All arrays have one length."""

    start_ns: _Ids
    end_ns: _Ids
    thread: _Ids
    track: _Ids
    stack: _Ids
    """As in ``CpuBatch``."""
    native: _Ids
    native_stack: _Ids
    native_path: _Ids
    state: _Ids
    kind: NDArray[np.integer]
    """WORLD, GPU or CPU."""
    reason: _Ids
    """Reasons, as indexes of ``weights.REASONS``."""
    whole_ns: _Floats
    """Time off the CPU, all of it."""
    part: _Floats
    """The part (0..1) that lies in the window."""
    nodes: int = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def weight_ns(self) -> _Floats:
        """Time off the CPU in the window."""
        return self.whole_ns * self.part

    @property
    def place(self) -> _Ids:
        """As in ``CpuBatch``."""
        return np.where(self.stack == self.nodes, self.nodes + self.state, self.stack)

    def only(self, mask: Mask) -> WaitBatch:
        """The waits of the mask."""
        return self if mask.all() else take_rows(self, mask)

    def for_the_world(self) -> WaitBatch:
        """Those that count as waiting: not for a processor."""
        return self.only(self.kind != CPU)


def has_signals(recording: Recording) -> bool:
    """True if there may be rows of the signal sampler; a process without threads has no rows of any."""
    pairs = zip(recording.all_processes.sampler, recording.all_threads.per_process.tolist(), strict=True)
    return any(sampler != "native" for sampler, threads in pairs if threads)


def _weights(values: pa.Array, table: str, column: str) -> _Floats:
    """Nanoseconds as floating point, 0 for null; negative and absurd ones are errors of the recording."""
    weights = numbers(values)
    if len(weights):
        least, most = int(weights.min()), int(weights.max())
        if least < 0 or most > MAX_WEIGHT_NS:
            raise FormatError(f"table {table}, column {column}: {least if least < 0 else most} ns cannot be true")
    return weights.astype(np.float64)


def _ids_of(batch: pa.RecordBatch, name: str, otherwise: int) -> _Ids:
    """A column of ids; where it was not read, there are none."""
    if name not in batch.schema.names:
        return np.full(batch.num_rows, otherwise, np.int64)
    return ids(batch.column(name), otherwise)


def _states(values: pa.Array) -> NDArray[np.integer]:
    """Stack states; those that this version does not know count as the last, behind the analyzer's own."""
    states: NDArray[np.integer] = numbers(values)
    return np.where(states >= STARTING, STATES - 1, states) if len(states) and states.max() >= STARTING else states
