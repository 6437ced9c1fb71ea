"""Writes the nine tables of a recording, and finishes one that a crash left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .assembly import Assembled, assemble
from .container import open_container
from .errors import FormatError
from .manifest import MANIFEST_NAME, Manifest
from .parquet import TableWriter, write_table
from .specification import load_specification

if TYPE_CHECKING:
    from .contexts import ReadSource
    from .native_frames import Resolve


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


def complete_manifest(manifest: Manifest, assembled: Assembled, tables: dict[str, dict[str, int]], state: str) -> None:
    """Put into the manifest what is known once the tables are written."""
    manifest.state = state
    manifest.tables = {name: dict(entry) for name, entry in tables.items()}
    found = {(entry["process"], entry["loss"]) for entry in assembled.quality}
    kept = [entry for entry in manifest.quality if (entry.get("process"), entry["loss"]) not in found]
    manifest.quality = kept + assembled.quality
    manifest.sampler_cost = assembled.sampler_cost
    manifest.clock = manifest.clock or assembled.clock
    manifest.parameters = {**assembled.parameters, **manifest.parameters}
    if manifest.ended_ns is None:
        manifest.ended_ns = assembled.ended_ns


def finish_into(
    recording: Path | str,
    target: Path | str,
    *,
    resolve: Resolve | None = None,
    read_source: ReadSource | None = None,
    store_sources: bool = True,
) -> Manifest:
    """Make a whole recording, of state ``recovered``, of one that was not finished; the original is not touched.

    ``target`` is an existing directory, and may be the recording's own. Returns the manifest that was written.

    Errors:
        FormatError: ``recording`` is none, or has no spool to finish it from.
        OSError: the tables cannot be written.
    """
    target = Path(target)
    with open_container(recording) as container:
        manifest = container.manifest()
        spool = container.spool()
        if spool is None:
            raise FormatError(f"{recording} was not finished, and its spool is gone: there is nothing to recover")
        assembled = assemble(
            spool, load_specification(), resolve=resolve, read_source=read_source, store_sources=store_sources
        )
        complete_manifest(manifest, assembled, write_recording(assembled, target), "recovered")
        manifest.write(target / MANIFEST_NAME)
    return manifest
