"""Rows of the spool as rows of the recording: in the order of time, with the recording's ids, a piece at a time.

Births of sampled blocks are joined with the records of their release and of their pages, in whichever part of the spool
these are. The rows of short processes are translated together in Python: there may be thousands of these processes with
a few rows each, and Arrow would take fifty calls for each table of each, as long as for a thousand rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from ..schema import Specification
from .arrow_columns import bounds, call, column, index_in, is_in, numbers_in, scalar, sorted_by, table_of, total
from .id_numbers import IdNumbers
from .layout import BLOCK_ROWS, FREED_ROWS, TOUCHED_ROWS
from .native_frames import frame_at
from .process_reader import Chunk
from .records import TABLE_KINDS
from .row_kind import Referred, RowKind
from .rows import FEW_KEYS, IdMaps, final_table, id_maps, raw_table, values_of
from .threads_table import ThreadIds

if TYPE_CHECKING:
    import pyarrow as pa

    from .process_reader import Chunk


MAX_ROWS_AT_ONCE = 1 << 20
FEWEST_ROWS_AT_ONCE = 1 << 12

_MAPS_KEPT = 64
"""Processes whose maps stay ready: rows come in the order of time, so of those that lived at once."""

Holders = Mapping[int, list[tuple[int, int]]]
"""For each address that several modules held the time from which each did, and its native frame there."""

_Lives = list[dict[int, list[Chunk]]]
"""What FREED and TOUCHED records say of sampled blocks: by process, for either kind."""


class ProcessMaps:
    """Maps from each process's ids to the recording's; made on demand, as there may be thousands of processes."""

    def __init__(self) -> None:
        self._of: list[
            tuple[int, ThreadIds, IdNumbers, tuple[array[int], array[int]], tuple[array[int], array[int]], IdNumbers]
        ] = []
        self._ready: dict[int, IdMaps] = {}

    def add(
        self,
        process: int,
        threads: ThreadIds,
        stacks: IdNumbers,
        native_stacks: tuple[array[int], array[int]],
        native_frames: tuple[array[int], array[int]],
        spans: IdNumbers,
    ) -> None:
        """Take over what is known of the next process, as ``id_maps`` does."""
        self._of.append((process, threads, stacks, native_stacks, native_frames, spans))

    def __getitem__(self, index: int) -> IdMaps:
        # The one that was wanted last is the last to go.
        maps = self._ready.pop(index, None) or id_maps(*self._of[index])
        self._ready[index] = maps
        if len(self._ready) > _MAPS_KEPT:
            del self._ready[next(iter(self._ready))]
        return maps

    def number(self, index: int) -> int:
        """The id of a process in the recording."""
        return self._of[index][0]

    def few(self, index: int) -> FewIds | None:
        """The maps of a process as dictionaries, where they are small."""
        _, threads, stacks, native_stacks, native_frames, spans = self._of[index]
        sizes = map(len, (threads.keys, native_stacks[0], native_frames[0]))
        if not isinstance(stacks, dict) or not isinstance(spans, dict):
            return None
        if max(len(stacks), len(spans), *sizes) > FEW_KEYS:
            return None
        return {
            "thread": {key: threads.first + place for place, key in enumerate(numbers_in(threads.keys))},
            "stack": stacks,
            "native_stack": dict(zip(*native_stacks, strict=True)),
            "pc": dict(zip(*native_frames, strict=True)),
            "span": spans,
        }


@dataclass(frozen=True)
class _Group:
    """Chunks that are translated together: one of any process, or some of short ones, with their first time."""

    first_ns: int
    chunks: list[tuple[int, Chunk]]
    short: list[FewRows]


class FinalRows:
    """The rows of all processes. ``chunks`` are by kind, with the place of their process in ``maps``."""

    def __init__(
        self,
        spec: Specification,
        chunks: Mapping[str, list[tuple[int, Chunk]]],
        maps: ProcessMaps,
        remapped: Mapping[int, Holders],
    ) -> None:
        self._spec = spec
        self._chunks = chunks
        self._maps = maps
        self._remapped = remapped

    def batches(self, name: str) -> Iterator[pa.Table]:
        """The rows of a table, in exact order of time, a bounded piece at a time.

        Errors:
            FormatError: a part has been changed or removed since.
        """
        import pyarrow as pa

        kind, schema = TABLE_KINDS[name], self._spec.tables[name].schema
        lives = [self._chunks_by_process(each) for each in (FREED_ROWS, TOUCHED_ROWS)] if kind is BLOCK_ROWS else None
        lifetimes = self._lifetimes(lives) if lives is not None else None
        pieces, waiting = [table_of([], schema)], 0
        for group, following in pairwise(chain(self._groups(kind, lives), [None])):
            assert group is not None
            for final in self._translated(kind, group, lifetimes, schema):
                pieces.append(final)
                waiting += final.num_rows
            if waiting < FEWEST_ROWS_AT_ONCE and following is not None:
                continue
            merged = sorted_by(pa.concat_tables(pieces), [(kind.time, "ascending")])
            ready = merged.num_rows
            if following is not None:
                later = scalar(following.first_ns, pa.int64())
                ready = total(call("less", merged.column(kind.time), later))
            for start in range(0, ready, MAX_ROWS_AT_ONCE):
                yield merged.slice(start, min(MAX_ROWS_AT_ONCE, ready - start))
            pieces, waiting = [merged.slice(ready)], 0

    def _groups(self, kind: RowKind, lives: _Lives | None) -> Iterator[_Group]:
        """All chunks of a kind in the order of their first times, those of short processes as many as fit together."""
        together, rows = _Group(0, [], []), 0
        for index, chunk in sorted(self._chunks[kind.name], key=lambda item: item[1].first_ns):
            few = self._few_rows(kind, index, chunk, lives)
            if together.chunks and (few is None or rows + few.rows > FEWEST_ROWS_AT_ONCE):
                yield together
                together, rows = _Group(0, [], []), 0
            if few is None:
                yield _Group(chunk.first_ns, [(index, chunk)], [])
                continue
            if not together.chunks:
                together = _Group(chunk.first_ns, [], [])
            together.chunks.append((index, chunk))
            together.short.append(few)
            rows += few.rows
        if together.chunks:
            yield together

    def _few_rows(self, kind: RowKind, index: int, chunk: Chunk, lives: _Lives | None) -> FewRows | None:
        """A chunk prepared for translation in Python; None if the chunk, or the records of its blocks, are not few."""
        records = chunk.few
        if records is None or index in self._remapped:
            return None
        blocks = NO_BLOCKS
        if lives is not None:
            records_by_kind = [[other.few for other in by_process.get(index, ())] for by_process in lives]
            freed, touched = ([some for some in every if some is not None] for every in records_by_kind)
            if len(freed) + len(touched) < sum(map(len, records_by_kind)):
                return None
            blocks = few_blocks(freed, touched)
        ids = self._maps.few(index)
        if ids is None:
            return None
        return FewRows(records, len(records) // kind.length, self._maps.number(index), ids, blocks)

    def _translated(
        self, kind: RowKind, group: _Group, lifetimes: LifetimesByProcess | None, schema: pa.Schema
    ) -> Iterator[pa.Table]:
        """The rows of a group; those of one chunk in the order of the spool."""
        if group.short:
            many = ManyProcesses(group.short)
            raw = raw_table(kind, b"".join([piece.records for piece in group.short]))
            yield final_table(kind, raw if lifetimes is None else many.join(raw), many, schema)
        else:
            for index, chunk in group.chunks:
                for raw in chunk.read():
                    born = raw if lifetimes is None else lifetimes.of(index).join(raw)
                    yield self._final(kind, born, index, schema)
        if lifetimes is not None:
            for index, _ in group.chunks:
                lifetimes.chunk_done(index)

    def _lifetimes(self, lives: _Lives) -> LifetimesByProcess:
        """The releases and touched pages of sampled blocks."""
        chunks = Counter(process for process, _ in self._chunks[BLOCK_ROWS.name])
        return LifetimesByProcess(chunks, *lives)

    def _chunks_by_process(self, kind: RowKind) -> dict[int, list[Chunk]]:
        """Where the rows of a kind are in the spool."""
        chunks: dict[int, list[Chunk]] = {}
        for process, chunk in self._chunks[kind.name]:
            chunks.setdefault(process, []).append(chunk)
        return chunks

    def _final(self, kind: RowKind, raw: pa.Table, process: int, schema: pa.Schema) -> pa.Table:
        final = final_table(kind, raw, self._maps[process], schema)
        remapped = self._remapped.get(process) if "pc" in raw.column_names else None
        return _with_remapped(kind, raw, final, remapped) if remapped else final


def _with_remapped(kind: RowKind, raw: pa.Table, final: pa.Table, remapped: Holders) -> pa.Table:
    """The rows whose address was held by several modules, each with the module of its time."""
    import pyarrow as pa

    hit = is_in(raw.column("pc"), column(remapped, pa.uint64()))
    rows = call("filter", pa.table([raw.column("pc"), raw.column(kind.time)], names=["pc", "time"]), hit).to_pydict()
    times = zip(rows["pc"], rows["time"], strict=True)
    frames = [frame_at(remapped[address], time_ns) for address, time_ns in times]
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


FewIds = Mapping[Referred, Mapping[int, int]]
"""From the spool's ids and addresses of a process to the recording's ids."""


@dataclass(frozen=True)
class FewBlocks:
    """The sampled blocks of a short process: which were freed, and which were touched.

    ``freed`` has the time and the thread of each release; if a block seems to have been released twice the first time
    counts. ``touched`` are the blocks that were looked at.
    """

    freed: Mapping[int, tuple[int, int]]
    touched: frozenset[int]


NO_BLOCKS = FewBlocks({}, frozenset())

_HELD = (None, None)


def few_blocks(freed: Iterable[bytes], touched: Iterable[bytes]) -> FewBlocks:
    """The blocks of FREED and of TOUCHED records; each ``bytes`` holds several records."""
    releases: dict[int, tuple[int, int]] = {}
    for records in freed:
        blocks, times, threads = (values_of(FREED_ROWS, records, name) for name in ("block", "time_ns", "thread"))
        for block, time_ns, thread in zip(blocks, times, threads, strict=True):
            if block not in releases or time_ns < releases[block][0]:
                releases[block] = (time_ns, thread)
    looks = (block for records in touched for block in values_of(TOUCHED_ROWS, records, "block"))
    return FewBlocks(releases, frozenset(looks))


@dataclass(frozen=True)
class FewRows:
    """Some rows of a short process, which are joined records: how many, and what its ids and blocks stand for.

    ``process`` is its id in the recording.
    """

    records: bytes
    rows: int
    process: int
    ids: FewIds
    blocks: FewBlocks = NO_BLOCKS


class ManyProcesses:
    """The translation of the rows of some short processes, one after another."""

    def __init__(self, pieces: Sequence[FewRows]) -> None:
        self._pieces = pieces

    def processes(self, rows: int) -> pa.Array:
        """The process of each of ``rows`` rows, which are all there are."""
        import pyarrow as pa

        return column([piece.process for piece in self._pieces for _ in range(piece.rows)], pa.uint32())

    def of(self, to: Referred, ids: pa.ChunkedArray) -> pa.ChunkedArray:
        """The recording's id of each row's id; null where there is none."""
        import pyarrow as pa

        numbers = ids.to_pylist()
        new: list[int | None] = []
        for piece, start, end in self._places():
            new += map(piece.ids[to].get, numbers[start:end])
        return pa.chunked_array([column(new, pa.uint32())])

    def join(self, births: pa.Table) -> pa.Table:
        """Adds the lifetimes to the births of all these processes, as ``Lifetimes.join`` does for one."""
        import pyarrow as pa

        blocks = births.column("block").to_pylist()
        ends: list[tuple[int | None, int | None]] = []
        blocks_or_null: list[int | None] = []
        for piece, start, end in self._places():
            ends += [piece.blocks.freed.get(block, _HELD) for block in blocks[start:end]]
            blocks_or_null += [block if block in piece.blocks.touched else None for block in blocks[start:end]]
        index = births.column_names.index("block")
        births = births.set_column(index, "block", column(blocks_or_null, pa.uint32()))
        times, threads = zip(*ends, strict=True)
        return births.append_column("freed_ns", column(times, pa.int64())).append_column(
            "freed_thread", column(threads, pa.uint32())
        )

    def _places(self) -> Iterator[tuple[FewRows, int, int]]:
        """Each piece, and where its rows begin and end."""
        start = 0
        for piece in self._pieces:
            yield piece, start, start + piece.rows
            start += piece.rows


class Lifetimes:
    """All releases of sampled blocks of one process, and which blocks were looked at: 16 bytes in memory for each.

    They are ordered by block, so that some births need to be looked up only among the deaths of their own range.
    """

    def __init__(self, freed: Iterable[pa.Table], touched: Iterable[pa.Table]) -> None:
        """``freed`` are tables of FREED records, ``touched`` of TOUCHED records."""
        import pyarrow as pa

        whole = pa.concat_tables([table_of([], FREED_ROWS.raw_schema), *freed])
        order = [("block", "ascending"), ("time_ns", "ascending")]
        self._columns = {
            name: values.combine_chunks()
            for name, values in zip(whole.column_names, sorted_by(whole, order).columns, strict=True)
        }
        looks = pa.concat_tables([table_of([], TOUCHED_ROWS.raw_schema), *touched])
        self._touched = call("unique", looks.column("block").combine_chunks())
        self._blocks = memoryview(self._columns["block"].buffers()[1] or b"").cast("I")[: whole.num_rows]

    def join(self, births: pa.Table) -> pa.Table:
        """BLOCK records with the columns ``freed_ns`` and ``freed_thread``, null where a block was not released.

        ``block`` is null where a block was not looked at. If a block seems to have been released twice the first time
        counts.
        """
        blocks = births.column("block")
        first = last = 0
        if births.num_rows:
            lowest, highest = bounds(blocks)
            first, last = bisect_left(self._blocks, lowest), bisect_right(self._blocks, highest)
        near = {name: values.slice(first, last - first) for name, values in self._columns.items()}
        places = index_in(blocks, near["block"])
        index = births.column_names.index("block")
        blocks_or_null = call("if_else", is_in(blocks, self._touched), blocks, scalar(None, blocks.type))
        births = births.set_column(index, "block", blocks_or_null)
        return births.append_column("freed_ns", call("take", near["time_ns"], places)).append_column(
            "freed_thread", call("take", near["thread"], places)
        )


class LifetimesByProcess:
    """The lifetimes of each process: made for its first births, dropped after its last, as there may be thousands.

    ``births`` tells how many chunks of births a process has; ``freed`` and ``touched`` are the chunks of the others.
    """

    def __init__(
        self, births: Mapping[int, int], freed: Mapping[int, Sequence[Chunk]], touched: Mapping[int, Sequence[Chunk]]
    ) -> None:
        self._left = dict(births)
        self._freed, self._touched = freed, touched
        self._known: dict[int, Lifetimes] = {}

    def of(self, process: int) -> Lifetimes:
        """The lifetimes of one process."""
        lifetimes = self._known.get(process)
        if lifetimes is None:
            lifetimes = self._known[process] = Lifetimes(
                *(
                    chain.from_iterable(chunk.read() for chunk in chunks.get(process, ()))
                    for chunks in (self._freed, self._touched)
                )
            )
        return lifetimes

    def chunk_done(self, process: int) -> None:
        """Note that one chunk of births of a process was joined to the end."""
        self._left[process] -= 1
        if not self._left[process]:
            self._known.pop(process, None)
