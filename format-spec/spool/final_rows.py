"""Rows of the spool as rows of the recording: in the order of time, with the recording's ids, a piece at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from ..schema import Specification
from .arrow_columns import column, numbers_in, scalar, table_of
from .block_lifetimes import LifetimesByProcess
from .id_numbers import IdNumbers
from .kernels import call, is_in, sorted_by, total
from .layout import BLOCK_ROWS, FREED_ROWS, TOUCHED_ROWS
from .process_reader import Chunk
from .records import TABLE_KINDS
from .row_kind import RowKind
from .rows import FEW_KEYS, IdMaps, final_table, id_maps, raw_table
from .short_processes import NO_BLOCKS, FewIds, FewRows, ManyProcesses, few_blocks
from .threads_table import ThreadIds

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS_AT_ONCE = 1 << 20
FEWEST_ROWS_AT_ONCE = 1 << 12

_MAPS_KEPT = 64
"""Processes whose maps stay ready: rows come in the order of time, so of those that lived at once."""

Holders = Mapping[int, list[tuple[int, int]]]
"""For each address that several modules held the time from which each did, and its native frame there."""


_Lives = list[dict[int, list[Chunk]]]
"""What FREED and TOUCHED records say of sampled blocks: by process, for either kind."""


class ProcessMaps:
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

    def number(self, index: int) -> int:
        """The id of a process in the recording."""
        return self._of[index][0]

    def few(self, index: int) -> FewIds | None:
        """The same as dictionaries, where they are small."""
        _, threads, stacks, native_stacks, native_frames = self._of[index]
        sizes = map(len, (threads.keys, native_stacks[0], native_frames[0]))
        if not isinstance(stacks, dict) or max(len(stacks), *sizes) > FEW_KEYS:
            return None
        return {
            "thread": {key: threads.first + place for place, key in enumerate(numbers_in(threads.keys))},
            "stack": stacks,
            "native_stack": dict(zip(*native_stacks, strict=True)),
            "pc": dict(zip(*native_frames, strict=True)),
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
        """What is needed to translate a chunk in Python; None where it is not small, or what belongs to it is not."""
        records = chunk.few
        if records is None or index in self._remapped:
            return None
        blocks = NO_BLOCKS
        if lives is not None:
            found = [[other.few for other in known.get(index, ())] for known in lives]
            freed, touched = ([some for some in every if some is not None] for every in found)
            if len(freed) + len(touched) < sum(map(len, found)):
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
        """What is known of sampled blocks beside their birth."""
        chunks = Counter(process for process, _ in self._chunks[BLOCK_ROWS.name])
        return LifetimesByProcess(chunks, *lives)

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


def _with_remapped(kind: RowKind, raw: pa.Table, final: pa.Table, remapped: Holders) -> pa.Table:
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
