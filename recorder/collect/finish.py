"""Makes the finished recording of a spool: after a run, and by ``tachograph recover`` after a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.recorder.collect.installed_versions import versions
from tachograph.recorder.collect.native_places import NativePlaces
from tachograph.recorder.collect.output import MANIFEST, SPOOL
from tachograph.recorder.collect.removal import remove_spool
from tachograph.recorder.collect.unrecorded_pythons import losses_of
from tachograph.recorder.problems import reason

if TYPE_CHECKING:
    from tachograph.format import LossSpec, Manifest, SpoolDirectory
    from tachograph.recorder.collect.source_texts import SourceStore


MOST_REHEARSED = 8
"""Segments of a spool, with those in parts, for which the end is rehearsed: a rehearsal takes several times their size
of memory, and allocators keep some of it."""


class UnfinishedError(Exception):
    """The tables could not be written. The spool is whole and stays; the message is a reason in a few words."""


@dataclass(frozen=True)
class Finished:
    """The size of a finished recording: rows by table, bytes, and the losses that matter (name -> count).

    A table that was not recorded has no number of rows. ``processes`` says how many were recorded in which way
    (``python``, ``native``, ``listed``). ``began_ns`` is the monotonic time at which the first one began, None if that
    is unknown.
    """

    rows: Mapping[str, int]
    size: int
    lost: Mapping[str, int]
    processes: Mapping[str, int] = field(default_factory=dict)
    began_ns: int | None = None


def finish(
    directory: Path,
    manifest: Manifest,
    sources: SourceStore | None,
    *,
    state: str = "complete",
    exit_statuses: Mapping[int, int] | None = None,
    places: NativePlaces | None = None,
) -> Finished:
    """Write the tables and the manifest of the recording in ``directory``, then remove its spool.

    Without ``sources`` no file that the recording names is opened: it was made elsewhere. ``places`` may know some
    native places already (``rehearse``).
    Raises UnfinishedError, with the spool as it was, if that is not possible.
    """
    finished = make_tables(directory, manifest, sources, state=state, exit_statuses=exit_statuses, places=places)
    remove_spool(directory / SPOOL)
    return finished


def make_tables(
    directory: Path,
    manifest: Manifest,
    sources: SourceStore | None,
    *,
    state: str = "complete",
    exit_statuses: Mapping[int, int] | None = None,
    spool: SpoolDirectory | None = None,
    ended_ns: int | None = None,
    places: NativePlaces | None = None,
) -> Finished:
    """Write the tables and the manifest of a recording into ``directory``, from its own spool or from ``spool``.

    ``ended_ns`` is when it ended, if its spool does not tell. Raises UnfinishedError, with no tables left, if that is
    not possible.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UnfinishedError(f"pyarrow cannot be imported: {error}") from error

    from tachograph.format import (
        FormatError,
        SpoolDirectory,
        assemble,
        finished_manifest,
        load_specification,
        write_recording,
    )

    spec = load_specification()
    places = places or places_for(manifest)
    try:
        assembled = assemble(
            spool or SpoolDirectory(directory / SPOOL),
            spec,
            resolve=None if sources is None else places.resolve,
            read_source=None if sources is None else sources.read,
            identify_file=None if sources is None else sources.identify,
            store_sources=bool(manifest.parameters.get("sources", True)),
            exit_statuses=exit_statuses or {},
        )
        tables = write_recording(assembled, directory, manifest.uuid)
        finished = finished_manifest(manifest, assembled, tables, state)
        finished.ended_ns = finished.ended_ns if ended_ns is None else ended_ns
        unread: Counter[str] = Counter()
        if sources is not None:
            unread.update(filter(None, map(sources.unread, assembled.table("files")["path"].to_pylist())))
            unread.update(losses_of(assembled.table("processes").to_pylist(), manifest.parameters))
            loaded = [assembled.table(name)["path"].to_pylist() for name in ("files", "modules")]
            if installed := versions(path for paths in loaded for path in paths if path):
                finished.parameters["distributions"] = installed
        unread["native_lines_unread"] = places.unread
        unread["line_tables_too_large"] = assembled.table("codes")["line_table"].null_count
        finished.quality += [{"process": None, "loss": loss, "count": count} for loss, count in unread.items() if count]
        finished.write(directory / MANIFEST)
    except (OSError, FormatError, pa.ArrowException) as error:
        # Half a set of tables is of no use, and the room may be needed.
        for name in spec.tables:
            with suppress(OSError):  # a folder of that name is not ours
                (directory / f"{name}.parquet").unlink(missing_ok=True)
        raise UnfinishedError(reason(error) if isinstance(error, OSError) else str(error)) from error
    return Finished(
        rows={name: table["rows"] for name, table in tables.items()},
        size=sum(table["bytes"] for table in tables.values()) + (directory / MANIFEST).stat().st_size,
        lost=losses(finished.quality, spec.losses),
        processes=Counter(assembled.table("processes")["recorded"].to_pylist()),
        began_ns=(finished.clock or {}).get("monotonic_ns"),
    )


def places_for(manifest: Manifest) -> NativePlaces:
    """The resolver of native places for a recording."""
    return NativePlaces(lines=bool(manifest.parameters.get("native_lines", True)))


def rehearse(spool: SpoolDirectory, places: NativePlaces, given_up: Callable[[], bool] = lambda: False) -> None:
    """Make the tables of a spool that is still being written, in memory, and drop them.

    What is done for the first time then takes a third of the end of a recording: functions and compressors are set up,
    and most native places that the recording will have are found. A spool that is large by now is left alone. Between
    two steps it is asked whether to go on: the end itself does not wait for the rest.
    """
    import pyarrow as pa

    from tachograph.format import FormatError, assemble, load_specification
    from tachograph.format.parquet import write_nowhere

    try:
        if spool.has_more_than(MOST_REHEARSED):
            return
        spec = load_specification()
        assembled = assemble(spool, spec, resolve=places.resolve)
        for name in spec.tables:
            if given_up():
                return
            write_nowhere(assembled.table(name), spec, name)
    except (OSError, FormatError, pa.ArrowException):
        return  # the end will say so


def losses(quality: Sequence[Mapping[str, object]], specs: Sequence[LossSpec]) -> dict[str, int]:
    """The entries of the quality ledger that mean missing data, in words, summed over the processes."""
    severities = {spec.name: spec.severity for spec in specs}
    words = {spec.name: spec.doc.removesuffix(" (counted by the reader)") for spec in specs}
    lost: dict[str, int] = {}
    for entry in quality:
        name, count = str(entry["loss"]), entry["count"]
        if severities.get(name, "loss") == "loss" and isinstance(count, int) and count:
            what = words.get(name) or name
            lost[what] = lost.get(what, 0) + count
    return lost
