"""Perfetto's trace format (https://perfetto.dev/docs/reference/trace-packet-proto): a sequence of protocol buffers.

CPU samples are ``PerfSample`` packets, waits are slices on the tracks of their threads, bytes are ``ProfilePacket``
dumps of one heap for each metric. Whatever the metric is, the footprint of each process is a counter track, if memory
was recorded.
"""

from __future__ import annotations

from typing import BinaryIO

import pandas as pd
import pyarrow as pa

from ..recording.question_options import Metric
from ..recording.text import printable
from .extract import Extract, Options
from .frame_tree import FrameTree
from .protobuf import Message

LIMIT = 5_000_000
"""Changes of stack in one file."""

_SEQUENCE = 1
_MONOTONIC, _REALTIME = 3, 1
"""Built-in clocks of Perfetto."""
_MAPPING = 1
_CLEARED, _NEEDS_STATE = 1, 2
"""sequence_flags: incremental state was cleared; it is needed."""
_SLICE_BEGIN, _SLICE_END, _COUNTER = 1, 2, 4
_TASK_CLOCK, _PERF_MONOTONIC, _SIZE_BYTES, _USER = 3, 2, 3, 2


class _Writer:
    """Appends packets to a trace."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def packet(self, packet: Message, time_ns: int | None = None, flags: int = _NEEDS_STATE) -> None:
        if time_ns is not None:
            packet.number(8, time_ns).number(58, _MONOTONIC)
        packet.number(10, _SEQUENCE).number(13, flags)
        self._out.write(Message().message(1, packet).to_bytes())


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes the trace."""
    tree = extract.tree(lines=False, native=options.native)
    writer = _Writer(out)
    writer.packet(Message().message(59, _defaults(extract)), flags=_CLEARED)
    _write_clocks(extract, writer)
    if extract.metric.unit == "bytes":
        sums = extract.sums(tree)
        _write_tracks(extract, writer, sums["thread"].unique().tolist())
        writer.packet(Message().message(12, _interned(tree, sums["node"].unique().tolist())))
        _write_heaps(extract, writer, sums)
    else:
        rows = extract.timeline(tree, LIMIT)
        _write_tracks(extract, writer, rows["thread"].unique().tolist())
        writer.packet(Message().message(12, _interned(tree, rows["node"].unique().tolist())))
        (_write_samples if extract.metric is Metric.CPU else _write_slices)(extract, writer, tree, rows)
    _write_footprint(extract, writer)
    return []


def _defaults(extract: Extract) -> Message:
    """TracePacketDefaults: the clock, and what the counter of samples counts."""
    timebase = Message().number(4, _TASK_CLOCK).text(10, extract.metric.doc).number(11, _PERF_MONOTONIC)
    timebase.number(1, extract.recording.interval_ns or 1_000_000)
    return Message().number(58, _MONOTONIC).message(12, Message().message(1, timebase))


def _write_clocks(extract: Extract, writer: _Writer) -> None:
    if extract.utc_ns is None:
        return
    snapshot = Message()
    for clock, now in ((_MONOTONIC, extract.recording.start_ns), (_REALTIME, extract.utc_ns)):
        snapshot.message(1, Message().number(1, clock).number(2, now))
    writer.packet(Message().message(6, snapshot.number(2, _MONOTONIC)), extract.recording.start_ns)


def _process_track(process: int) -> int:
    return process + 1


def _thread_track(extract: Extract, thread: int) -> int:
    return len(extract.threads) + thread + 1


def _footprint_track(extract: Extract, process: int) -> int:
    return 2 * len(extract.threads) + process + 1


def _write_tracks(extract: Extract, writer: _Writer, threads: list[int]) -> None:
    """Descriptors of processes and of the threads that have rows."""
    processes, tree = extract.recording.all_processes, Message()
    names, columns = processes.name, (processes.pid.tolist(), processes.parent_pid.tolist(), processes.command)
    for process, (pid, parent_pid, command) in enumerate(zip(*columns, strict=True)):
        if extract.processes is not None and not extract.processes[process]:
            continue
        # A tree of parent processes, which tracks do not hold.
        entry = Message().number(1, pid).text(3, printable(command or names[process], 1000))
        tree.message(1, entry if parent_pid is None else entry.number(2, max(parent_pid, 0)))
        described = Message().number(1, pid).text(2, printable(command or extract.program, 200)).text(6, names[process])
        track = Message().number(1, _process_track(process)).message(3, described)
        writer.packet(Message().message(60, track))
    writer.packet(Message().message(2, tree), extract.recording.start_ns)
    for number in threads:
        thread = extract.threads[number]
        described = Message().number(1, thread.pid).number(2, _tid(extract, number)).text(5, thread.name)
        track = Message().number(1, _thread_track(extract, number)).number(5, _process_track(thread.process))
        writer.packet(Message().message(60, track.message(4, described)))


def _tid(extract: Extract, number: int) -> int:
    """The thread's id; data of no thread has one that no thread of Linux can have."""
    tid = extract.threads[number].tid
    return (1 << 22) + number if tid is None else tid


