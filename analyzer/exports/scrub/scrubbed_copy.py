"""Writes a scrubbed recording."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError, Manifest, TableWriter, write_table
from tachograph.format.atomic import unfinished
from tachograph.format.plain_records import replaced

from ...recording.opened import DEFINITIONS, Recording
from ...recording.output_file import writing
from ...recording.process_lifetimes import read_process_lifetimes
from ...samples.summary import PROJECT
from .masks import (
    Numbering,
    kept_rows,
    kept_spans,
    within,
    without_commands,
    without_identity,
    without_labels,
    without_names,
    without_paths,
    without_references,
    without_sources,
    without_texts,
)
from .request import Request

_PLAIN = (bool, int, float, type(None))
_WORDS = ("native", "signal", "stationary")
"""Texts of known parameters; other texts may be private."""


def scrub(recording: Recording, request: Request, target: Path) -> None:
    """Write the rest of ``recording`` as a new recording, which appears when it is complete.

    Only what the format of this version describes is copied: other files, columns and keys of the manifest cannot be
    judged.

    Errors:
        FormatError: ``target`` is there already or cannot be written, or the recording is damaged.
    """
    if target.exists():
        raise FormatError(f"{target} exists already: say where to write with --output")
    with (
        writing(target),
        tempfile.TemporaryDirectory(prefix=unfinished(f"{target.name}-"), dir=target.parent) as folder,
    ):
        made = Path(folder, "made")
        made.mkdir(mode=0o700)
        _write(recording, request, made)
        made.rename(target)


def _write(recording: Recording, request: Request, folder: Path) -> None:
    spec, numbering = recording.specification, Numbering(recording)
    long = [name for name, table in spec.tables.items() if table.id_column is None and recording.recorded(name)]
    spans = kept_spans(recording, request)
    numbering.use_ids("spans", spans.column("span").to_numpy().astype(np.int64))
    for column, owners in (("thread", "threads"), ("process", "processes")):
        numbering.use_ids(owners, spans.column(column).to_numpy().astype(np.int64))
    for name in long:
        for table in kept_rows(recording, name, request):
            numbering.use(table, spec.tables[name])
    alive = read_process_lifetimes(recording).within(request.window.start_ns, request.window.end_ns - 1)
    numbering.use_ids("threads", np.flatnonzero(request.threads & _alive(recording, request, alive)))
    numbering.use_ids("processes", np.flatnonzero(request.processes & alive))
    numbering.forbid("threads", request.threads)
    _use_interpreters(recording, numbering, request)
    numbering.close()
    sizes: dict[str, dict[str, Any]] = {}
    identity = str(uuid.uuid4())
    if spans.num_rows:
        spans = numbering.renumber(spans, spec.tables["spans"])
        masked = without_texts(spans) if "names" in request.drop else spans
        sizes["spans"] = write_table(masked, folder / "spans.parquet", spec, "spans", identity)
    for name, table in _definitions(recording, numbering, request).items():
        sizes[name] = write_table(table, folder / f"{name}.parquet", spec, name, identity)
    for name in long:
        if name in request.tables_left_out and spec.tables[name].recorded_if is not None:
            continue
        with TableWriter(folder / f"{name}.parquet", spec, name, identity) as writer:
            for table in kept_rows(recording, name, request):
                kept = numbering.renumber(table, spec.tables[name])
                writer.write(without_references(kept) if name == "referrers" and "names" in request.drop else kept)
        sizes[name] = writer.entry
    manifest(recording, numbering, request, sizes, identity).write(folder / "manifest.json")


def _alive(recording: Recording, request: Request, processes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True for threads that may have been alive in the window; ``processes`` are those that were."""
    threads, window = recording.all_threads, request.window
    start = threads.start_ns.filled(window.start_ns)
    end = threads.end_ns.filled(window.end_ns)
    inside = (start < window.end_ns) & (end >= window.start_ns)
    return np.asarray(inside & processes[threads.process], np.bool_)


