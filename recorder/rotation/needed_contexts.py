"""Selects the stacks, code objects, native stacks and modules that the next window of a recording needs.

A process numbers its stacks anew with each window (record GENERATION): what is older than its rows may still name is
left behind, but for what the blocks that are carried over name. So what is carried does not grow from window to window.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tachograph.format.spool.layout import (
    CODE,
    GENERATION,
    KEPT,
    MODULE,
    NATIVE_STACK,
    NONE,
    SHAPES,
    STACK,
    TASK_STACK,
)
from tachograph.format.spool.rows import mentioned
from tachograph.format.spool.segment import Segment, bodies_of

if TYPE_CHECKING:
    import pyarrow as pa

CONTEXT_KINDS = frozenset((STACK, TASK_STACK, CODE, NATIVE_STACK, MODULE))

_NO_PATH = 0
_SUPERSEDED_NS = 10_000_000_000
"""How long after a mapping was replaced by another one a row may be written that has an address in it."""

_STACK = struct.Struct("<III")  # stack, parent, code
_PATH = struct.Struct("<IIQI")  # native stack, parent, program counter, stack
_MODULE = struct.Struct("<IIQQQq")  # module, flags, first address, address after the last, offset, time


class NeededContexts:
    """The definitions of a process up to the end of a window that its later rows, or carried ``rows``, may name.

    ``start_ns`` is the beginning of the next window.
    """

    def __init__(self, segments: Iterable[Segment], rows: Mapping[str, pa.Table], start_ns: int) -> None:
        self._oldest = (0, 0, 0)
        self._kept: list[bytes] = []
        self._generation: bytes | None = None
        bodies: dict[int, list[bytes]] = {kind: [] for kind in (STACK, NATIVE_STACK, MODULE)}
        kept: list[bytes] = []
        for segment in segments:
            for kind, body in bodies_of(segment):
                if kind in bodies:
                    bodies[kind].append(body)
                elif kind == TASK_STACK:
                    bodies[STACK].append(body)
                elif kind == KEPT:
                    kept.append(body)
                elif kind == GENERATION:
                    # Those before it hold until the next one.
                    self._generation, self._kept, kept = body, kept, []
        if self._generation is not None:
            self._oldest = SHAPES[GENERATION].fixed.unpack_from(self._generation)
        self._kept += kept
        self._stacks = {_id(body) for body in self._kept} | _named(rows, "stack", NONE)
        self._paths = _named(rows, "native_stack", _NO_PATH)
        addresses = _named(rows, "pc", 0)
        self._follow_paths(bodies[NATIVE_STACK], addresses)
        self._codes: set[int] = set()
        self._follow_stacks(bodies[STACK])
        self._modules = _needed_modules(bodies[MODULE], sorted(addresses), start_ns)

    def generation(self) -> Iterator[tuple[int, bytes]]:
        """The records that say from which ids on all may still be named."""
        for body in self._kept:
            yield KEPT, body
        if self._generation is not None:
            yield GENERATION, self._generation

    def needs(self, kind: int, body: bytes) -> bool:
        """True if a definition of one of ``CONTEXT_KINDS`` is needed."""
        number = _id(body)
        stack, code, path = self._oldest
        if kind == MODULE:
            return number in self._modules
        if kind == CODE:
            return number >= code or number in self._codes
        if kind == NATIVE_STACK:
            return number >= path or number in self._paths
        return number >= stack or number in self._stacks

    def _follow_paths(self, bodies: Sequence[bytes], addresses: set[int]) -> None:
        """Take in the callers of the paths that are needed, and what all of them name."""
        oldest = self._oldest[2]
        old = {}
        for body in bodies:
            number, parent, pc, stack = _PATH.unpack_from(body)
            if number >= oldest:
                addresses.add(pc)
            elif self._paths:
                old[number] = parent, pc, stack
        for leaf in list(self._paths):
            node = leaf
            while node in old:
                parent, pc, stack = old.pop(node)
                self._paths.add(node)
                self._stacks.add(stack)
                addresses.add(pc)
                node = parent

    def _follow_stacks(self, bodies: Sequence[bytes]) -> None:
        """Take in the callers of the stacks that are needed, and the code objects of all of them."""
        oldest = self._oldest[0]
        old = {}
        if any(stack < oldest for stack in self._stacks):
            for body in bodies:
                number, parent, code = _STACK.unpack_from(body)
                if number < oldest:
                    old[number] = parent, code
        for leaf in list(self._stacks):
            node = leaf
            while node in old:
                parent, code = old.pop(node)
                self._stacks.add(node)
                self._codes.add(code)
                node = parent


def _id(body: bytes) -> int:
    return int.from_bytes(body[:4], "little")


def _named(rows: Mapping[str, pa.Table], column: str, none: int) -> set[int]:
    tables = [table for table in rows.values() if column in table.column_names]
    return set().union(*(mentioned(table, column, none) for table in tables))


def _needed_modules(bodies: Sequence[bytes], addresses: Sequence[int], start_ns: int) -> set[int]:
    """The mappings that are not known to have been replaced by others, and those that hold one of ``addresses``.

    Sorted, so that each mapping is compared with its neighbours only.
    """
    modules = []
    for body in bodies:
        number, _, start, end, _, time_ns = _MODULE.unpack_from(body)
        modules.append((time_ns, start, end, number))
    modules.sort(reverse=True)
    needed: set[int] = set()
    starts: list[int] = []
    ends: list[int] = []
    for time_ns, start, end, number in modules:
        at = bisect_left(ends, start + 1)
        replaced = at < len(starts) and starts[at] < end
        holds = bisect_left(addresses, start) < bisect_left(addresses, end)
        if not replaced or holds:
            needed.add(number)
        if not replaced and time_ns < start_ns - _SUPERSEDED_NS:
            starts.insert(at, start)
            ends.insert(at, end)
    return needed