def _interned(tree: FrameTree, nodes: list[int]) -> Message:
    """InternedData: names, files, frames and the stacks of ``nodes``; ids are numbers from 1 (a stack's is its node's).

    Of the whole tree the stacks would be quadratic in its depth.
    """
    data = Message().message(17, Message().number(1, _MAPPING).text(2, "Python"))
    data.message(16, Message().number(1, _MAPPING).blob(2, b"tachograph"))
    data.message(19, Message().number(1, _MAPPING).number(2, _MAPPING).number(7, _MAPPING))
    files: dict[str, int] = {}
    for number, function in enumerate(tree.functions, 1):
        data.message(5, Message().number(1, number).text(2, function.name))
        if function.file is not None and function.file not in files:
            files[function.file] = len(files) + 1
            data.message(18, Message().number(1, files[function.file]).text(2, function.file))
    for number, frame in enumerate(tree.frames, 1):
        function = tree.functions[frame.function]
        # The address distinguishes frames with equal names.
        interned = Message().number(1, number).number(2, frame.function + 1).number(3, _MAPPING).number(4, number)
        if function.file is not None:
            interned.number(5, files[function.file])
        if function.first_line is not None and function.first_line > 0:
            interned.number(6, function.first_line)
        data.message(6, interned)
    for node in sorted(nodes):
        data.message(7, Message().number(1, node + 1).packed(2, [frame + 1 for frame in tree.path(node)]))
    return data


def _write_samples(extract: Extract, writer: _Writer, tree: FrameTree, rows: pd.DataFrame) -> None:
    """PerfSample packets; ``timebase_count`` is the CPU time of all samples so far, in nanoseconds."""
    counted = rows["weight"].cumsum()
    columns = (rows["time_ns"].tolist(), rows["thread"].tolist(), rows["node"].tolist(), counted.tolist())
    for time_ns, thread, node, count in zip(*columns, strict=True):
        sample = Message().number(1, 0).number(2, extract.threads[thread].pid).number(3, _tid(extract, thread))
        sample.number(4, node + 1).number(5, _USER).number(6, count)
        writer.packet(Message().message(66, sample), time_ns)


def _write_slices(extract: Extract, writer: _Writer, tree: FrameTree, rows: pd.DataFrame) -> None:
    """A slice for each wait, named after the function that waited, with its stack."""
    ended: dict[int, int] = {}
    columns = (rows[name].tolist() for name in ("time_ns", "end_ns", "thread", "node"))
    for start_ns, end_ns, thread, node in zip(*columns, strict=True):
        begin = max(start_ns, ended.get(thread, start_ns))
        ended[thread] = end = max(end_ns, begin)
        track = _thread_track(extract, thread)
        opened = Message().number(9, _SLICE_BEGIN).number(11, track).text(22, "wait")
        opened.text(23, tree.function_of(node).name).number(56, node + 1)
        writer.packet(Message().message(11, opened), begin)
        writer.packet(Message().message(11, Message().number(9, _SLICE_END).number(11, track)), end)


def _write_heaps(extract: Extract, writer: _Writer, sums: pd.DataFrame) -> None:
    """One ProfilePacket with a dump for each process."""
    end_ns = extract.recording.end_ns or extract.recording.start_ns
    pids = [extract.threads[thread].pid for thread in sums["thread"].tolist()]
    packet = Message()
    for pid, part in sums.assign(pid=pids).groupby("pid"):
        dump = Message().number(1, int(pid)).text(11, f"tachograph: {extract.metric.doc}").number(9, end_ns)
        for node, weight, samples in _by_node(part):
            sample = Message().number(1, node + 1).number(2, weight).number(5, samples)
            dump.message(2, sample)
        packet.message(5, dump)
    writer.packet(Message().message(37, packet), end_ns)


def _by_node(sums: pd.DataFrame) -> list[tuple[int, int, int]]:
    added = sums.groupby("node", as_index=False)[["weight", "samples"]].sum()
    return [(int(node), int(weight), int(count)) for node, weight, count in added.itertuples(index=False)]


def _write_footprint(extract: Extract, writer: _Writer) -> None:
    """The bytes that each process held, as a counter track."""
    recording = extract.recording
    if not recording.manifest.parameters.get("memory"):
        return
    counters = {process for batch in recording.batches("memory", ["process"]) for process in _distinct(batch)}
    for process in sorted(counters):
        if not _wanted(extract, process):
            continue
        counter = Message().number(1, _footprint_track(extract, process)).number(5, _process_track(process))
        counter.text(2, "footprint").message(8, Message().number(3, _SIZE_BYTES))
        writer.packet(Message().message(60, counter))
    for batch in recording.batches("memory", ["time_ns", "process", "footprint_bytes"]):
        columns = (batch.column(name).to_pylist() for name in ("time_ns", "process", "footprint_bytes"))
        for time_ns, process, held in zip(*columns, strict=True):
            inside = extract.window.start_ns <= time_ns < extract.window.end_ns
            if held is not None and inside and _wanted(extract, process):
                event = Message().number(9, _COUNTER).number(11, _footprint_track(extract, process)).number(30, held)
                writer.packet(Message().message(11, event), time_ns)


def _distinct(batch: pa.RecordBatch) -> list[int]:
    processes: list[int] = batch.column("process").unique().to_pylist()
    return processes


def _wanted(extract: Extract, process: int) -> bool:
    return extract.processes is None or bool(extract.processes[process])
