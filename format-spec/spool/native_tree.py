"""Builds the table native_stacks: equal native call paths of a process become one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..schema import MAX_STACK_DEPTH, Specification
from .arrow_columns import table_of
from .id_numbers import IdNumbers
from .layout import NONE, NativeStack
from .process_definitions import ProcessFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_Node = tuple[int | None, int | None, int | None]
_NO_PARENT = 0
_LOST_PC = 0


def take_native_paths(process: ProcessFacts) -> list[NativeStack]:
    """The native stacks that the rows of a process mention, every parent before its children.

    The program counters and stacks that they lead to are noted as mentioned. A node whose record was lost has the
    program counter 0. Counts lost references.
    """
    found: dict[int, NativeStack] = {}
    depths: dict[int, int] = {_NO_PARENT: 0}
    for mentioned in process.mentions["native_stack"].rising():
        path: list[NativeStack] = []
        on_path: set[int] = set()
        node = mentioned
        while node not in depths and node not in on_path:
            on_path.add(node)
            record = process.native_stacks.get(node)
            if record is None:
                process.references_lost += 1
                record = NativeStack(node, _NO_PARENT, _LOST_PC, NONE)
            path.append(record)
            node = record.parent
        if node in on_path:
            process.references_lost += 1
            path[-1] = path[-1]._replace(parent=_NO_PARENT)
        for each in reversed(path):
            # No recorder writes paths as deep as this; the innermost levels stay.
            too_deep = depths[each.parent] == MAX_STACK_DEPTH
            process.references_lost += too_deep
            record = each._replace(parent=_NO_PARENT) if too_deep else each
            depths[record.native_stack] = depths[record.parent] + 1
            found[record.native_stack] = record
    process.mention("pc", {record.pc for record in found.values()} - {_LOST_PC})
    process.mention("stack", {record.stack for record in found.values()} - {NONE})
    process.native_stacks.clear()
    process.mentions["native_stack"].clear()
    return list(found.values())


class NativeTree:
    """The native stacks of a recording."""

    def __init__(self) -> None:
        self._nodes: dict[_Node, int] = {}

    def add(self, paths: list[NativeStack], native_frames: Mapping[int, int], stacks: IdNumbers) -> dict[int, int]:
        """Add the nodes of a process; ``native_frames`` are by program counter, ``stacks`` by the spool's ids.

        Returns the map from its ids to the recording's.
        """
        ids: dict[int, int] = {}
        for record in paths:
            frame = native_frames.get(record.pc)
            # Not merged with another: two lost nodes need not be the same one.
            key = frame if frame is not None else -1 - len(self._nodes)
            node = (ids.get(record.parent), key, stacks.get(record.stack))
            ids[record.native_stack] = self._nodes.setdefault(node, len(self._nodes))
        return ids

    def table(self, spec: Specification) -> pa.Table:
        """The table."""
        rows = [
            (number, parent, None if frame is None or frame < 0 else frame, stack)
            for number, (parent, frame, stack) in enumerate(self._nodes)
        ]
        return table_of(rows, spec.tables["native_stacks"].schema)
