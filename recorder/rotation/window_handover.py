"""Windows of a recording that is rotated: what of the spool belongs to one that is closed, and what the next one needs.

Where a window ends, every process leaves its current segment. What came before belongs to it; in its place comes
a part that holds what later rows may refer to, the blocks that are still held, and the sums with which counters go on.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.format.enumerations import DOMAINS, MemoryEvent, StackState
from tachograph.format.errors import FormatError
from tachograph.format.spool.arrow_columns import scalar, table_of
from tachograph.format.spool.directory import ControlFile, Part, SpoolDirectory, SpoolProcess
from tachograph.format.spool.layout import (
    BLOCK,
    BLOCK_ROWS,
    CARRIED,
    CPU_ROWS,
    FREED_ROWS,
    GENERATION,
    KEPT,
    MEMORY_ROWS,
    NONE,
    REFERRER,
    SPAN,
    STATE,
    THREAD_CARRIED,
    THREAD_END,
    THREAD_NAME,
    THREAD_ORIGIN,
    THREAD_START,
    TOUCHED_ROWS,
    Carried,
    ThreadCarried,
)
from tachograph.format.spool.parts import part_definitions, part_rows, whole_part
from tachograph.format.spool.process_definitions import ProcessFacts
from tachograph.format.spool.process_log import ProcessLog
from tachograph.format.spool.records import ROW_KINDS, carried_body, thread_carried_body
from tachograph.format.spool.row_kind import RowKind
from tachograph.format.spool.rows import mentioned, raw_table
from tachograph.format.spool.segment import Segment, bodies_of, definitions_of, rows_until
from tachograph.recorder.collect.removal import remove_part
from tachograph.recorder.rotation.needed_contexts import CONTEXT_KINDS, NeededContexts

if TYPE_CHECKING:
    import pyarrow as pa

_OF_THREADS = (THREAD_START, THREAD_NAME, THREAD_END, THREAD_ORIGIN)
_OF_ONE_WINDOW = (SPAN, REFERRER, STATE, CARRIED, THREAD_CARRIED, GENERATION, KEPT)
_LATE_NS = 10_000_000_000
"""How long after the end of a thread a row may be written that names it, such as one of a block that it allocated."""


@dataclass(frozen=True)
class WindowCut:
    """The part of a process in a window that is being closed: up to segment ``last`` (-1: nothing new).

    ``control`` has the counters at that moment, ``over`` says that the process writes no more.
    """

    last: int
    control: ControlFile | None
    over: bool

    @property
    def goes_on(self) -> bool:
        """True if a part of what the process writes belongs to the window, and the rest to the next one."""
        return self.last >= 0 and not self.over


class ClosedSpool(SpoolDirectory):
    """The part of a spool that belongs to a window which is being closed, by the prefixes of its processes.

    ``end_ns`` is the end of the window, ``gpu_before`` the first segment of GPU readings that lies behind it.
    """

    def __init__(self, path: Path | str, turned: Mapping[str, WindowCut], end_ns: int, gpu_before: int) -> None:
        super().__init__(path)
        self._turned = turned
        self._end_ns = end_ns
        self._gpu_before = gpu_before

    def processes(self, without: Container[str] = ()) -> list[SpoolProcess]:
        """The processes that had begun, each as if it had written nothing else."""
        processes = []
        for process in super().processes(without):
            turned = self._turned.get(process.prefix)
            if turned is None:
                continue
            process.later = [seq for seq in process.segments if seq > turned.last]
            process.segments = [seq for seq in process.segments if seq <= turned.last]
            process.parts = self._within(process.prefix, process.parts)
            process.until_ns = self._end_ns if turned.goes_on else None
            if turned.control is not None:
                last = max([turned.last, *(part.last for part in process.parts)])
                process.control = turned.control._replace(current_segment=last)
            processes.append(process)
        return processes

    def parts(self, prefix: str) -> list[Part]:
        """The parts of a process, listed now."""
        return self._within(prefix, super().parts(prefix))

    def pending_blocks(self, prefix: str) -> bytes:
        """Of a process that goes on, the blocks from before the end of the window that have no row yet."""
        turned = self._turned.get(prefix)
        if turned is None or not (turned.over or turned.goes_on):
            return b""
        pending = super().pending_blocks(prefix)
        return pending if turned.over else rows_until(pending, BLOCK, self._end_ns)

    def gpu_segments(self) -> list[int]:
        """The numbers of the segments of GPU readings, in order."""
        return [seq for seq in super().gpu_segments() if seq < self._gpu_before]

    def process_log(self) -> ProcessLog:
        """The process log up to the end of the window."""
        log = super().process_log()
        return replace(log, records=tuple(record for record in log.records if record.time_ns <= self._end_ns))

    def _within(self, prefix: str, parts: Sequence[Part]) -> list[Part]:
        turned = self._turned.get(prefix)
        return [part for part in parts if part.window or (turned is not None and part.last <= turned.last)]


def write_carry(
    process: SpoolProcess, last: int, window: int, start_ns: int, control: ControlFile, parts_path: Path
) -> Path:
    """Make the part that stands for the segments of ``process`` up to ``last`` in ``window``, which began ``start_ns``.

    ``control`` has the counters as they were then. The part appears at once and whole; what it stands for is removed by
    ``remove_carried``.

    Errors:
        OSError: it cannot be written; nothing is left of it.
        FormatError: something that it is made of cannot be read.
    """
    import pyarrow as pa

    path = parts_path / f"{process.prefix}.000000-{last:06}.{window}"
    if path.is_dir():
        return path
    carried = Carried(
        start_ns, control.helper_cpu_ns, control.handler_cpu_ns, control.samples, control.wait_ticks, control.losses
    )
    try:
        source = _Source(process, last)
        rows = _carried_rows(source, start_ns)
        bodies = _carried_definitions(source, rows, carried)
        whole_part(path, rows, definitions_of(process.pid, process.start_ns, bodies))
    except pa.ArrowException as error:
        raise FormatError(f"what process {process.pid} carries over cannot be put together: {error}") from error
    return path


def remove_carried(spool: SpoolDirectory, prefix: str, last: int, window: int) -> None:
    """Remove what the part of :func:`write_carry` stands for.

    Errors:
        OSError: it cannot be removed.
    """
    process = SpoolProcess(prefix, spool.path)
    for part in spool.all_parts(prefix):
        if part.last <= last and part.window != window:
            remove_part(part.path)
    for path in spool.path.glob(f"{prefix}.*.seg"):
        sequence = path.name.split(".")[-2]
        if sequence.isdecimal() and int(sequence) <= last:
            process.segment_path(int(sequence)).unlink(missing_ok=True)


def remove_process(spool: SpoolDirectory, prefix: str) -> None:
    """Remove all that a process left which is over, once the window in which it ended is closed.

    Errors:
        OSError: it cannot be removed.
    """
    for part in spool.all_parts(prefix):
        remove_part(part.path)
    for path in [*spool.path.glob(f"{prefix}.*.seg"), spool.path / f"{prefix}.ctl"]:
        path.unlink(missing_ok=True)


class _Source:
    """The parts and segments of a process up to one."""

    def __init__(self, process: SpoolProcess, last: int) -> None:
        self.parts = [part for part in process.parts if part.last <= last]
        self.segments = []
        for sequence in process.segments:
            if sequence <= last:
                try:
                    self.segments.append(process.segment(sequence))
                except FormatError:
                    continue  # counted as missing in the window that it belongs to
        self.facts = ProcessFacts(process.prefix, process.pid, process.start_ns, process.control)
        self._definitions = [*map(part_definitions, self.parts), *self.segments]
        for segment in self._definitions:
            self.facts.add(segment, contexts=False)

    def definitions(self) -> Sequence[Segment]:
        return self._definitions

    def tables(self, kind: RowKind, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        for part in self.parts:
            yield from part_rows(part, kind, columns)
        for segment in self.segments:
            table = raw_table(kind, segment.rows(kind.kind))
            yield table if columns is None else table.select(columns)

    def whole(self, kind: RowKind) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([table_of([], kind.raw_schema), *self.tables(kind)])


def _carried_rows(source: _Source, start_ns: int) -> dict[str, pa.Table]:
    blocks, freed = _carried_blocks(source)
    tables = {kind.name: table_of([], kind.raw_schema) for kind in ROW_KINDS.values()}
    memory, touched = _opening(source.whole(MEMORY_ROWS), start_ns), _last_looks(source.whole(TOUCHED_ROWS), blocks)
    return {**tables, "blocks": blocks, "freed": freed, "memory": memory, "touched": touched}


def _carried_blocks(source: _Source) -> tuple[pa.Table, pa.Table]:
    """The blocks that are still held, and the releases of blocks that are still to be written."""
    import pyarrow.compute as pc

    blocks, freed = source.whole(BLOCK_ROWS), source.whole(FREED_ROWS)
    dead = pc.is_in(blocks.column("block"), value_set=freed.column("block").combine_chunks())
    followed = pc.equal(blocks.column("followed"), scalar(1, BLOCK_ROWS.raw_schema.field("followed").type))
    early = pc.invert(pc.is_in(freed.column("block"), value_set=blocks.column("block").combine_chunks()))
    before = source.facts.carried
    if before is not None:
        # A birth is written within seconds: one that has not come for a whole window was lost.
        early = pc.and_(
            early, pc.greater_equal(freed.column("time_ns"), scalar(before.start_ns, freed.column("time_ns").type))
        )
    return blocks.filter(pc.and_(followed, pc.invert(dead))), freed.filter(early)


def _last_looks(touched: pa.Table, blocks: pa.Table) -> pa.Table:
    """The last page scan of each block that is still held."""
    import pyarrow.compute as pc

    touched = touched.filter(pc.is_in(touched.column("block"), value_set=blocks.column("block").combine_chunks()))
    touched = touched.sort_by([("time_ns", "descending")])
    blocks_in_order = touched.column("block").combine_chunks()
    return touched.take(pc.index_in(blocks_in_order.unique(), value_set=blocks_in_order))


def _opening(memory: pa.Table, start_ns: int) -> pa.Table:
    """The row that opens the counters of the window: what is held, by domain, as if it had been found there."""
    import pyarrow.compute as pc

    schema = MEMORY_ROWS.raw_schema
    if not memory.num_rows:
        return table_of([], schema)
    last = memory.sort_by("time_ns").slice(memory.num_rows - 1).to_pylist()[0]
    row = dict(last, time_ns=start_ns, event=MemoryEvent.START, stack_state=StackState.NONE, kept_frames=NONE)
    row |= {"thread": NONE, "stack": NONE, "pc": 0, "peak_bytes": last["footprint_bytes"]}
    for domain in DOMAINS:
        allocated, freed = (pc.sum(memory.column(f"{domain}_{what}_bytes")).as_py() for what in ("allocated", "freed"))
        row[f"{domain}_allocated_bytes"], row[f"{domain}_freed_bytes"] = (
            max(allocated - freed, 0),
            max(freed - allocated, 0),
        )
    return table_of([tuple(row[name] for name in schema.names)], schema)


def _carried_definitions(
    source: _Source, rows: Mapping[str, pa.Table], carried: Carried
) -> Iterator[tuple[int, bytes]]:
    """All but what is of one window, and but threads that are over and that no row names or will name."""
    named = mentioned(rows["blocks"], "thread", NONE) | mentioned(rows["freed"], "thread", NONE)
    ended = source.facts.threads.ends()
    gone = {number for number, end in ended.items() if end.time_ns < carried.start_ns - _LATE_NS} - named
    yield CARRIED, carried_body(carried)
    # Of a thread that has ended all was told, also what is in no sample.
    earlier = _sampled(source) | {number: end.cpu_ns for number, end in ended.items()}
    for thread, cpu_ns in earlier.items():
        if thread not in gone:
            yield THREAD_CARRIED, thread_carried_body(ThreadCarried(thread, cpu_ns))
    contexts = NeededContexts(source.definitions(), rows, carried.start_ns)
    yield from contexts.generation()
    written: set[tuple[int, bytes]] = set()
    for segment in source.definitions():
        for kind, body in bodies_of(segment):
            if kind in _OF_ONE_WINDOW or (kind in _OF_THREADS and int.from_bytes(body[:4], "little") in gone):
                continue
            if kind in CONTEXT_KINDS:
                if contexts.needs(kind, body):
                    yield kind, body
                continue
            # Of what is told again and again, such as names, once is enough.
            if (kind, body) not in written:
                written.add((kind, body))
                yield kind, body


def _sampled(source: _Source) -> dict[int, int]:
    """CPU time in samples up to here, by thread; -1 where samples are not of their thread alone."""
    sums = source.facts.threads.earlier_cpu_ns()
    own = source.facts.meta.get("sampler") != "signal"
    for table in source.tables(CPU_ROWS, ["time_ns", "thread", "cpu_ns"]):
        grouped = table.group_by("thread").aggregate([("cpu_ns", "sum")])
        for thread, cpu_ns in zip(
            grouped.column("thread").to_pylist(), grouped.column("cpu_ns_sum").to_pylist(), strict=True
        ):
            sums[thread] = sums.get(thread, 0) + cpu_ns if own else -1
    return sums


__all__ = ["ClosedSpool", "WindowCut", "remove_carried", "remove_process", "write_carry"]
