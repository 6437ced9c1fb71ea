"""Why and when a process stopped recording before it ended, as its control file tells."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tachograph.format import ControlFile, FormatError, SpoolDirectory
from tachograph.format.spool.layout import ControlState

_WHY = {
    errno.EPERM: "the program put a seccomp filter on itself, and any call of ours might have been its end",
    errno.EACCES: "permission denied, and no recording command made its files (it may have become another user)",
}


def recorded_processes(spool: Path) -> list[ControlFile]:
    """The control files of a spool that can be read."""
    try:
        found = SpoolDirectory(spool).processes()
    except FormatError:
        return []
    return [process.control for process in found if process.control is not None]


def why_stopped_early(spool: Path) -> str | None:
    """A sentence about the processes that could not go on recording; None if all could."""
    controls = recorded_processes(spool)
    stopped = [control for control in controls if control.state == ControlState.STOPPED_EARLY]
    if not stopped:
        return None
    first = stopped[0]
    why = _WHY.get(first.stop_errno) or (os.strerror(first.stop_errno).lower() if first.stop_errno else "of an error")
    where = f" in {len(stopped)} of {len(controls)} processes" if len(controls) > 1 else ""
    after = f" after {(first.end_ns - first.start_ns) / 1e9:.1f} s" if first.end_ns else ""
    return f"recording stopped{after}, before the program ended{where}: {why}"
