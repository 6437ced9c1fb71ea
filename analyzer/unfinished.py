"""Reads what a recording that was never finished left behind, without touching it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tachograph.format import FormatError, Manifest, Specification, SpoolDirectory, assemble, write_recording

SPOOL = "spool"


def finish(recording: Path, manifest: Manifest, into: Path, specification: Specification) -> Manifest:
    """Makes whole tables of the spool and the parts of a recording, in the empty directory ``into``.

    No symbols are looked up and no sources are read: that is for the recording machine. Returns a manifest that
    tells of losses.

    Errors:
        FormatError: there is no spool, or it cannot be read.
    """
    if not (recording / SPOOL).is_dir():
        raise FormatError(f"{recording} was never finished, and its spool is missing: nothing is left to read")
    assembled = assemble(SpoolDirectory(recording / SPOOL), specification)
    try:
        tables = write_recording(assembled, into)
    except OSError as error:
        raise FormatError(f"no room to read an unfinished recording in {into}: {error.strerror or error}") from None
    return replace(
        manifest,
        clock=assembled.clock or manifest.clock,
        parameters={**assembled.parameters, **manifest.parameters},
        sampler_cost=assembled.sampler_cost,
        quality=assembled.quality,
        tables=tables,
        ended_ns=assembled.ended_ns,
    )
