"""Writes the nine tables of a recording."""

from __future__ import annotations

from pathlib import Path

from .assembly import Assembled
from .parquet import TableWriter, write_table


def write_recording(assembled: Assembled, directory: Path | str) -> dict[str, dict[str, int]]:
    """Write every table into ``directory``; returns ``rows`` and ``bytes`` of each, for the manifest.

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
        if name in assembled.tables:
            written[name] = write_table(assembled.tables[name], path, spec, name)
            continue
        with TableWriter(path, spec, name) as writer:
            for batch in assembled.batches(name):
                writer.write(batch)
        written[name] = {"rows": writer.rows, "bytes": writer.bytes}
    return written
