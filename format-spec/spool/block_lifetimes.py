"""Joins the births of sampled blocks with what other records say of them, in any later or earlier part of the spool."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from .arrow_columns import scalar, table_of
from .kernels import bounds, call, index_in, is_in, sorted_by
from .layout import FREED_ROWS, TOUCHED_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

    from .process_reader import Chunk


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
        found = index_in(blocks, near["block"])
        index = births.column_names.index("block")
        told = call("if_else", is_in(blocks, self._touched), blocks, scalar(None, blocks.type))
        births = births.set_column(index, "block", told)
        return births.append_column("freed_ns", call("take", near["time_ns"], found)).append_column(
            "freed_thread", call("take", near["thread"], found)
        )


class LifetimesByProcess:
    """Those of each process, made when its first births are read and dropped after its last: there may be thousands.

    ``births`` tells how many chunks of births a process has; ``freed`` and ``touched`` are the chunks of the others.
    """

    def __init__(
        self, births: Mapping[int, int], freed: Mapping[int, Sequence[Chunk]], touched: Mapping[int, Sequence[Chunk]]
    ) -> None:
        self._left = dict(births)
        self._freed, self._touched = freed, touched
        self._known: dict[int, Lifetimes] = {}

    def of(self, process: int) -> Lifetimes:
        """Those of one process."""
        found = self._known.get(process)
        if found is None:
            found = self._known[process] = Lifetimes(
                *(
                    chain.from_iterable(chunk.read() for chunk in chunks.get(process, ()))
                    for chunks in (self._freed, self._touched)
                )
            )
        return found

    def chunk_done(self, process: int) -> None:
        """Note that one chunk of births of a process was joined to the end."""
        self._left[process] -= 1
        if not self._left[process]:
            self._known.pop(process, None)
