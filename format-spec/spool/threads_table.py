"""Builds the table threads, column by column: a recording may have millions of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ..schema import Specification
from .arrow_columns import call, column, converted, index_in, numbers_in, numbers_of, scalar
from .layout import SHAPES, THREAD_CARRIED, THREAD_END, THREAD_NAME, THREAD_ORIGIN, THREAD_START, NameSource
from .process_definitions import FIELDS, ProcessFacts, distinct, ids_of
from .row_kind import Packed

if TYPE_CHECKING:
    import pyarrow as pa

MAIN = 1
"""Flag of a process's main thread."""

_Field = tuple[Packed, int]
"""The type of a field, and its offset among the fixed fields of its record."""

_, _TID, _START_NS, _FLAGS = SHAPES[THREAD_START].places
_, _END_NS, _END_CPU_NS = SHAPES[THREAD_END].places
_, _CREATOR, _START_ROUTINE = SHAPES[THREAD_ORIGIN].places
_, _EARLIER_NS = SHAPES[THREAD_CARRIED].places
_, _SOURCE, _NAME_LENGTH = SHAPES[THREAD_NAME].places

_FEW_THREADS = 16
_THREAD, _PROCESS = 0xFFFFFFFF, 0xFFFFFFFF << 32
"""The two halves of a key: the thread's id in the spool, and the number of its process above it."""


@dataclass(frozen=True, slots=True)
class ThreadIds:
    """The ids that a process's threads have in the recording: ``first`` and those behind it, in the order of ``keys``.

    ``keys`` are the spool's ids, rising.
    """

    keys: pa.Array
    first: int

    def __getitem__(self, thread: int) -> int:
        return self.first + bisect_left(numbers_in(self.keys), thread)

    @property
    def values(self) -> pa.Array:
        """The id of each of ``keys``."""
        return numbers_of(array("I", range(self.first, self.first + len(self.keys))))


def threads_table(
    processes: Sequence[ProcessFacts], native_frames: Iterable[Mapping[int, int]], spec: Specification
) -> tuple[pa.Table, list[ThreadIds]]:
    """One row per thread that is defined or mentioned, and for each process the ids of its threads.

    ``native_frames`` are those of each process by program counter.

    Threads of other windows are there only if they are mentioned. What the processes have of their threads is let go.
    """
    import pyarrow as pa

    starts, ends, origins, earlier = (
        _Latest(processes, kind) for kind in (THREAD_START, THREAD_END, THREAD_ORIGIN, THREAD_CARRIED)
    )
    keys = _keys_of_rows(processes, ends)
    bounds = [bisect_left(numbers_in(keys), number << 32) for number in range(len(processes) + 1)]
    started, ended, created = (latest.places(keys) for latest in (starts, ends, origins))
    start_ns, end_ns = starts.take(_START_NS, started), ends.take(_END_NS, ended)
    flags = starts.take(_FLAGS, started)
    names, sources = _names(processes, keys)
    creators = call(
        "bit_wise_or",
        call("bit_wise_and", keys, scalar(_PROCESS, keys.type)),
        converted(origins.take(_CREATOR, created), keys.type),
    )
    columns = {
        "thread": numbers_of(array("I", range(len(keys)))),
        "process": _by_process([process.number for process in processes], pa.uint32(), keys),
        "tid": starts.take(_TID, started),
        "name": names,
        "python_name": call("equal", sources, scalar(NameSource.PYTHON, sources.type)),
        "main": call("not_equal", call("bit_wise_and", flags, scalar(MAIN, flags.type)), scalar(0, flags.type)),
        "start_ns": _began_ns(start_ns, end_ns, _window_ns(processes, keys)),
        "end_ns": end_ns,
        "cpu_ns": _used_ns(ends.take(_END_CPU_NS, ended), earlier.take(_EARLIER_NS, earlier.places(keys))),
        "creator": converted(index_in(creators, keys), pa.uint32()),
        "start_frame": _start_frames(origins.take(_START_ROUTINE, created), bounds, native_frames),
    }
    own_ids = converted(call("bit_wise_and", keys, scalar(_THREAD, keys.type)), pa.uint32())
    ids = []
    for process, (first, end) in zip(processes, pairwise(bounds), strict=True):
        process.references_lost += start_ns.slice(first, end - first).null_count
        ids.append(ThreadIds(own_ids.slice(first, end - first), first))
        process.threads.clear()
    schema = spec.tables["threads"].schema
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema), ids


class _Latest:
    """The last record of a kind about each thread."""

    def __init__(self, processes: Sequence[ProcessFacts], kind: int) -> None:
        self._size = FIELDS[kind].size
        records = [process.threads.fields(kind) for process in processes]
        self._joined = b"".join(records)
        # Backwards, as Arrow finds the first of those that are alike.
        self._keys = numbers_of(_keys([ids_of(kind, each) for each in records])[::-1])

    def places(self, keys: pa.Array) -> pa.Array:
        """Where the record of each of ``keys`` is; null where there is none."""
        return index_in(keys, self._keys)

    def take(self, field: _Field, places: pa.Array) -> pa.Array:
        """A field of the records at ``places``."""
        values = _field(self._joined, self._size, field)
        return call("take", numbers_of(values[::-1]), places)


