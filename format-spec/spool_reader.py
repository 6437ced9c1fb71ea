"""Reads all that the spool holds of one process, from its parts and from its segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .definitions import ProcessFacts
from .errors import FormatError
from .parts import part_definitions, part_rows
from .rows import MENTIONS, ROW_KINDS, RowKind, mentioned, raw_table
from .segment import Segment
from .spool import Part, SpoolDirectory, SpoolProcess, covered

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Chunk:
    """Rows of one table and process that lie together and can be read again, and the time of the first of them."""

    first_ns: int
    source: Part | pa.Table

    def read(self, kind: RowKind) -> Iterator[pa.Table]:
        """The rows as they are in the spool.

        Errors:
            FormatError: a part has changed since it was read first.
        """
        if isinstance(self.source, Part):
            return part_rows(self.source, kind)
        return iter([self.source])


Chunks = dict[str, list[Chunk]]


def read_process(spool: SpoolDirectory, process: SpoolProcess) -> tuple[ProcessFacts, Chunks]:
    """The definitions of a process and where its rows are; damage is counted, never an error."""
    facts = ProcessFacts(process.prefix, process.pid, process.start_ns, process.control)
    segments = {seq: _try_segment(process, seq) for seq in process.segments}
    # Listed after the segments were read: one that has become a part in the meantime is taken from the part.
    parts = spool.parts(process.prefix)
    whole = {seq: segment for seq, segment in segments.items() if segment is not None and not covered(seq, parts)}
    chunks: Chunks = {name: [] for name in ROW_KINDS}
    for part in parts:
        _add_part(facts, part, chunks)
    for seq in sorted(whole):
        facts.add(whole[seq])
    for name, kind in ROW_KINDS.items():
        records = b"".join([whole[seq].rows(kind.kind) for seq in sorted(whole)])
        if records:
            table = raw_table(kind, records)
            chunks[name].append(Chunk(_mention_rows(facts, kind, table), table))
    facts.segments_missing += _missing(process, sorted(whole), parts)
    return facts, chunks


def _try_segment(process: SpoolProcess, seq: int) -> Segment | None:
    try:
        return process.segment(seq)
    except (OSError, FormatError):
        return None


def _missing(process: SpoolProcess, whole: list[int], parts: list[Part]) -> int:
    """How many segments the process has begun that were not found; one that was only prepared does not count."""
    last = process.control.current_seq if process.control is not None else max(whole, default=-1)
    found = sum(seq <= last for seq in whole) + sum(max(0, min(part.last, last) - part.first + 1) for part in parts)
    return max(0, last + 1 - found)


def _add_part(facts: ProcessFacts, part: Part, chunks: Chunks) -> None:
    try:
        facts.add(part_definitions(part))
    except (OSError, FormatError):
        facts.segments_missing += 1
    for name, kind in ROW_KINDS.items():
        columns = [kind.time, *(column for column, _ in MENTIONS)]
        try:
            firsts = [_mention_rows(facts, kind, table) for table in part_rows(part, kind, columns) if table.num_rows]
        except FormatError:
            facts.segments_missing += 1
            continue
        if firsts:
            chunks[name].append(Chunk(min(firsts), part))


def _mention_rows(facts: ProcessFacts, kind: RowKind, table: pa.Table) -> int:
    """Note what the rows refer to; returns the time of the first."""
    import pyarrow.compute as pc

    for column, none in MENTIONS:
        facts.mention(column, mentioned(table, column, none))
    bounds = pc.min_max(table.column(kind.time)).as_py()
    facts.span(bounds["min"], bounds["max"])
    return int(bounds["min"])
