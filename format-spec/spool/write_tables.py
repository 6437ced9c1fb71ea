"""Writes the tables of a recording, and what its manifest then says."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from ..manifest import Manifest
from ..parquet import TableWriter, write_table
from ..plain_records import replaced
from .assembly import Assembled


def write_recording(assembled: Assembled, directory: Path | str, uuid: str) -> dict[str, dict[str, int]]:
    """Write the tables of recording ``uuid`` into ``directory``; returns ``rows`` and ``bytes`` of each.

    A table that came after version 1.0 is left out where it has no rows.

    Afterwards write the manifest with its new state, and remove the spool last: until the state is changed, readers go
    by the spool.

    Errors:
        OSError: a table cannot be written.
        FormatError: the spool was changed meanwhile.
    """
    directory, spec = Path(directory), assembled.spec
    written = {}
    for name in spec.tables:
        path = directory / f"{name}.parquet"
        optional = spec.tables[name].since > 0
        if name in assembled.tables:
            if optional and not assembled.tables[name].num_rows:
                continue
            written[name] = write_table(assembled.tables[name], path, spec, name, uuid)
            continue
        batches = assembled.batches(name)
        first = next(batches, None)
        if first is None and optional:
            continue
        with TableWriter(path, spec, name, uuid) as writer:
            for batch in chain([] if first is None else [first], batches):
                writer.write(batch)
        written[name] = {"rows": writer.rows, "bytes": writer.bytes}
    return written


def finished_manifest(
    manifest: Manifest, assembled: Assembled, tables: dict[str, dict[str, int]], state: str
) -> Manifest:
    """The manifest of a recording whose ``tables`` have been written; ``state`` is ``complete`` or ``recovered``."""
    return replaced(
        manifest,
        format_version=assembled.spec.version,
        state=state,
        tables=tables,
        quality=assembled.quality,
        sampler_cost=assembled.sampler_cost,
        clock=assembled.clock or manifest.clock,
        parameters={**assembled.parameters, **manifest.parameters},
        ended_ns=assembled.ended_ns,
    )
