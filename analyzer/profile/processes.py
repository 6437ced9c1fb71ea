"""The processes as a frame: who started whom, how each was recorded, what it used and how it ended."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..conclusions.memory.process import Memory
from ..recording.filter import Mask
from ..recording.frame import Column, Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes
from ..recording.process_names import process_names
from ..recording.text import printable
from ..recording.time_window import Window

TIMES = ("samples", "cpu_s", "python_s", "native_s", "kernel_s", "unknown_s", "wait_s", "main_wait_s")
"""Sums over the threads of a process that were asked for, in the window."""
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
    """How each process was recorded: ``python``, ``native`` or ``listed``; recordings of 1.0 hold Python ones only."""
    return [how or "python" for how in recording.table("processes").column("recorded").to_pylist()]


def frame_of(
    recording: Recording,
    window: Window,
    lifetimes: ProcessLifetimes,
    wanted: Mask | None,
    threads: Frame,
    memory: Memory | None,
) -> Frame:
    """One row per process that was asked for and lived in the window, every one behind its parent.

    ``threads`` is the frame of the threads, ``memory`` what is known of the processes' memory.
    """
    table = recording.table("processes")
    zero = recording.start_ns
    end_ns = max(zero, *lifetimes.end_ns.tolist()) if len(lifetimes.end_ns) else zero
    parent, pid, parent_pid, exit_status = (
        WholeNumbers.of(table.column(name).to_pylist()) for name in ("parent", "pid", "parent_pid", "exit_status")
    )
    how = recorded_how(recording)
    order, depth = tree_order(parent.tolist())
    frame = Frame(
        {
            "process": np.arange(table.num_rows),
            "parent": parent,
            "depth": np.array(depth, np.int64),
            "name": process_names(table, recording.manifest.argv),
            "pid": pid,
            "parent_pid": parent_pid,
            "recorded": how,
            "origin": _texts(table.column("origin").to_pylist()),
            "command": _texts(table.column("command").to_pylist()),
            "executable": _texts(table.column("executable").to_pylist()),
            "python_version": _texts(table.column("python_version").to_pylist()),
            "start_s": (lifetimes.start_ns - zero) / 1e9,
            "end_s": np.where(lifetimes.seen, (lifetimes.end_ns - zero) / 1e9, np.nan),
            "last_s": (lifetimes.end_ns - zero) / 1e9,
            "wall_s": _wall(lifetimes, window, frame_end=end_ns),
            "user_s": _numbers(table.column("user_ns").to_pylist(), 1e-9),
            "system_s": _numbers(table.column("system_ns").to_pylist(), 1e-9),
            "max_resident_bytes": _numbers(table.column("max_resident_bytes").to_pylist(), 1.0),
            "exit_status": exit_status,
            **_times(threads, np.array([each == LISTED for each in how], np.bool_)),
            **_held(memory, table.num_rows),
        }
    )
    there = lifetimes.within(window.start_ns, window.end_ns - 1)
    kept = there if wanted is None else there & wanted
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
    """How long each process lived in the window; NaN where its end is not known and lies in the window."""
    length = lifetimes.length_ns(window.start_ns, min(window.end_ns, frame_end)) / 1e9
    return np.where(lifetimes.seen | (lifetimes.end_ns >= window.end_ns), length, np.nan)


def _times(threads: Frame, listed: NDArray[np.bool_]) -> dict[str, Column]:
    """Sums by process; unknown where nothing is known. ``listed`` says which processes were not recorded."""
    owner = threads["process"]
    found: dict[str, NDArray[np.float64]] = {}
    for name in TIMES:
        known = ~np.isnan(threads[name])
        sums = np.bincount(owner[known], weights=threads[name][known], minlength=len(listed))
        found[name] = np.where(np.bincount(owner[known], minlength=len(listed)) > 0, sums, np.nan)
    # Of a process that was recorded nothing means none; of one that was not it means unknown.
    count = np.bincount(owner, minlength=len(listed))
    unknown = listed & (count == 0)
    samples = np.nan_to_num(found["samples"]).astype(np.int64)
    return found | {"samples": WholeNumbers(samples, unknown), "threads": WholeNumbers(count, unknown)}


def _held(memory: Memory | None, processes: int) -> dict[str, Column]:
    """What is known of the memory of each process; NaN where nothing is."""
    found = {name: np.full(processes, np.nan) for name in HELD}
    if memory is not None:
        known = memory.frames.processes
        for name, values in found.items():
            values[known["process"].astype(np.int64)] = known[name]
    return dict(found)


def _texts(values: list[str | None]) -> list[str | None]:
    return [None if value is None else printable(value, 4096) for value in values]


def _numbers(values: list[int | None], factor: float) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value * factor for value in values], np.float64)
