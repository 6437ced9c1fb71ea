"""The last seconds of a process that was killed, in words."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np

from ..profile.profile import Profile
from ..recording.text import printable
from .numbers import seconds, size

LEAST_S, LEAST_BYTES = 0.01, 1e6


def killed_text(profile: Profile) -> str | None:
    """A process that was killed, with its memory and the limit; None if none was."""
    last = profile.last_seconds
    if last is None:
        return None
    killed = last.killed
    how = (
        f"ended by {killed.signal}" if killed.signal else "has no recorded end: it was killed, or the machine stopped,"
    )
    text = f"{printable(killed.name or 'a process', 60)} ({killed.pid}) {how} at {seconds(killed.end_s)}"
    if killed.others:
        text += f" (and {killed.others} more)"
    if last.resident_bytes is not None:
        text += f", with {size(round(last.resident_bytes))} resident"
    if killed.memory_limit_bytes is not None:
        text += f"; the control group's memory limit was {size(killed.memory_limit_bytes)}"
    if killed.oom_kills is not None:
        times = "once" if killed.oom_kills == 1 else f"{killed.oom_kills:,} times"
        text += f"; the kernel killed for want of memory {times}"
    return text


def last_lines(profile: Profile) -> list[str]:
    """What ran, and what was allocated, in its last seconds: a line of code in each."""
    last = profile.last_seconds
    if last is None:
        return []
    shown = []
    for row in last.lines:
        place = str(row["function"]) if row["file"] is None else f"{PurePosixPath(row['file']).name}:{row['line']}"
        cpu, allocated, live = (
            np.nan_to_num(np.float64(row[name] if row[name] is not None else np.nan))
            for name in ("cpu_s", "allocated_bytes", "live_at_end_bytes")
        )
        facts = [f"{seconds(float(cpu))} CPU"] if cpu >= LEAST_S else []
        facts += [f"{size(round(allocated))} allocated"] if allocated >= LEAST_BYTES else []
        facts += [f"{size(round(live))} held"] if live >= LEAST_BYTES else []
        if facts:
            shown.append(f"{printable(place, 80)}  {', '.join(facts)}")
    return shown


def last_title(profile: Profile) -> str:
    """The time that ``last_lines`` are about."""
    last = profile.last_seconds
    return "" if last is None else f"in its last {seconds(last.killed.end_s - last.killed.start_s)}"
