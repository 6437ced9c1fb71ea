"""Recordings that were never finished: made whole from their spool, and checked for being written still.

It is a module of its own because the reader of spools is slow to import, and most recordings are finished.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tachograph.format import (
    Container,
    FormatError,
    Manifest,
    Specification,
    assemble,
    finished_manifest,
    write_recording,
)

NOTE = "spool/recorder.json"
"""Who writes: ``boot`` (id of the machine's start) and ``processes`` (pairs of process id and start time in ticks)."""

MAX_BYTES = 1 << 16


def finish(container: Container, manifest: Manifest, into: Path, specification: Specification) -> Manifest:
    """Makes a whole recording of a spool and its parts, in the empty directory ``into``; returns its manifest.

    No symbols are looked up and no sources are read: that is for the recording machine.

    Errors:
        FormatError: there is no spool, it cannot be read, or there is no room in ``into``.
    """
    spool = container.spool()
    if spool is None:
        raise FormatError(f"{container.path} was never finished, and its spool is missing: nothing is left to read")
    assembled = assemble(spool, specification)
    try:
        tables = write_recording(assembled, into, manifest.uuid)
        finished = finished_manifest(manifest, assembled, tables, "recovered")
        finished.write(into / "manifest.json")
    except OSError as error:
        raise FormatError(f"cannot read an unfinished recording through {into}: {error.strerror or error}") from None
    return finished


def is_being_written(container: Container) -> bool:
    """True if the recording command or its program is alive on this machine; False also where that is unknown."""
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
    """True if this very process exists, not another one with its id; one that is over and not yet reaped does not."""
    if not isinstance(pid, int) or not isinstance(start, int) or pid <= 0:
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name may hold blanks and brackets: fields are counted behind the last bracket.
    fields = stat.rpartition(")")[2].split()
    return len(fields) > 19 and fields[0] not in "ZX" and fields[19] == str(start)