def _keys_of_rows(processes: Sequence[ProcessFacts], ends: _Latest) -> pa.Array:
    """The keys of the threads that are rows, in the order of the rows."""
    import pyarrow as pa

    here = numbers_of(distinct(_keys([process.threads.defined() for process in processes])))
    window_ns = _window_ns(processes, here)
    if window_ns is not None:
        ended_before = call("less", ends.take(_END_NS, ends.places(here)), window_ns)
        here = call(
            "filter", here, call("invert", call("coalesce", ended_before, scalar(value=False, kind=pa.bool_())))
        )
    mentioned = numbers_of(_keys([process.threads.mentioned for process in processes]))
    keys = call("unique", pa.concat_arrays([here, mentioned]))
    return call("take", keys, call("array_sort_indices", keys))


def _names(processes: Sequence[ProcessFacts], keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The names of the threads, and who gave them; null where there is none."""
    import pyarrow as pa

    records = [process.threads.fields(THREAD_NAME) for process in processes]
    joined, size = b"".join(records), FIELDS[THREAD_NAME].size
    sources = _field(joined, size, _SOURCE)
    ends = array("q", accumulate(_field(joined, size, _NAME_LENGTH), initial=0))
    # A name that Python gave counts before those of the system, then a later one before an earlier one.
    backwards = range(len(sources) - 1, -1, -1)
    order = array("I", [at for at in backwards if sources[at] == NameSource.PYTHON])
    order += array("I", [at for at in backwards if sources[at] != NameSource.PYTHON])
    by_order = numbers_of(_keys([ids_of(THREAD_NAME, each) for each in records]))
    indexes = index_in(keys, call("take", by_order, numbers_of(order)))
    places = call("take", numbers_of(order), indexes)
    texts = b"".join([process.threads.names for process in processes])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    names = call("take", pa.Array.from_buffers(pa.large_binary(), len(sources), buffers), places)
    return _decoded(names), call("take", numbers_of(sources), places)


def _decoded(texts: pa.Array) -> pa.Array:
    """Bytes as text; what is not UTF-8 becomes escapes."""
    import pyarrow as pa

    try:
        return converted(texts, pa.string())
    except pa.ArrowInvalid:
        decoded = [None if text is None else text.decode("utf-8", "backslashreplace") for text in texts.to_pylist()]
        return column(decoded, pa.string())


def _window_ns(processes: Sequence[ProcessFacts], keys: pa.Array) -> pa.Array | None:
    """When the window of each thread's process began, null where it is the first; None if that is so for all."""
    import pyarrow as pa

    begun = [None if process.carried is None else process.carried.start_ns for process in processes]
    return None if begun.count(None) == len(begun) else _by_process(begun, pa.int64(), keys)


def _by_process(values: Sequence[int | None], kind: pa.DataType, keys: pa.Array) -> pa.Array:
    """The value of each thread's process."""
    return call("take", column(values, kind), call("shift_right", keys, scalar(32, keys.type)))


def _began_ns(start_ns: pa.Array, end_ns: pa.Array, window_ns: pa.Array | None) -> pa.Array:
    """When recording of a thread began in its window; one that has left only blocks behind ended before."""
    began_ns = start_ns
    if window_ns is not None:
        began_ns = _where_known(start_ns, call("max_element_wise", start_ns, window_ns), start_ns)
    over_ns = call("min_element_wise", began_ns, call("max_element_wise", end_ns, start_ns))
    return _where_known(start_ns, _where_known(end_ns, over_ns, began_ns), start_ns)


def _used_ns(end_cpu_ns: pa.Array, earlier_ns: pa.Array) -> pa.Array:
    """CPU time of threads that have ended, without that of earlier windows; a negative one of both is unknown."""
    zero = scalar(0, end_cpu_ns.type)
    earlier_ns = call("coalesce", earlier_ns, zero)
    is_known = call("and", *(call("greater_equal", each, zero) for each in (end_cpu_ns, earlier_ns)))
    used = call("max_element_wise", call("subtract", end_cpu_ns, earlier_ns), zero)
    return call("if_else", is_known, used, scalar(None, used.type))


def _where_known(values: pa.Array, then: pa.Array, otherwise: pa.Array) -> pa.Array:
    return call("if_else", call("is_valid", values), then, otherwise)


def _start_frames(routines: pa.Array, bounds: Sequence[int], native_frames: Iterable[Mapping[int, int]]) -> pa.Array:
    """The native frames of start routines, of one process after the other."""
    import pyarrow as pa

    parts = [column([], pa.uint32())]
    for (first, end), frames in zip(pairwise(bounds), native_frames, strict=True):
        own = routines.slice(first, end - first)
        addresses = own if len(own) <= _FEW_THREADS else call("unique", own)
        values = column([frames.get(address) for address in addresses.to_pylist()], pa.uint32())
        parts.append(values if addresses is own else call("take", values, index_in(own, addresses)))
    return pa.concat_arrays(parts)


def _keys(threads: Sequence[array[int]]) -> array[int]:
    """The keys of the threads of one process after the other, which are given by the spool's ids."""
    both = array("I", bytes(8 * sum(map(len, threads))))
    at = 0
    for number, ids in enumerate(threads):
        end = at + 2 * len(ids)
        both[at:end:2] = ids
        both[at + 1 : end : 2] = array("I", [number]) * len(ids)
        at = end
    keys = array("Q")
    keys.frombytes(memoryview(both).cast("B"))
    return keys


def _field(records: bytes, size: int, field: _Field) -> array[int]:
    """A field of joined records of ``size`` bytes."""
    code, offset = field
    values = array(code)
    step = size // values.itemsize
    values.frombytes(memoryview(records).cast(code)[offset // values.itemsize :: step].tobytes())
    return values
