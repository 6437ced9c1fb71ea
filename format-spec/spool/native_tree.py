"""Builds the table native_stacks, column by column: equal native call paths of a process become one row."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..schema import MAX_STACK_DEPTH, Specification
from .arrow_columns import numbers_but, numbers_of
from .id_numbers import IdNumbers
from .layout import NONE, NativeStack
from .process_definitions import ProcessFacts

if TYPE_CHECKING:
    import pyarrow as pa

_NO_PARENT = 0
_LOST_PC = 0


class NativePaths:
    """The native stacks that the rows of a process mention, every parent before its children.

    ``ids`` are the spool's, ``parents`` places among these (NONE at the outermost frame). The program counter of a node
    whose record was lost is 0; ``stacks`` are where the path goes on in Python, or NONE.
    """

    def __init__(self, process: ProcessFacts) -> None:
        """Take them from a process. What they lead to is noted as mentioned; counts its lost references."""
        self.ids, self.parents, self.pcs, self.stacks = array("I"), array("I"), array("Q"), array("I")
        self._depths = array("H")
        places = process.native_stacks.numbers()
        for mentioned in process.mentions["native_stack"].rising():
            if places.get(mentioned) is None:
                self._add_path(process, mentioned, places)
        process.mention("pc", (pc for pc in self.pcs if pc != _LOST_PC))
        process.mention("stack", (stack for stack in self.stacks if stack != NONE))
        process.native_stacks.clear()
        process.mentions["native_stack"].clear()

    def _add_path(self, process: ProcessFacts, mentioned: int, places: IdNumbers) -> None:
        path: list[NativeStack] = []
        on_path: set[int] = set()
        node = mentioned
        parent = None
        while node != _NO_PARENT and (parent := places.get(node)) is None and node not in on_path:
            on_path.add(node)
            record = process.native_stacks.get(node)
            if record is None:
                process.references_lost += 1
                record = NativeStack(node, _NO_PARENT, _LOST_PC, NONE)
            path.append(record)
            node = record.parent
        process.references_lost += node in on_path
        for each in reversed(path):
            if parent is not None and self._depths[parent] == MAX_STACK_DEPTH:
                # No recorder writes paths as deep as this; the innermost levels stay.
                process.references_lost += 1
                parent = None
            self._depths.append(1 if parent is None else self._depths[parent] + 1)
            self.parents.append(NONE if parent is None else parent)
            self.pcs.append(each.pc)
            self.stacks.append(each.stack)
            parent = places[each.native_stack] = len(self.ids)
            self.ids.append(each.native_stack)


class NativeTree:
    """The native stacks of a recording."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._parents, self._frames, self._stacks = array("I"), array("I"), array("I")

    def add(
        self, paths: NativePaths, native_frames: Mapping[int, int], stacks: IdNumbers
    ) -> tuple[array[int], array[int]]:
        """Add the nodes of a process; ``native_frames`` are by program counter, ``stacks`` by the spool's ids.

        Returns its ids, and the recording's for each.
        """
        numbers = array("I")
        for parent, pc, stack in zip(paths.parents, paths.pcs, paths.stacks, strict=True):
            caller = NONE if parent == NONE else numbers[parent]
            found = stacks.get(stack)
            numbers.append(self._number(caller, native_frames.get(pc), NONE if found is None else found))
        return paths.ids, numbers

    def _number(self, parent: int, frame: int | None, stack: int) -> int:
        new = len(self._parents)
        if frame is not None:  # else it is not merged with another: two lost nodes need not be the same one
            number = self._numbers.setdefault((parent << 32 | frame) << 32 | stack, new)
            if number != new:
                return number
        self._parents.append(parent)
        self._frames.append(NONE if frame is None else frame)
        self._stacks.append(stack)
        return new

    def table(self, spec: Specification) -> pa.Table:
        """The table."""
        import pyarrow as pa

        schema = spec.tables["native_stacks"].schema
        ids = numbers_of(array("I", range(len(self._parents))))
        columns = [numbers_but(values, NONE) for values in (self._parents, self._frames, self._stacks)]
        return pa.Table.from_arrays([ids, *columns], schema=schema)
