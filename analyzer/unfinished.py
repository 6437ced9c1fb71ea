"""Reads what a recording that was never finished left behind, without touching it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tachograph.format import Container, FormatError, Manifest, Specification, assemble, write_recording


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
        finished = replace(
            manifest,
            state="recovered",
            clock=assembled.clock or manifest.clock,
            parameters={**assembled.parameters, **manifest.parameters},
            sampler_cost=assembled.sampler_cost,
            quality=assembled.quality,
            tables=write_recording(assembled, into),
            ended_ns=assembled.ended_ns,
        )
        finished.write(into / "manifest.json")
    except OSError as error:
        raise FormatError(f"cannot read an unfinished recording through {into}: {error.strerror or error}") from None
    return finished
