"""The processes as a frame (parents, use, end), the metadata of a recording, and the totals of a question."""

from __future__ import annotations

import shlex

import numpy as np
from numpy.typing import NDArray

from ..conclusions.memory.process import Memory
from ..recording.filter import Filter, Mask
from ..recording.frame import Column, Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes
from ..recording.text import printable
from ..recording.time_window import Window, united_ns
from .profile import Metadata, Totals

TIMES = ("samples", "cpu_s", "python_s", "native_s", "kernel_s", "unknown_s", "wait_s", "main_wait_s")
"""Sums over the selected threads of a process, in the window."""
HELD = ("start_bytes", "peak_bytes", "peak_s", "end_bytes", "resident_peak_bytes", "allocated_bytes", "freed_bytes")
"""Of ``Memory.processes``."""
COLUMNS = (
    "process",
    "parent",
    "depth",
    "name",
    "pid",
    "parent_pid",
    "recorded",
    "origin",
    "command",
    "executable",
    "python_version",
    "service",
    "start_s",
    "end_s",
    "last_s",
    "wall_s",
    "user_s",
    "system_s",
    "max_resident_bytes",
    "exit_status",
    "threads",
    *TIMES,
    *HELD,
)
"""Columns of ``Profile.processes``."""

LISTED = "listed"


def recorded_how(recording: Recording) -> list[str]:
    """Recording method of each process: ``python``, ``native`` or ``listed``; recordings of 1.0 hold only Python."""
    return [how or "python" for how in recording.all_processes.recorded]


def frame_of(
    recording: Recording,
    window: Window,
    lifetimes: ProcessLifetimes,
    selected: Mask | None,
    threads: Frame,
    memory: Memory | None,
) -> Frame:
    """One row per selected process that was alive in the window, every one behind its parent.

    ``threads`` is the frame of the threads, ``memory`` that of the processes' memory.
    """
    processes = recording.all_processes
    zero = recording.start_ns
    end_ns = max(zero, *lifetimes.end_ns.tolist()) if len(lifetimes.end_ns) else zero
    how = recorded_how(recording)
    order, depth = tree_order(processes.parent.tolist())
    frame = Frame(
        {
            "process": np.arange(len(processes)),
            "parent": processes.parent,
            "depth": np.array(depth, np.int64),
            "name": processes.name,
            "pid": WholeNumbers(processes.pid, np.zeros(len(processes), np.bool_)),
            "parent_pid": processes.parent_pid,
            "recorded": how,
            "origin": _texts(processes.origin),
            "command": _texts(processes.command),
            "executable": _texts(processes.executable),
            "python_version": _texts(processes.python_version),
            "service": _texts(
                [str(each["service.name"]) if "service.name" in each else None for each in processes.resource]
            ),
            "start_s": (lifetimes.start_ns - zero) / 1e9,
            "end_s": np.where(lifetimes.end_recorded, (lifetimes.end_ns - zero) / 1e9, np.nan),
            "last_s": (lifetimes.end_ns - zero) / 1e9,
            "wall_s": _wall(lifetimes, window, frame_end=end_ns),
            "user_s": processes.user_ns.floats() * 1e-9,
            "system_s": processes.system_ns.floats() * 1e-9,
            "max_resident_bytes": processes.max_resident_bytes.floats(),
            "exit_status": processes.exit_status,
            **_times(threads, np.array([each == LISTED for each in how], np.bool_)),
            **_held(memory, len(processes)),
        }
    )
    alive = lifetimes.within(window.start_ns, window.end_ns - 1)
    kept = alive if selected is None else alive & selected
    rows = np.array(order, np.int64)
    return frame.select(COLUMNS).take(rows[kept[rows]])


def tree_order(parents: list[int | None]) -> tuple[list[int], list[int]]:
    """The processes with each one behind its parent and before its parent's next child; and how deep each one is."""
    children: dict[int | None, list[int]] = {}
    depth = [0] * len(parents)
    for number, parent in enumerate(parents):
        above = parent if parent is not None and parent < number else None
        children.setdefault(above, []).append(number)
        depth[number] = 0 if above is None else depth[above] + 1
    order: list[int] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += children.get(number, [])[::-1]
    return order, depth