def _use_interpreters(recording: Recording, numbering: Numbering, request: Request) -> None:
    """Mappings of the interpreter are kept: they set it apart from other native code."""
    modules = recording.table("modules")
    interpreter = modules.column("interpreter").to_numpy(zero_copy_only=False)
    numbering.use_ids("modules", np.flatnonzero(interpreter & request.processes[modules.column("process").to_numpy()]))


def _definitions(recording: Recording, numbering: Numbering, request: Request) -> dict[str, pa.Table]:
    from ...profile.build import named_scope

    spec, tables = recording.specification, {}
    for name in DEFINITIONS:
        if name == "spans":  # nothing refers to spans: they are kept by their thread and time
            continue
        kept = recording.table(name).filter(pa.array(numbering.kept(name)))
        if not kept.num_rows and spec.tables[name].since:
            continue
        tables[name] = numbering.renumber(kept, spec.tables[name])
    if not request.window.whole:
        start, end = _cut(recording, request)
        tables |= {name: within(tables[name], start, end) for name in ("processes", "threads")}
    tables["processes"] = without_commands(tables["processes"], request.drop)
    if "host" in request.drop and "gpu_devices" in tables:
        tables["gpu_devices"] = without_identity(tables["gpu_devices"])
    if "sources" in request.drop:
        tables["files"] = without_sources(tables["files"])
    if "names" in request.drop:
        tables = without_names(tables)
    if "paths" in request.drop:
        tables = without_paths(tables, named_scope(PROJECT, recording))
    return tables


def _cut(recording: Recording, request: Request) -> tuple[int, int]:
    """First and last moment of the kept part."""
    end = recording.end_ns
    start = max(recording.start_ns, request.window.start_ns)
    return start, request.window.end_ns if end is None else min(end, request.window.end_ns)


def manifest(
    recording: Recording, numbering: Numbering, request: Request, sizes: dict[str, dict[str, Any]], identity: str
) -> Manifest:
    """The manifest of the rest. It is another recording, so ``identity``, its uuid, is another one."""
    old = recording.manifest
    processes = np.flatnonzero(numbering.kept("processes")).tolist()
    number: dict[int | None, int | None] = {process: place for place, process in enumerate(processes)}
    parameters: dict[str, Any] = {
        key: value for key, value in old.parameters.items() if isinstance(value, _PLAIN) or value in _WORDS
    }
    for name in request.without:
        parameters[name] = False
    if "sources" in request.drop:
        parameters["sources"] = False
    number[None] = None  # a loss of the whole recording
    quality = [
        {**entry, "process": number[entry.get("process")]} for entry in old.quality if entry.get("process") in number
    ]
    return replaced(
        old,
        uuid=identity,
        state="recovered" if recording.unfinished else old.state,
        format_version=recording.specification.version,
        host=None if "host" in request.drop else old.host,
        os=old.os.partition(" ")[0] if old.os is not None and "host" in request.drop else old.os,
        argv=[] if "argv" in request.drop else old.argv,
        labels=without_labels(old.labels) if "labels" in request.drop else old.labels,
        parameters=parameters,
        sampler_cost={} if len(processes) < len(recording.all_processes) else old.sampler_cost,
        quality=quality,
        tables=sizes,
        ended_ns=old.ended_ns if request.window.whole else _cut(recording, request)[1],
        notes=[sentence(request)],
        extra={"scrubbed": request.typed},
    )


def sentence(request: Request) -> str:
    """Description of the removed data, for the reader of a report."""
    parts = []
    if request.drop:
        parts.append(f"without {', '.join(sorted(request.drop))}")
    if request.without:
        parts.append(f"without {' and '.join(sorted(request.without))}")
    if not request.window.whole:
        parts.append("only a part of the time")
    if request.typed["only_some_threads"]:
        parts.append("only some threads")
    if request.typed["only_some_processes"]:
        parts.append("only some processes")
    return f"this recording was scrubbed: {'; '.join(parts)}"


__all__ = ["manifest", "scrub", "sentence"]
