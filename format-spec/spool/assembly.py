"""Turns a spool into the tables of a recording: for finalising, for recovery, and for reading what a crash left."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..manifest import MOST_INTEGER
from ..schema import Specification
from .arrow_columns import column, scalar, table_of
from .block_lifetimes import LifetimesByProcess
from .codes_table import ReadSource, SourceTexts
from .contexts import ContextTree
from .directory import SpoolDirectory
from .gpu import GpuFacts, read_gpu
from .id_numbers import IdNumbers
from .images import images_of
from .kernels import call, is_in, sorted_by, total
from .layout import BLOCK_ROWS, FREED_ROWS, TOUCHED_ROWS
from .native_frames import NativeFrames, Resolve
from .native_tree import NativePaths, NativeTree
from .process_definitions import ProcessFacts
from .process_log import ProcessLog
from .process_reader import Chunk, read_process
from .processes import losses_of_rows, processes_table, rows_of
from .records import ROW_KINDS, TABLE_KINDS
from .row_kind import RowKind
from .rows import IdMaps, final_table, id_maps
from .spans_table import spans_table
from .threads_table import ThreadIds, threads_table

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS_AT_ONCE = 1 << 20
FEWEST_ROWS_AT_ONCE = 1 << 12


_MAPS_KEPT = 64
"""Processes whose maps stay ready: rows come in the order of time, so of those that lived at once."""


class _Maps:
    """How the rows of each process are translated; made when they are needed, as there may be thousands."""

    def __init__(self) -> None:
        self._of: list[
            tuple[int, ThreadIds, IdNumbers, tuple[array[int], array[int]], tuple[array[int], array[int]]]
        ] = []
        self._ready: dict[int, IdMaps] = {}

    def add(
        self,
        process: int,
        threads: ThreadIds,
        stacks: IdNumbers,
        native_stacks: tuple[array[int], array[int]],
        native_frames: tuple[array[int], array[int]],
    ) -> None:
        """Take over what is known of the next process, as ``id_maps`` does."""
        self._of.append((process, threads, stacks, native_stacks, native_frames))

    def __getitem__(self, index: int) -> IdMaps:
        # The one that was wanted last is the last to go.
        found = self._ready.pop(index, None) or id_maps(*self._of[index])
        self._ready[index] = found
        if len(self._ready) > _MAPS_KEPT:
            del self._ready[next(iter(self._ready))]
        return found


class Assembled:
    """The tables of a recording, made of a spool.

    ``tables`` are the dimension tables, ``quality`` the ledger of what was lost, ``clock``, ``sampler_cost``,
    ``parameters`` and ``ended_ns`` what the manifest wants to know.
    """

    def __init__(
        self,
        spec: Specification,
        tables: dict[str, pa.Table],
        chunks: dict[str, list[tuple[int, Chunk]]],
        maps: _Maps,
        remapped: Mapping[int, Mapping[int, list[tuple[int, int]]]],
        processes: list[ProcessFacts],
        log: ProcessLog,
        of_rows: list[dict[str, Any]],
        gpu: GpuFacts,
        texts_torn: int = 0,
    ) -> None:
        self.spec = spec
        self.tables = tables
        self._chunks = chunks
        self._maps = maps
        self._remapped = remapped
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
        import pyarrow as pa

        if name == "gpu":
            yield from self._gpu.batches(self.spec.tables[name].schema)
            return
        kind = TABLE_KINDS[name]
        chunks = sorted(self._chunks[kind.name], key=lambda item: item[1].first_ns)
        lifetimes = self._lifetimes() if kind is BLOCK_ROWS else None
        schema = self.spec.tables[name].schema
        pieces, waiting = [table_of([], schema)], 0
        for index, (process, chunk) in enumerate(chunks):
            for raw in chunk.read():
                born = raw if lifetimes is None else lifetimes.of(process).join(raw)
                pieces.append(self._final(kind, born, process, schema))
                waiting += raw.num_rows
            if lifetimes is not None:
                lifetimes.chunk_done(process)
            last = index + 1 == len(chunks)
            if waiting < FEWEST_ROWS_AT_ONCE and not last:
                continue
            merged = sorted_by(pa.concat_tables(pieces), [(kind.time, "ascending")])
            ready = merged.num_rows
            if not last:
                later = chunks[index + 1][1].first_ns
                ready = total(call("less", merged.column(kind.time), scalar(later, pa.int64())))
            for start in range(0, ready, MAX_ROWS_AT_ONCE):
                yield merged.slice(start, min(MAX_ROWS_AT_ONCE, ready - start))
            pieces, waiting = [merged.slice(ready)], 0

    def table(self, name: str) -> pa.Table:
        """A whole table, in memory."""
        import pyarrow as pa

        if name in self.tables:
            return self.tables[name]
        return pa.concat_tables([table_of([], self.spec.tables[name].schema), *self.batches(name)])

    @property
    def quality(self) -> list[dict[str, Any]]:
        """What was lost, as the manifest lists it: ``process``, ``loss``, ``count``."""
        names = [loss.name for loss in self.spec.losses]
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
        """Monotonic time of the last end of a process, or of the last row where none was seen."""
        ends = [process.control.end_ns for process in self._processes if process.control and process.control.end_ns > 0]
        lasts = [process.last_ns for process in self._processes if process.last_ns is not None and process.last_ns > 0]
        return max(ends or lasts, default=None)

    @property
    def parameters(self) -> dict[str, Any]:
        """``sampler`` and ``interval_ns`` as the first process told them; ``gpu`` if GPUs were read."""
        meta = self._processes[0].meta if self._processes else {}
        found: dict[str, Any] = {name: meta[name] for name in ("sampler", "interval_ns") if name in meta}
        interval = str(found.pop("interval_ns", ""))
        if interval.isdecimal() and interval.isascii() and len(interval) < 19:
            found["interval_ns"] = int(interval)
        if self._gpu.devices:
            found["gpu"] = True
        return found

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

    def _lifetimes(self) -> LifetimesByProcess:
        """What is known of sampled blocks beside their birth."""
        chunks = Counter(process for process, _ in self._chunks[BLOCK_ROWS.name])
        return LifetimesByProcess(chunks, *(self._chunks_by_process(kind) for kind in (FREED_ROWS, TOUCHED_ROWS)))

    def _chunks_by_process(self, kind: RowKind) -> dict[int, list[Chunk]]:
        """Where the rows of a kind are in the spool."""
        found: dict[int, list[Chunk]] = {}
        for process, chunk in self._chunks[kind.name]:
            found.setdefault(process, []).append(chunk)
        return found

    def _final(self, kind: RowKind, raw: pa.Table, process: int, schema: pa.Schema) -> pa.Table:
        final = final_table(kind, raw, self._maps[process], schema)
        remapped = self._remapped.get(process) if "pc" in raw.column_names else None
        return _with_remapped(kind, raw, final, remapped) if remapped else final


def assemble(
    spool: SpoolDirectory,
    spec: Specification,
    *,
    resolve: Resolve | None = None,
    read_source: ReadSource | None = None,
    store_sources: bool = True,
    exit_statuses: Mapping[int, int] | None = None,
) -> Assembled:
    """Read a spool, living or dead, and give everything in it the recording's ids.

    ``resolve(path, file offsets)`` names native functions and their places in the source, and ``read_source(path)``
    reads source files; both are given only on the recording machine, for the paths come from the recording.
    ``exit_statuses`` are by pid.

    Errors:
        FormatError: the spool cannot be listed, or is of a newer major version. Damage inside is counted in
            ``quality``.
    """
    log = spool.process_log()
    rows = rows_of(spool.processes(), images_of(log))
    log = log.without_records()
    chunks: dict[str, list[tuple[int, Chunk]]] = {name: [] for name in ROW_KINDS}
    processes: list[ProcessFacts] = []
    contexts, stack_ids = ContextTree(), []
    native_paths: list[NativePaths] = []
    for row in rows:
        if row.process is None:
            continue
        facts, found = read_process(spool, row.process, spec)
        facts.number = row.number
        for name, pieces in found.items():
            chunks[name] += [(len(processes), chunk) for chunk in pieces]
        processes.append(facts)
        native_paths.append(NativePaths(facts))
        stack_ids.append(contexts.add(facts))
        facts.forget_contexts()
    native = NativeFrames(processes)
    threads, thread_ids = threads_table(processes, map(native.ids, range(len(processes))), spec)
    maps, tree = _Maps(), NativeTree()
    for index, facts in enumerate(processes):
        paths = tree.add(native_paths[index], native.ids(index), stack_ids[index])
        maps.add(facts.number, thread_ids[index], stack_ids[index], paths, native.pairs[index])
    gpu = read_gpu(spool, processes)
    texts, texts_torn = spool.told_texts()
    tables = {
        "processes": processes_table(
            rows, {facts.number: facts for facts in processes}, exit_statuses or {}, spec, log.window_ns
        ),
        "threads": threads,
        **contexts.tables(spec, SourceTexts(read_source, store_sources, texts)),
        **native.tables(spec, resolve),
        "native_stacks": tree.table(spec),
        "spans": spans_table(processes, thread_ids, spec),
        "gpu_devices": gpu.devices_table(spec),
    }
    return Assembled(spec, tables, chunks, maps, native.remapped, processes, log, losses_of_rows(rows), gpu, texts_torn)


def _losses(process: ProcessFacts, spec: Specification) -> list[int]:
    """What a process has lost, by counter, in its window; what lasts counts from then on."""
    if process.control is None:
        return []
    lost = list(process.control.losses)
    for index, before in enumerate(process.carried.losses if process.carried is not None else ()):
        if index >= len(spec.losses) or not spec.losses[index].lasting:
            lost[index] = max(0, lost[index] - before)
    return lost


def _with_remapped(
    kind: RowKind, raw: pa.Table, final: pa.Table, remapped: Mapping[int, list[tuple[int, int]]]
) -> pa.Table:
    """The rows whose address was held by several modules, each with the module of its time."""
    import pyarrow as pa

    hit = is_in(raw.column("pc"), column(remapped, pa.uint64()))
    rows = call("filter", pa.table([raw.column("pc"), raw.column(kind.time)], names=["pc", "time"]), hit).to_pydict()
    frames = []
    for address, time_ns in zip(rows["pc"], rows["time"], strict=True):
        holders = remapped[address]
        at = bisect_right(holders, time_ns, key=lambda holder: holder[0])
        frames.append(holders[max(0, at - 1)][1])
    index = final.column_names.index("native_frame")
    frame = pa.chunked_array(
        [
            call(
                "replace_with_mask",
                final.column(index).combine_chunks(),
                hit.combine_chunks(),
                column(frames, pa.uint32()),
            )
        ]
    )
    return final.set_column(index, final.schema.field(index), frame)
