"""The rows of short processes: there may be thousands, each with a few rows, which are translated together in Python.

By Arrow each would take fifty calls for each table, and as long as a thousand rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arrow_columns import column
from .layout import FREED_ROWS, TOUCHED_ROWS
from .row_kind import Referred
from .rows import values_of

if TYPE_CHECKING:
    import pyarrow as pa

FewIds = Mapping[Referred, Mapping[int, int]]
"""From the spool's ids and addresses of a process to the recording's ids."""


@dataclass(frozen=True)
class FewBlocks:
    """What is known of the sampled blocks of a short process.

    ``freed`` has the time and the thread of each release; if a block seems to have been released twice the first time
    counts. ``touched`` are the blocks that were looked at.
    """

    freed: Mapping[int, tuple[int, int]]
    touched: frozenset[int]


NO_BLOCKS = FewBlocks({}, frozenset())
_HELD = (None, None)


def few_blocks(freed: Iterable[bytes], touched: Iterable[bytes]) -> FewBlocks:
    """What joined FREED records and joined TOUCHED records say."""
    found: dict[int, tuple[int, int]] = {}
    for records in freed:
        blocks, times, threads = (values_of(FREED_ROWS, records, name) for name in ("block", "time_ns", "thread"))
        for block, time_ns, thread in zip(blocks, times, threads, strict=True):
            if block not in found or time_ns < found[block][0]:
                found[block] = (time_ns, thread)
    looks = (block for records in touched for block in values_of(TOUCHED_ROWS, records, "block"))
    return FewBlocks(found, frozenset(looks))


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
        found: list[int | None] = []
        for piece, start, end in self._places():
            found += map(piece.ids[to].get, numbers[start:end])
        return pa.chunked_array([column(found, pa.uint32())])

    def join(self, births: pa.Table) -> pa.Table:
        """What ``Lifetimes.join`` does, for the rows of all these processes."""
        import pyarrow as pa

        blocks = births.column("block").to_pylist()
        ends: list[tuple[int | None, int | None]] = []
        told: list[int | None] = []
        for piece, start, end in self._places():
            ends += [piece.blocks.freed.get(block, _HELD) for block in blocks[start:end]]
            told += [block if block in piece.blocks.touched else None for block in blocks[start:end]]
        index = births.column_names.index("block")
        births = births.set_column(index, "block", column(told, pa.uint32()))
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
