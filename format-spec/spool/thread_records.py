"""The records of a process's threads, kept as bytes: a process may have had millions of threads."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from .layout import SHAPES, THREAD_CARRIED, THREAD_END, THREAD_NAME, THREAD_ORIGIN, THREAD_START, ThreadEnd
from .mentions import Mentions
from .segment import Segment

FIELDS = {kind: SHAPES[kind].fixed for kind in (THREAD_START, THREAD_NAME, THREAD_END, THREAD_ORIGIN, THREAD_CARRIED)}
"""The fixed fields of each kind of record about a thread; the id of the thread comes first."""

KNOWN_BEHIND = (THREAD_START, THREAD_NAME, THREAD_ORIGIN)
"""The kinds that count also where they lie behind the end of a window."""

_NAME_END = 8 + FIELDS[THREAD_NAME].size


class ThreadRecords:
    """What the spool says of the threads of a process, and which of them rows and spans mention.

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
        """The same of a segment behind the end of the window, after all that are of the window.

        A thread of which only these tell is of the window only if it is mentioned.
        """
        if self._ids_before is None:
            self._ids_before = {kind: len(found) for kind, found in self._fields.items()}
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
        found = array("I")
        for kind, records in self._fields.items():
            end = len(records) if self._ids_before is None else self._ids_before.get(kind, 0)
            found += ids_of(kind, records)[: end // FIELDS[kind].size]
        return found

    def ends(self) -> dict[int, ThreadEnd]:
        """The ends of threads, by thread."""
        decoded = map(ThreadEnd._make, FIELDS[THREAD_END].iter_unpack(self.fields(THREAD_END)))
        return {record.thread: record for record in decoded}

    def earlier_cpu_ns(self) -> dict[int, int]:
        """CPU time in earlier windows, by thread, where it is not 0."""
        told = dict(FIELDS[THREAD_CARRIED].iter_unpack(self.fields(THREAD_CARRIED)))
        return {thread: cpu_ns for thread, cpu_ns in told.items() if cpu_ns}

    def _take(self, segment: Segment, kinds: Iterable[int]) -> set[int]:
        data = segment.data
        found = {kind: self._fields.get(kind) or bytearray() for kind in kinds}
        ends = {kind: 8 + FIELDS[kind].size for kind in found}
        seen = len(found[THREAD_ORIGIN])
        for kind, offset, length in segment.others:
            records = found.get(kind)
            if records is None or length < ends[kind]:
                continue
            if kind == THREAD_NAME:
                text = FIELDS[THREAD_NAME].unpack_from(data, offset + 8)[-1]
                if _NAME_END + text > length:
                    continue
                self._names += data[offset + _NAME_END : offset + _NAME_END + text]
            records += data[offset + 8 : offset + ends[kind]]
        self._fields |= {kind: records for kind, records in found.items() if records}
        return {start for _, _, start in FIELDS[THREAD_ORIGIN].iter_unpack(found[THREAD_ORIGIN][seen:])}


def ids_of(kind: int, records: bytes | bytearray) -> array[int]:
    """The ids of the threads that joined records of a kind are about."""
    found = array("I")
    found.frombytes(memoryview(records).cast("I")[:: FIELDS[kind].size // 4].tobytes())
    return found
