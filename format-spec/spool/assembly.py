"""Turns a spool into the tables and the manifest of a recording: at its end, for recovery, and after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import clean_text
from ..manifest import MOST_INTEGER, Manifest
from ..parquet import TableWriter, write_table
from ..plain_records import replaced
from ..schema import Specification
from .arrow_columns import table_of
from .codes_table import IdentifyFile, ReadSource, SourceTexts
from .contexts import ContextTree
from .directory import SpoolDirectory
from .final_rows import FinalRows, ProcessMaps
from .gpu import GpuFacts, read_gpu
from .id_numbers import IdNumbers
from .native_frames import NativeFrames, NativePaths, NativeTree, Resolve
from .process_definitions import ProcessFacts
from .process_log import ProcessLog, images_of
from .process_reader import Chunk, read_process
from .process_rows import losses_of_rows, processes_table, rows_of
from .records import ROW_KINDS
from .threads_table import ThreadIds, threads_table

if TYPE_CHECKING:
    import pyarrow as pa


class Assembled:
    """The tables of a recording, made of a spool.

    ``tables`` are the dimension tables, ``quality`` the ledger of what was lost, ``clock``, ``sampler_cost``,
    ``parameters`` and ``ended_ns`` what the manifest wants to know.
    """

    def __init__(
        self,
        spec: Specification,
        tables: dict[str, pa.Table],
        rows: FinalRows,
        processes: list[ProcessFacts],
        log: ProcessLog,
        of_rows: list[dict[str, Any]],
        gpu: GpuFacts,
        texts_torn: int = 0,
    ) -> None:
        self.spec = spec
        self.tables = tables
        self._rows = rows
        self._processes = processes
        self._log = log
        self._of_rows = of_rows
        self._gpu = gpu
        self._texts_torn = texts_torn

    def batches(self, name: str) -> Iterator[pa.Table]:
        """The rows of a table that is not in ``tables``, in exact order of time, a bounded piece at a time.

        Errors:
            FormatError: a part has been changed or removed since.
        """
        if name == "gpu":
            yield from self._gpu.batches(self.spec.tables[name].schema)
        else:
            yield from self._rows.batches(name)

    def table(self, name: str) -> pa.Table:
        """A whole table, in memory."""
        import pyarrow as pa

        if name in self.tables:
            return self.tables[name]
        return pa.concat_tables([table_of([], self.spec.tables[name].schema), *self.batches(name)])

    @property
    def quality(self) -> list[dict[str, Any]]:
        """The losses as the manifest lists them: ``process``, ``loss``, ``count``."""
        names = [loss.name for loss in self.spec.counters]
        ledger = []
        for process in self._processes:
            counts: dict[str, int] = {}
            for index, count in enumerate(_losses(process, self.spec)):
                if count:
                    counts[names[index] if index < len(names) else f"cause_{index}"] = count
            if process.control is not None and not process.control.ended:
                counts["blocks_unkept"] = process.control.pending_unkept
            for name in ("records_torn", "segments_missing", "references_lost"):
                counts[name] = counts.get(name, 0) + getattr(process, name)
            ledger += [
                {"process": process.number, "loss": name, "count": min(count, MOST_INTEGER)}
                for name, count in counts.items()
                if count
            ]
        ledger += self._of_rows
        whole = {"records_torn": self._log.torn + self._texts_torn, "processes_unlisted": self._log.unlisted}
        for name, count in self._gpu.losses.items():
            whole[name] = whole.get(name, 0) + count
        return ledger + [{"process": None, "loss": name, "count": count} for name, count in whole.items() if count]

    @property
    def window_ns(self) -> int | None:
        """When the window began that the spool holds; None in the first, and where nothing is rotated."""
        return self._log.window_ns

    @property
    def clock(self) -> dict[str, int] | None:
        """The monotonic and the UTC time of one moment; None if no control file is left."""
        for process in self._processes:
            if process.control is not None:
                return {"monotonic_ns": process.control.start_ns, "utc_ns": process.control.start_utc_ns}
        return None

    @property
    def ended_ns(self) -> int | None:
        """The greatest monotonic time of any end of a process, of any row and span of one, and of the process log."""
        times: list[int | None] = [record.time_ns for record in self._log.records]
        for process in self._processes:
            times += [process.last_ns, process.control.end_ns if process.control is not None else None]
            times += [span.end_ns for span in process.spans.values()] + [state.time_ns for state in process.states]
        return max((each for each in times if each is not None and each > 0), default=None)

    @property
    def parameters(self) -> dict[str, Any]:
        """``sampler`` and ``interval_ns`` as the first process told them; ``gpu`` if GPUs were read."""
        meta = self._processes[0].meta if self._processes else {}
        parameters: dict[str, Any] = {name: meta[name] for name in ("sampler", "interval_ns") if name in meta}
        interval = str(parameters.pop("interval_ns", ""))
        if interval.isdecimal() and interval.isascii() and len(interval) < 19:
            parameters["interval_ns"] = int(interval)
        if self._gpu.devices:
            parameters["gpu"] = True
        return parameters

    @property
    def sampler_cost(self) -> dict[str, Any]:
        """CPU time and memory that the recorder used in the recorded processes, in all and for each."""
        processes: list[dict[str, Any]] = [
            {
                "process": process.number,
                "handler_cpu_ns": max(0, process.control.handler_cpu_ns - (before.handler_cpu_ns if before else 0)),
                "helper_cpu_ns": max(0, process.control.helper_cpu_ns - (before.helper_cpu_ns if before else 0)),
                "samples": max(0, process.control.samples - (before.samples if before else 0)),
                "wait_ticks": max(0, process.control.wait_ticks - (before.wait_ticks if before else 0)),
                "own_bytes": process.control.own_bytes or None,
            }
            for process in self._processes
            if process.control is not None
            for before in [process.carried]
        ]
        names = ("handler_cpu_ns", "helper_cpu_ns")
        total = {name: min(MOST_INTEGER, sum(entry[name] for entry in processes)) for name in names}
        return {**total, "processes": processes}


def assemble(
    spool: SpoolDirectory,
    spec: Specification,
    *,
    resolve: Resolve | None = None,
    read_source: ReadSource | None = None,
    identify_file: IdentifyFile | None = None,
    store_sources: bool = True,
    exit_statuses: Mapping[int, int] | None = None,
) -> Assembled:
    """Read a spool, living or dead, and give everything in it the recording's ids.

    ``resolve(path, file offsets)`` names native functions and their places in the source, and ``read_source(path)``
    reads source files, of which ``identify_file(path)`` tells those with several paths; they are given only on the
    recording machine, for the paths come from the recording. ``exit_statuses`` are by pid.

    Errors:
        FormatError: the spool cannot be listed, or is of a newer major version. Damage inside is counted in
            ``quality``.
    """
    log = spool.process_log()
    images = images_of(log)
    rows = rows_of(spool.processes(), images)
    log = log.without_records()
    chunks: dict[str, list[tuple[int, Chunk]]] = {name: [] for name in ROW_KINDS}
    processes: list[ProcessFacts] = []
    contexts, stack_ids = ContextTree(), []
    native_paths: list[NativePaths] = []
    for row in rows:
        if row.process is None:
            continue
        facts, pieces_by_table = read_process(spool, row.process, spec)
        facts.number = row.number
        for name, pieces in pieces_by_table.items():
            chunks[name] += [(len(processes), chunk) for chunk in pieces]
        processes.append(facts)
        native_paths.append(NativePaths(facts))
        stack_ids.append(contexts.add(facts))
        facts.forget_contexts()
    native = NativeFrames(processes)
    threads, thread_ids = threads_table(processes, map(native.ids, range(len(processes))), spec)
    maps, tree = ProcessMaps(), NativeTree()
    spans, span_ids = spans_table(processes, thread_ids, spec)
    for index, facts in enumerate(processes):
        remapped = native.remapped.get(index, {})
        paths = tree.add(native_paths[index], native.ids(index), stack_ids[index], remapped)
        maps.add(facts.number, thread_ids[index], stack_ids[index], paths, native.pairs[index], span_ids[index])
    gpu = read_gpu(spool, processes)
    texts, texts_torn = spool.told_texts()
    tables = {
        "processes": processes_table(
            rows, {facts.number: facts for facts in processes}, exit_statuses or {}, spec, log.window_ns
        ),
        "threads": threads,
        **contexts.tables(spec, SourceTexts(read_source, store_sources, texts, identify_file)),
        **native.tables(spec, resolve),
        "native_stacks": tree.table(spec),
        "spans": spans,
        "gpu_devices": gpu.devices_table(spec),
        "referrers": referrers_table(processes, stack_ids, spec),
    }
    final = FinalRows(spec, chunks, maps, native.remapped)
    return Assembled(spec, tables, final, processes, log, losses_of_rows(rows, images, log.window_ns), gpu, texts_torn)


def _losses(process: ProcessFacts, spec: Specification) -> list[int]:
    """The losses of a process in its window, by counter; lasting losses count in all later windows."""
    if process.control is None:
        return []
    lost = list(process.control.losses)
    for index, before in enumerate(process.carried.losses if process.carried is not None else ()):
        if index >= len(spec.counters) or not spec.counters[index].lasting:
            lost[index] = max(0, lost[index] - before)
    return lost


def spans_table(
    processes: Sequence[ProcessFacts], threads: Sequence[ThreadIds], spec: Specification
) -> tuple[pa.Table, list[dict[int, int]]]:
    """One row per span that ended, in the order of their beginning, and each process's ids of them for its rows.

    ``threads`` are the ids of ``threads_table``.

    Of a span whose own end was not recorded nothing is known, so it is no parent either.
    """
    spans = sorted(
        (span.start_ns, index, span.span, span)
        for index, process in enumerate(processes)
        for span in process.spans.values()
    )
    ids: list[dict[int, int]] = [{} for _ in processes]
    for row, (_, index, own, _) in enumerate(spans):
        ids[index][own] = row
    rows = []
    for row, (start_ns, index, _, span) in enumerate(spans):
        parent = ids[index].get(span.parent)
        rows.append(
            (
                row,
                # A child cannot begin before its parent; a record that says so is damaged.
                parent if parent is not None and parent < row else None,
                processes[index].number,
                threads[index][span.thread],
                clean_text(span.name),
                clean_text(span.fields) or None,
                start_ns,
                span.end_ns,
            )
        )
    for each in ids:
        each.pop(0, None)  # rows have 0 for none, and numbers were from 0 before version 1.5
    return table_of(rows, spec.tables["spans"].schema), ids


def write_recording(assembled: Assembled, directory: Path | str, uuid: str) -> dict[str, dict[str, Any]]:
    """Write the tables of recording ``uuid`` into ``directory``; returns the manifest's entry of each.

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
        written[name] = writer.entry
    return written


def finished_manifest(
    manifest: Manifest, assembled: Assembled, tables: dict[str, dict[str, Any]], state: str
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


def referrers_table(processes: Sequence[ProcessFacts], stacks: Sequence[IdNumbers], spec: Specification) -> pa.Table:
    """The links of chains of references, in the order of time; ``stacks`` are each process's ids of ``stacks``."""
    links = sorted(
        (link.time_ns, index, link.chain, link.link, link)
        for index, process in enumerate(processes)
        for link in process.referrers.values()
    )
    rows = [
        (
            time_ns,
            processes[index].number,
            chain,
            place,
            link.role,
            clean_text(link.type) or None,
            clean_text(link.name) or None,
            link.size_bytes,
            stacks[index].get(link.stack),
        )
        for time_ns, index, chain, place, link in links
    ]
    return table_of(rows, spec.tables["referrers"].schema)