def _wall(lifetimes: ProcessLifetimes, window: Window, frame_end: int) -> NDArray[np.float64]:
    """Time that each process was alive in the window; NaN where its end is unknown and lies in the window."""
    length = lifetimes.length_ns(window.start_ns, min(window.end_ns, frame_end)) / 1e9
    return np.where(lifetimes.end_recorded | (lifetimes.end_ns >= window.end_ns), length, np.nan)


def _times(threads: Frame, listed: NDArray[np.bool_]) -> dict[str, Column]:
    """Sums by process; unknown where nothing is known. ``listed`` is the mask of processes that were not recorded."""
    owner = threads["process"]
    columns: dict[str, NDArray[np.float64]] = {}
    for name in TIMES:
        measured = ~np.isnan(threads[name])
        sums = np.bincount(owner[measured], weights=threads[name][measured], minlength=len(listed))
        columns[name] = np.where(np.bincount(owner[measured], minlength=len(listed)) > 0, sums, np.nan)
    # Of a process that was recorded nothing means none; of one that was not it means unknown.
    count = np.bincount(owner, minlength=len(listed))
    unknown = listed & (count == 0)
    samples = np.nan_to_num(columns["samples"]).astype(np.int64)
    return columns | {"samples": WholeNumbers(samples, unknown), "threads": WholeNumbers(count, unknown)}


def _held(memory: Memory | None, processes: int) -> dict[str, Column]:
    """Memory of each process; NaN where it is unknown."""
    columns = {name: np.full(processes, np.nan) for name in HELD}
    if memory is not None:
        rows = memory.frames.processes
        for name, values in columns.items():
            values[rows["process"].astype(np.int64)] = rows[name]
    return dict(columns)


def _texts(values: list[str | None]) -> list[str | None]:
    return [None if value is None else printable(value, 4096) for value in values]


MAX_LABELS = 1000
"""Labels that are shown."""


def read_metadata(recording: Recording) -> Metadata:
    """The recording, its program and its machine, in printable text."""
    manifest, processes = recording.manifest, recording.all_processes
    argv = [printable(argument, 500) for argument in manifest.argv[:1000]]
    interval = recording.interval_ns
    return Metadata(
        path=printable(str(recording.path), 4096),
        uuid=printable(manifest.uuid),
        program=printable(shlex.join(manifest.argv[:100]), 1000) if manifest.argv else "",
        argv=argv,
        created_utc=_text(manifest.created_utc),
        host=_text(manifest.host),
        os=_text(manifest.os),
        machine=_text(manifest.machine),
        cpu_count=manifest.cpu_count,
        python_versions=_distinct(processes.python_version),
        samplers=_distinct(processes.sampler),
        interval_s=None if interval is None else interval / 1e9,
        format_version=printable(manifest.format_version),
        tachograph_version=_text(manifest.tachograph_version),
        rotated=_rotated(recording),
        labels={printable(key, 80): printable(value, 300) for key, value in list(manifest.labels.items())[:MAX_LABELS]},
    )


def _rotated(recording: Recording) -> str | None:
    """Number and state of the rotation window, as text; None without rotation."""
    window = recording.manifest.window
    if window is None:
        return None
    place = window["number"] - window["first"] + 1
    if recording.rotated_on:
        return f"window {place:,} of a recording that went on"
    if recording.unfinished:
        return f"window {place:,}, not closed yet"
    return f"window {place:,}, the last" if place > 1 else None


