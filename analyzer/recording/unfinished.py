"""Reads what a recording that was never finished left behind, without touching it."""

from __future__ import annotations

from pathlib import Path

from tachograph.format import (
    Container,
    FormatError,
    Manifest,
    Specification,
    assemble,
    finished_manifest,
    write_recording,
)


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
