"""Reads all that the spool holds of one process, from its parts and from its segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..enumerations import DOMAINS, MemoryEvent, StackState
from ..errors import FormatError
from ..manifest import MOST_INTEGER
from ..schema import Specification
from .arrow_columns import bounds
from .directory import Part, SpoolDirectory, SpoolProcess, covered
from .layout import BLOCK_ROWS, FREED_ROWS, MEMORY_ROWS
from .parts import part_definitions, part_rows
from .process_definitions import ProcessFacts
from .records import ROW_KINDS
from .row_kind import RowKind
from .rows import mentioned, raw_table, sound_rows, values_of
from .segment import Segment, rows_until

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS = 1 << 8
"""So few are gone through in Python: for a chunk there are fifty calls of Arrow, which take longer."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one kind and process that lie together and can be read again, and the time of the first of them.

    ``source`` is a part, or the joined records: as a table they would take many times the room where they are few, as
    those of thousands of short processes are. ``least`` is the least value of some columns: rows below it are damaged
    and left out.
    """

    first_ns: int
    source: Part | bytes
    kind: RowKind
    least: Mapping[str, int]

    @property
    def few(self) -> bytes | None:
        """The joined records where they are few, and none is damaged."""
        if not isinstance(self.source, bytes) or self.least or len(self.source) > FEW_ROWS * self.kind.length:
            return None
        return self.source

    def read(self) -> Iterator[pa.Table]:
        """The rows as they are in the spool.

        Errors:
            FormatError: a part has changed since it was read first.
        """
        return (sound_rows(table, self.least) for table in _tables(self.source, self.kind))


Chunks = dict[str, list[Chunk]]


def read_process(spool: SpoolDirectory, process: SpoolProcess, spec: Specification) -> tuple[ProcessFacts, Chunks]:
    """The definitions of a process and where its rows are; damage is counted, never an error."""
    facts = ProcessFacts(process.prefix, process.pid, process.start_ns, process.control)
    segments = {seq: _try_segment(process, seq) for seq in process.segments}
    # Listed after the segments were read: one that has become a part in the meantime is taken from the part.
    parts = process.parts if process.archived else spool.parts(process.prefix)
    whole = {seq: segment for seq, segment in segments.items() if segment is not None and not covered(seq, parts)}
    chunks: Chunks = {name: [] for name in ROW_KINDS}
    for part in parts:
        _add_part(facts, part, chunks, spec)
    for seq in sorted(whole):
        facts.add(whole[seq])
    late = [segment for seq in process.later if (segment := _try_segment(process, seq)) is not None]
    for segment in late:
        # What a window has may be defined behind its end: an id is used before its record is there.
        facts.define(segment)
    # After the segments: a block that gets its row in between is in neither of them for once, and never in both.
    pending = spool.pending_blocks(process.prefix) if process.control is not None and not process.control.ended else b""
    for kind in ROW_KINDS.values():
        records = b"".join([whole[seq].rows(kind.kind) for seq in sorted(whole)])
        if kind in (BLOCK_ROWS, FREED_ROWS) and process.until_ns is not None:
            # Blocks are written when they are a second old, and may be held or over before the window is.
            records += b"".join([rows_until(segment.rows(kind.kind), kind.kind, process.until_ns) for segment in late])
        if kind is BLOCK_ROWS:
            records += pending
        if records:
            _add_chunk(facts, chunks, kind, records, spec)
    if unrecorded := _unrecorded(process, facts, spec):
        _add_chunk(facts, chunks, MEMORY_ROWS, unrecorded, spec)
    facts.segments_missing += _missing(process, sorted(whole), parts)
    if facts.remapped:
        _note_times(facts, chunks)
    return facts, chunks


def _note_times(facts: ProcessFacts, chunks: Chunks) -> None:
    """Note when rows name native stacks and addresses: which modules these are of depends on it."""
    for kind in ROW_KINDS.values():
        fields = [each for each in kind.references if each.to in ("native_stack", "pc")]
        for table in (table for chunk in chunks[kind.name] for table in chunk.read() if fields):
            times = table.column(kind.time).to_pylist()
            for each in fields:
                named = set(zip(table.column(each.field).to_pylist(), times, strict=True))
                for value, time_ns in named:
                    if each.to == "pc":
                        facts.note_time(value, time_ns)
                    elif value != each.none:
                        facts.path_times[value] = min(time_ns, facts.path_times.get(value, time_ns))


def _unrecorded(process: SpoolProcess, facts: ProcessFacts, spec: Specification) -> bytes:
    """A MEMORY record of what the process had counted since its last one; none if that is nothing.

    So it is where the process was killed, or had no room for its last records. Its time is that of the latest row of
    all: no block that was sampled is younger.
    """
    control = process.control
    if control is None or process.until_ns is not None or process.later or facts.last_ns is None:
        return b""
    dropped = [loss.name for loss in spec.counters].index("records_dropped")
    if control.ended and control.losses[dropped] == 0:
        return b""
    # A row may be written while bytes are noted: what is in both, to within the error of the counters, is negative.
    flows = [max(0, each) for each in control.unrecorded_bytes]
    if not any(flows):
        return b""
    unknown = MEMORY_ROWS.unknown
    footprint = control.footprint_bytes
    if footprint != unknown["footprint_bytes"]:
        footprint = min(max(footprint + sum(flows[::2]) - sum(flows[1::2]), 0), MOST_INTEGER)
    values: dict[str, int] = dict.fromkeys(MEMORY_ROWS.places, 0)
    values.update({each.field: each.none or 0 for each in MEMORY_ROWS.references})
    values.update(unknown)
    values.update(time_ns=facts.last_ns, footprint_bytes=footprint)
    values.update(event=MemoryEvent.TICK, stack_state=StackState.UNSEEN)
    sums = [f"{domain}_{what}_bytes" for domain in DOMAINS for what in ("allocated", "freed")]
    values.update(zip(sums, flows, strict=True))
    return bytes(8) + MEMORY_ROWS.fixed.pack(*(values[name] for name in MEMORY_ROWS.places))


def _try_segment(process: SpoolProcess, seq: int) -> Segment | None:
    try:
        return process.segment(seq)
    except (OSError, FormatError):
        return None


def _missing(process: SpoolProcess, whole: list[int], parts: list[Part]) -> int:
    """The number of segments that the process began and that are missing; a prepared one does not count."""
    last = process.control.current_segment if process.control is not None else max(whole, default=-1)
    present = sum(seq <= last for seq in whole) + sum(max(0, min(part.last, last) - part.first + 1) for part in parts)
    return max(0, last + 1 - present)


def _add_part(facts: ProcessFacts, part: Part, chunks: Chunks, spec: Specification) -> None:
    try:
        facts.add(part_definitions(part))
    except (OSError, FormatError):
        facts.segments_missing += 1
    for kind in ROW_KINDS.values():
        try:
            _add_chunk(facts, chunks, kind, part, spec)
        except FormatError:
            facts.segments_missing += 1


def _tables(source: Part | bytes, kind: RowKind, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    return part_rows(source, kind, columns) if isinstance(source, Part) else iter([raw_table(kind, source, columns)])


def _add_chunk(facts: ProcessFacts, chunks: Chunks, kind: RowKind, source: Part | bytes, spec: Specification) -> None:
    """Note the rows of a source and what they refer to; the damaged ones are counted as torn records."""
    least = _least(kind, spec)
    if isinstance(source, bytes) and _are_few_and_sound(kind, source, least):
        values = partial(values_of, kind, source)
        first = _mention(
            facts, kind, lambda name: set(values(name)), min(values(kind.time)), max(values(kind.last_time))
        )
        chunks[kind.name].append(Chunk(first, source, kind, {}))
        return
    columns = list(dict.fromkeys([kind.time, kind.last_time, *(each.field for each in kind.references), *least]))
    firsts, torn = [], 0
    for table in _tables(source, kind, columns):
        sound = sound_rows(table, least)
        torn += table.num_rows - sound.num_rows
        if sound.num_rows:
            firsts.append(_mention_rows(facts, kind, sound))
    facts.records_torn += torn
    if firsts:
        # A part is read from its file again; what is in memory cannot have changed.
        unchanged = not torn and isinstance(source, bytes)
        chunks[kind.name].append(Chunk(min(firsts), source, kind, {} if unchanged else least))


def _are_few_and_sound(kind: RowKind, records: bytes, least: Mapping[str, int]) -> bool:
    """True if the records are few enough for a loop in Python, and none is damaged."""
    few = len(records) <= FEW_ROWS * kind.length
    return few and all(min(values_of(kind, records, name)) >= bound for name, bound in least.items())


def _least(kind: RowKind, spec: Specification) -> dict[str, int]:
    """The least values of a kind's fields, as the columns of its table have them."""
    columns = spec.tables[kind.table].columns if kind.table is not None else ()
    return {column.name: column.least for column in columns if column.least is not None}


def _mention_rows(facts: ProcessFacts, kind: RowKind, table: pa.Table) -> int:
    """Note what the rows refer to; returns the time of the first."""
    first, last = bounds(table.column(kind.time))[0], bounds(table.column(kind.last_time))[1]
    return _mention(facts, kind, lambda name: mentioned(table, name), first, last)


def _mention(
    facts: ProcessFacts, kind: RowKind, distinct: Callable[[str], set[int]], first_ns: int, last_ns: int
) -> int:
    for reference in kind.references:
        if reference.to == "span":
            continue  # what no row of `spans` tells of is none
        facts.mention(reference.to, distinct(reference.field) - {reference.none})
    facts.span(first_ns, last_ns)
    return first_ns