def totals_of(
    recording: Recording,
    window: Window,
    selected: Filter,
    threads: Frame,
    processes: Frame,
    effective: float,
    gc_s: float | None,
    wall_s: float | None,
    *,
    waits_known: bool,
) -> Totals:
    """Sums over the threads of a question; None is unknown."""
    whole = window.whole and selected.named is None
    how = processes["recorded"]
    return Totals(
        wall_s=wall_s,
        cpu_s=float(threads["cpu_s"].sum()),
        python_s=_sum(threads, "python_s"),
        native_s=_sum(threads, "native_s"),
        kernel_s=_sum(threads, "kernel_s"),
        unknown_s=float(threads["unknown_s"].sum()),
        wait_s=_sum(threads, "wait_s") if waits_known else None,
        main_wait_s=_sum(threads, "main_wait_s") if waits_known else None,
        gpu_wait_s=_sum(threads, "gpu_wait_s") if waits_known else None,
        gc_s=gc_s,
        cpu_wait_s=_sum(threads, "cpu_wait_s") if waits_known else None,
        main_cpu_wait_s=_sum(threads.take(threads["main"]), "cpu_wait_s") if waits_known else None,
        unsampled_s=_unsampled(_clocks(recording, selected), threads) if whole else None,
        clock_cpu_s=_clock(_clocks(recording, selected)) if whole else None,
        samples=int(threads["samples"].sum()),
        effective_samples=effective,
        threads=len(threads),
        processes=int((how != LISTED).sum()),
        native_processes=int((how == "native").sum()),
        listed_processes=int((how == LISTED).sum()),
        process_s=_lived(processes.take(how != LISTED), window, recording.start_ns),
    )


def wall_seconds(recording: Recording, window: Window, lifetimes: ProcessLifetimes, selected: Filter) -> float | None:
    """The length of the window, as far as the recording reaches; None if its end is not known.

    Of a window with spans, the time in which one of them lasted; of some processes, in which one of them lived.
    """
    start, end = max(recording.start_ns, window.start_ns), recording.end_ns
    if window.spans is not None:
        return window.spans_ns / 1e9
    if end is None:
        return None
    end = min(end, window.end_ns)
    if selected.processes is None:
        return max(0, end - start) / 1e9
    numbers = np.flatnonzero(selected.processes)
    return united_ns(np.maximum(lifetimes.start_ns[numbers], start), np.minimum(lifetimes.end_ns[numbers], end)) / 1e9


def _lived(processes: Frame, window: Window, zero_ns: int) -> float:
    """The sum of the processes' lifetimes in the window, as far as they are known."""
    start, end = (window.start_ns - zero_ns) / 1e9, (window.end_ns - zero_ns) / 1e9
    length = np.minimum(processes["last_s"], end) - np.maximum(processes["start_s"], start)
    return float(np.maximum(length, 0.0).sum())


def _sum(threads: Frame, column: str) -> float | None:
    """The sum of the known values; None if there was CPU time, and nothing is known of any of it."""
    measured, busy = ~np.isnan(threads[column]), threads["cpu_s"] > 0
    if busy.any() and not (busy & measured).any() and "wait" not in column:
        return None
    return float(np.sum(threads[column][measured]))


def _clocks(recording: Recording, selected: Filter) -> WholeNumbers:
    """CPU time by the clocks of the threads of a question; unknown where it was not read."""
    clocks = recording.all_threads.cpu_ns
    return clocks if selected.threads is None else clocks[selected.threads]


def _clock(clocks: WholeNumbers) -> float | None:
    return int(clocks.values.sum()) / 1e9 if len(clocks) and not clocks.unknown.any() else None


def _unsampled(clocks: WholeNumbers, threads: Frame) -> float | None:
    """CPU time that no sample stands for: of threads shorter than the interval, and at the end of each thread."""
    if clocks.unknown.all():
        return None
    sampled = float(threads["cpu_s"][~np.isnan(threads["clock_cpu_s"])].sum())
    unsampled: float = int(clocks.values.sum()) / 1e9 - sampled
    return max(0.0, unsampled)


def _text(value: str | None) -> str | None:
    return None if value is None else printable(value)


def _distinct(values: list[str | None]) -> list[str]:
    return [printable(value) for value in dict.fromkeys(values) if value]
