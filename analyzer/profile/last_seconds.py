"""The last seconds of a process that was killed: what ran in it, and what it allocated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..conclusions.memory.process import Memory
from ..recording.frame import Frame, Row
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes

SECONDS = 2.0
"""The length of what is looked at."""

MAX_LINES = 5

_SIGKILL = -9
_COLUMNS = ("file", "line", "function", "source", "cpu_s", "allocated_bytes", "live_at_end_bytes")


@dataclass(frozen=True)
class Killed:
    """A process that was killed. Seconds from the start of the recording; bytes; None is unknown."""

    process: int
    pid: int
    name: str | None
    signal: str | None
    """``SIGKILL``; None if its end was not seen: it was killed together with the recorder, or the machine stopped."""
    others: int
    """Other processes that ended in the same way."""
    start_s: float
    end_s: float
    memory_limit_bytes: int | None
    """The limit of the control group in which recording began."""
    oom_kills: int | None
    """Processes of that control group that the kernel killed for want of memory meanwhile; None: none, or unknown."""


@dataclass(frozen=True)
class LastSeconds:
    """The last doings of a killed process.

    ``lines`` are those with the most CPU time and those that allocated most: file, line, function, source, cpu_s,
    allocated_bytes and live_at_end_bytes.
    """

    killed: Killed
    resident_bytes: float | None
    """The last resident set that was read."""
    allocated_bytes: float | None
    lines: list[Row]


def find_killed(recording: Recording, lifetimes: ProcessLifetimes) -> Killed | None:
    """The process that was killed last, None if none was."""
    processes = recording.all_processes
    recorded = np.array([each != "listed" for each in processes.recorded], np.bool_)
    killed = processes.exit_status.filled(0) == _SIGKILL
    crashed = not recording.being_written and (recording.unfinished or recording.manifest.state == "recovered")
    unseen = ~lifetimes.end_recorded & crashed
    candidates = np.flatnonzero(recorded & (killed | unseen) & (lifetimes.end_ns > lifetimes.start_ns))
    if not len(candidates):
        return None
    last = recording.end_ns
    ends = np.minimum(lifetimes.end_ns[candidates], np.iinfo(np.int64).max if last is None else last)
    number = int(candidates[np.argmax(ends)])
    end_s = (int(ends.max()) - recording.start_ns) / 1e9
    began_s = (int(lifetimes.start_ns[number]) - recording.start_ns) / 1e9
    limit, kills = (recording.manifest.parameters.get(f"memory_{name}") for name in ("limit_bytes", "oom_kills"))
    return Killed(
        process=number,
        pid=int(processes.pid[number]),
        name=processes.name[number],
        signal="SIGKILL" if killed[number] else None,
        others=len(candidates) - 1,
        start_s=max(began_s, end_s - SECONDS),
        end_s=end_s,
        memory_limit_bytes=limit if type(limit) is int and limit > 0 else None,
        oom_kills=kills if type(kills) is int and kills > 0 else None,
    )


def last_seconds(killed: Killed, lines: Frame, memory: Memory | None) -> LastSeconds:
    """The last seconds from the lines and the memory of the process in that time."""
    columns = [name for name in ("cpu_s", "allocated_bytes") if name in lines]
    chosen: list[int] = []
    for name in columns:
        order = lines.largest_first(name)[:MAX_LINES]
        chosen += [number for number in order.tolist() if np.nan_to_num(lines[name][number]) > 0]
    rows = [
        {name: row.get(name) for name in _COLUMNS}
        for row in lines.take(np.array(list(dict.fromkeys(chosen)), int)).rows()
    ]
    held = None if memory is None else next(iter(memory.frames.processes.rows()), None)
    return LastSeconds(
        killed,
        None if held is None else _known(held["resident_end_bytes"]),
        None if held is None else _known(held["allocated_bytes"]),
        rows,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
