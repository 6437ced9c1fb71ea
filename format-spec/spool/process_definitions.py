"""The definitions of one process in the spool, apart from its rows: code objects, stacks, threads, modules, spans.

A process may have millions of them, and its rows refer to a part: records are kept as bytes and decoded on request.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from .arrow_columns import call, numbers_in, numbers_of
from .directory import ControlFile
from .id_numbers import IdNumbers, first_places, numbers_for
from .layout import (
    CODE,
    NATIVE_STACK,
    NONE,
    SHAPES,
    STACK,
    TASK_STACK,
    THREAD_CARRIED,
    THREAD_END,
    THREAD_NAME,
    THREAD_ORIGIN,
    THREAD_START,
    Carried,
    Definition,
    Meta,
    Module,
    NativeStack,
    Referrer,
    Span,
    Stack,
    State,
    ThreadEnd,
)
from .segment import Segment, carried_torn

if TYPE_CHECKING:
    import pyarrow as pa


_FEWEST = 1 << 16

_FEW = 1 << 12
"""Fewer are sorted in Python: calls of Arrow take longer, and there may be thousands of processes."""


class Mentions:
    """Ids or addresses, in no more room than they need; ``code`` is their struct type."""

    __slots__ = ("_distinct", "_noted")

    def __init__(self, code: str) -> None:
        self._noted = array(code)
        self._distinct = 0

    def note(self, values: Iterable[int]) -> None:
        """Add some, which may be there already."""
        self._noted.extend(values)
        if len(self._noted) > 2 * self._distinct + _FEWEST:
            # Each part mentions what lives for long.
            self._noted = distinct(self._noted)
            self._distinct = len(self._noted)

    def clear(self) -> None:
        """Let go of all of them."""
        self._noted = array(self._noted.typecode)
        self._distinct = 0

    @property
    def noted(self) -> array[int]:
        """All of them, some more than once."""
        return self._noted

    def rising(self) -> array[int]:
        """All of them, each once, in rising order."""
        if len(self._noted) < _FEW:
            return array(self._noted.typecode, sorted(set(self._noted)))
        return rising(self._noted)


def distinct(values: array[int]) -> array[int]:
    """The same numbers, each once."""
    return _array_of(call("unique", numbers_of(values)), values.typecode)


def rising(values: array[int]) -> array[int]:
    """The same numbers, each once, in rising order."""
    unique = call("unique", numbers_of(values))
    return _array_of(call("take", unique, call("array_sort_indices", unique)), values.typecode)


def _array_of(numbers: pa.Array, code: str) -> array[int]:
    values = array(code)
    values.frombytes(numbers_in(numbers).cast("B"))
    return values


_HEADER = 8

_CODE_END = _HEADER + SHAPES[CODE].fixed.size


class NodeRecords:
    """Records of one kind and length by their ids, which come first in them. The first definition of an id counts."""

    def __init__(self, kind: int) -> None:
        self._kind, self._fields = kind, SHAPES[kind].fixed
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._records = bytearray()
        self._places: IdNumbers | None = None

    def take(self, segment: Segment) -> None:
        """Take over those of a segment."""
        data, records, own = segment.data, self._records, self._kind
        end = _HEADER + self._fields.size
        for kind, offset, length in segment.others:
            if kind == own and length >= end:
                records += data[offset + _HEADER : offset + end]
        self._places = None

    def fields(self, node: int) -> tuple[int, ...] | None:
        """The fields of an id's record; None if it was lost."""
        if self._places is None:
            self._places = first_places(self._ids())
        place = self._places.get(node)
        return None if place is None else self._fields.unpack_from(self._records, place * self._fields.size)

    def numbers(self) -> IdNumbers:
        """A map that has no numbers yet, and will give one to many of the ids."""
        return numbers_for(self._ids())

    def _ids(self) -> array[int]:
        ids = array("I")
        ids.frombytes(memoryview(self._records).cast("I")[:: self._fields.size // 4].tobytes())
        return ids


class StackRecords(NodeRecords):
    """The nodes of the calling context tree. Few have a task."""

    def __init__(self) -> None:
        super().__init__(STACK)

    def clear(self) -> None:
        """Let go of all of them."""
        super().clear()
        self._with_task: dict[int, Stack] = {}

    def add(self, record: Stack) -> None:
        """Take over a decoded node."""
        self._with_task.setdefault(record.stack, record)

    def get(self, stack: int) -> Stack | None:
        """The node of an id; None if it was lost."""
        fields = self.fields(stack)
        if fields is None:
            return self._with_task.get(stack)
        _, parent, code, instruction = fields
        return Stack(stack, parent, code, instruction)


class NativeRecords(NodeRecords):
    """The nodes of the tree of native call paths."""

    def __init__(self) -> None:
        super().__init__(NATIVE_STACK)

    def get(self, native_stack: int) -> NativeStack | None:
        """The node of an id; None if it was lost."""
        fields = self.fields(native_stack)
        return None if fields is None else NativeStack(*fields)


class CodeRecords:
    """The code objects by their ids. The first definition of an id counts."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._records = bytearray()
        self._ids, self._ends = array("I"), array("Q", [0])
        self._places: IdNumbers | None = None

    def take(self, segment: Segment) -> None:
        """Take over the code objects of a segment."""
        data = segment.data
        for kind, offset, length in segment.others:
            if kind == CODE and length >= _CODE_END:
                self._records += data[offset : offset + length]
                self._ids.append(int.from_bytes(data[offset + _HEADER : offset + _HEADER + 4], "little"))
                self._ends.append(len(self._records))
        self._places = None

    def get(self, code: int) -> bytes | None:
        """The record of an id; None if it was lost."""
        if self._places is None:
            self._places = first_places(self._ids)
        place = self._places.get(code)
        return None if place is None else bytes(self._records[self._ends[place] : self._ends[place + 1]])


FIELDS = {kind: SHAPES[kind].fixed for kind in (THREAD_START, THREAD_NAME, THREAD_END, THREAD_ORIGIN, THREAD_CARRIED)}
"""The fixed fields of each kind of record about a thread; the id of the thread comes first."""

KNOWN_BEHIND = (THREAD_START, THREAD_NAME, THREAD_ORIGIN)
"""The kinds that count also where they lie behind the end of a window."""

_NAME_END = 8 + FIELDS[THREAD_NAME].size


class ThreadRecords:
    """The records about the threads of a process, and the threads that rows and spans refer to.

    The records are kept as they are in the spool, in its order, without their headers; ``threads_table`` decodes them.
    """

    __slots__ = ("_fields", "_ids_before", "_mentions", "_names")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Let go of all of them."""
        self._fields: dict[int, bytearray] = {}
        self._names = bytearray()
        self._ids_before: dict[int, int] | None = None
        self._mentions = Mentions("I")

    def take(self, segment: Segment) -> set[int]:
        """Take over the records of a segment; returns the addresses of the start routines that they name."""
        return self._take(segment, FIELDS)

    def take_later(self, segment: Segment) -> set[int]:
        """Take over the records of a segment behind the end of the window, after all segments of the window.

        A thread of which only these tell is of the window only if it is mentioned.
        """
        if self._ids_before is None:
            self._ids_before = {kind: len(records) for kind, records in self._fields.items()}
        return self._take(segment, KNOWN_BEHIND)

    def mention(self, threads: Iterable[int]) -> None:
        """Note threads that rows or spans refer to."""
        self._mentions.note(threads)

    def fields(self, kind: int) -> bytes | bytearray:
        """The fixed fields of all records of a kind, in the order of the spool."""
        return self._fields.get(kind, b"")

    @property
    def names(self) -> bytes | bytearray:
        """The texts of all THREAD_NAME records, in the same order, end to end."""
        return self._names

    @property
    def mentioned(self) -> array[int]:
        """The ids that were mentioned, some more than once."""
        return self._mentions.noted

    def defined(self) -> array[int]:
        """The ids that a record of the window defines, some more than once."""
        ids = array("I")
        for kind, records in self._fields.items():
            end = len(records) if self._ids_before is None else self._ids_before.get(kind, 0)
            ids += ids_of(kind, records)[: end // FIELDS[kind].size]
        return ids

    def start_routines(self) -> set[int]:
        """The addresses of the routines that threads were created to run."""
        return _routines(self.fields(THREAD_ORIGIN))

    def ends(self) -> dict[int, ThreadEnd]:
        """The ends of threads, by thread."""
        decoded = map(ThreadEnd._make, FIELDS[THREAD_END].iter_unpack(self.fields(THREAD_END)))
        return {record.thread: record for record in decoded}

    def earlier_cpu_ns(self) -> dict[int, int]:
        """CPU time in earlier windows, by thread, where it is not 0."""
        carried = dict(FIELDS[THREAD_CARRIED].iter_unpack(self.fields(THREAD_CARRIED)))
        return {thread: cpu_ns for thread, cpu_ns in carried.items() if cpu_ns}

    def _take(self, segment: Segment, kinds: Iterable[int]) -> set[int]:
        data = segment.data
        joined = {kind: self._fields.get(kind) or bytearray() for kind in kinds}
        ends = {kind: 8 + FIELDS[kind].size for kind in joined}
        origins_before = len(joined[THREAD_ORIGIN])
        for kind, offset, length in segment.others:
            records = joined.get(kind)
            if records is None or length < ends[kind]:
                continue
            if kind == THREAD_NAME:
                text = FIELDS[THREAD_NAME].unpack_from(data, offset + 8)[-1]
                if _NAME_END + text > length:
                    continue
                self._names += data[offset + _NAME_END : offset + _NAME_END + text]
            records += data[offset + 8 : offset + ends[kind]]
        self._fields |= {kind: records for kind, records in joined.items() if records}
        return _routines(joined[THREAD_ORIGIN][origins_before:])


def _routines(origins: bytes | bytearray) -> set[int]:
    """The start routines in joined THREAD_ORIGIN records. 0 is none: in rows it stands for an unknown address."""
    return {start for _, _, start in FIELDS[THREAD_ORIGIN].iter_unpack(origins) if start}


def ids_of(kind: int, records: bytes | bytearray) -> array[int]:
    """The ids of the threads that joined records of a kind are about."""
    ids = array("I")
    ids.frombytes(memoryview(records).cast("I")[:: FIELDS[kind].size // 4].tobytes())
    return ids


_UNDECODED = frozenset((STACK, CODE, NATIVE_STACK, *FIELDS))
_CONTEXTS = frozenset((TASK_STACK,))


@dataclass(slots=True)
class ProcessFacts:
    """The definitions of a process by the spool's ids, and the ids that its rows refer to.

    ``mentions`` are the ``stack``, ``native_stack`` and ``pc`` values of its rows. ``first_ns`` and
    ``last_ns`` are the times of its first and last row. ``path_times`` has the time of the first row that names each
    native stack, where modules have taken the place of others; ``pc_times`` has of each address when the modules
    were seen that held it as rows named it. ``number`` is its row in the table processes. ``carried``
    says where its window begins, in a recording that is rotated.
    """

    prefix: str
    pid: int
    start_ns: int
    control: ControlFile | None = None
    meta: dict[str, str] = field(default_factory=dict)
    threads: ThreadRecords = field(default_factory=ThreadRecords)
    codes: CodeRecords = field(default_factory=CodeRecords)
    stacks: StackRecords = field(default_factory=StackRecords)
    native_stacks: NativeRecords = field(default_factory=NativeRecords)
    modules: dict[int, Module] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)
    referrers: dict[tuple[int, int], Referrer] = field(default_factory=dict)
    mentions: dict[str, Mentions] = field(
        default_factory=lambda: {"stack": Mentions("I"), "native_stack": Mentions("I"), "pc": Mentions("Q")}
    )
    first_ns: int | None = None
    last_ns: int | None = None
    path_times: dict[int, int] = field(default_factory=dict)
    pc_times: dict[int, set[int]] = field(default_factory=dict)
    records_torn: int = 0
    segments_missing: int = 0
    references_lost: int = 0
    number: int = 0
    carried: Carried | None = None

    def add(self, segment: Segment, *, contexts: bool = True) -> None:
        """Take over the definitions of a segment. The first definition of an id counts, and the last of a thread.

        Without ``contexts`` stacks, code objects and native stacks are left out.
        """
        self.records_torn += segment.torn + carried_torn(segment)
        if contexts:
            self._take_contexts(segment)
        self.mention("pc", self.threads.take(segment))
        for record in segment.definitions(without=_UNDECODED if contexts else _UNDECODED | _CONTEXTS):
            match record:
                case State():
                    self.states.append(record)
                case Span():
                    self._named(record)
                case Referrer():
                    self._kept_by(record)
                case Carried():
                    self.carried = record
                case _:
                    self._define(record)

    def define(self, segment: Segment) -> None:
        """Take over only what a later segment says about the ids that earlier ones use already."""
        self._take_contexts(segment)
        self.mention("pc", self.threads.take_later(segment))
        for record in segment.definitions(without=_UNDECODED):
            self._define(record)

    @property
    def remapped(self) -> bool:
        """True if two modules have held the same address."""
        ranges = sorted((module.start, module.end) for module in self.modules.values())
        return any(after[0] < before[1] for before, after in pairwise(ranges))

    def note_time(self, pc: int, time_ns: int) -> None:
        """Note that an address was named at a time, if several modules have held it."""
        seen = sorted(module.time_ns for module in self.modules.values() if module.start <= pc < module.end)
        if len(seen) > 1:
            self.pc_times.setdefault(pc, set()).add(seen[max(0, bisect_right(seen, time_ns) - 1)])

    def _take_contexts(self, segment: Segment) -> None:
        self.stacks.take(segment)
        self.codes.take(segment)
        self.native_stacks.take(segment)

    def _define(self, record: Definition) -> None:
        match record:
            case Stack():
                self.stacks.add(record)
            case Module():
                self.modules.setdefault(record.module, record)
            case Meta():
                self.meta[record.key] = record.value

    def forget_contexts(self) -> None:
        """Let go of what only ``ContextTree.add`` needs, and what thousands of processes would hold."""
        self.codes.clear()
        self.stacks.clear()
        self.mentions["stack"].clear()

    def forget_addresses(self) -> None:
        """Let go of the modules and addresses, which only ``NativeFrames`` needs."""
        self.modules.clear()
        self.mentions["pc"].clear()

    def mention(self, column: str, values: Iterable[int]) -> None:
        """Note ids or addresses that rows refer to."""
        if column == "thread":
            self.threads.mention(values)
        else:
            self.mentions[column].note(values)

    def span(self, first_ns: int, last_ns: int) -> None:
        """Note the times of the first and the last of some rows."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)

    def _named(self, record: Span) -> None:
        if record.end_ns < record.start_ns:
            self.records_torn += 1  # damaged: it would end before it begins
            return
        self.spans.setdefault(record.span, record)
        self.mention("thread", {record.thread})
        self.span(record.start_ns, record.end_ns)

    def _kept_by(self, record: Referrer) -> None:
        if record.size_bytes < 0:
            self.records_torn += 1
            return
        self.referrers.setdefault((record.chain, record.link), record)
        if record.stack != NONE:
            self.mention("stack", {record.stack})
        self.span(record.time_ns, record.time_ns)
