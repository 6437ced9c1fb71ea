"""Whether a recording that is not finished is still being written, as far as this machine can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tachograph.format import Container

NOTE = "spool/recorder.json"
"""Who writes: ``boot`` (id of the machine's start) and ``processes`` (pairs of process id and start time in ticks)."""

MAX_BYTES = 1 << 16


def is_being_written(container: Container) -> bool:
    """Whether the recording command or its program lives on this machine; False also where that cannot be told."""
    if not container.has(NOTE) or container.size(NOTE) > MAX_BYTES:
        return False
    try:
        with container.open(NOTE) as file:
            note = json.loads(file.read(MAX_BYTES))
        same_boot = note["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip() != ""
        return same_boot and any(_lives(pid, start) for pid, start in note["processes"])
    except (OSError, ValueError, KeyError, TypeError):
        return False  # another system, or a note that is not ours


def _lives(pid: Any, start: Any) -> bool:
    """Whether there is this process, and not another one with its id; one that is over and not yet reaped is none."""
    if not isinstance(pid, int) or not isinstance(start, int) or pid <= 0:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name may hold blanks and brackets: fields are counted behind the last bracket.
    fields = stat.rpartition(")")[2].split()
    return len(fields) > 19 and fields[0] not in "ZX" and fields[19] == str(start)
