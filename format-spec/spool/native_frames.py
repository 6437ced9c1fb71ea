"""Builds the tables modules, native_frames and native_stacks, column by column.

A program counter becomes a native frame: the mapping that held it, and its place in the source. Equal native call paths
of a process become one row of native_stacks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..schema import MAX_STACK_DEPTH, Specification
from .arrow_columns import numbers_but, numbers_of, table_of_columns
from .id_numbers import IdNumbers
from .layout import NONE, Module, NativeStack
from .process_definitions import ProcessFacts

if TYPE_CHECKING:
    import pyarrow as pa


INTERPRETER = 1
"""Flag of a module that holds the evaluation loop."""


class NativePlace(NamedTuple):
    """The place of a native program counter in the source, the columns of native_frames; None is unknown."""

    symbol: str | None = None
    source: str | None = None
    line: int | None = None
    function_source: str | None = None
    function_line: int | None = None


Resolve = Callable[[str, list[int]], Sequence[NativePlace]]
"""Gives a place for each offset of a file of a mapping."""
_Place = tuple[int, int]
"""A module of the recording, and an offset in its file."""


class _Modules:
    """The table modules, column by column: each of thousands of processes has some."""

    def __init__(self) -> None:
        self._processes = array("I")
        self._starts, self._ends, self._offsets, self._times = array("Q"), array("Q"), array("Q"), array("q")
        self._interpreters: list[bool] = []
        self.paths: list[str] = []
        self._builds: list[str | None] = []

    def __len__(self) -> int:
        return len(self.paths)

    def add(self, process: int, modules: Sequence[Module]) -> None:
        """Append those of a process."""
        self._processes.extend([process] * len(modules))
        self._starts.extend(module.start for module in modules)
        self._ends.extend(module.end for module in modules)
        self._offsets.extend(module.file_offset for module in modules)
        self._times.extend(module.time_ns for module in modules)
        self._interpreters += [bool(module.flags & INTERPRETER) for module in modules]
        self.paths += [module.path for module in modules]
        self._builds += [module.build_id or None for module in modules]

    def table(self, spec: Specification) -> pa.Table:
        """The table."""
        columns = (
            range(len(self)),
            self._processes,
            self.paths,
            self._builds,
            self._starts,
            self._ends,
            self._offsets,
            self._times,
            self._interpreters,
        )
        return table_of_columns(columns, spec.tables["modules"].schema)


class ProcessModules:
    """The modules of one process, in the order of their addresses; the first has the id ``first_id``."""

    def __init__(self, process: ProcessFacts, first_id: int) -> None:
        self.modules = sorted(process.modules.values(), key=lambda module: (module.start, module.time_ns))
        self._first_id = first_id
        self._starts = [module.start for module in self.modules]
        # Mappings replace one another; the longest tells how far to the left of an address its holders can begin.
        self._longest = max((module.end - module.start for module in self.modules), default=0)

    def holders(self, pc: int) -> list[tuple[int, _Place]]:
        """(time_ns, place) of every module that holds ``pc`` at some time, by time."""
        holders = []
        for index in range(bisect_right(self._starts, pc) - 1, -1, -1):
            module = self.modules[index]
            if pc - module.start >= self._longest:
                break
            if pc < module.end:
                holders.append((module.time_ns, (self._first_id + index, self._offset(module, pc))))
        return sorted(holders)

    @staticmethod
    def _offset(module: Module, pc: int) -> int:
        return (pc - module.start + module.file_offset) & 0xFFFFFFFFFFFFFFFF


class NativeFrames:
    """The modules and native frames of a recording.

    First come the addresses that no module holds, then the places of one process after the other. What the processes
    have of modules and addresses is let go.
    """

    def __init__(self, processes: Sequence[ProcessFacts]) -> None:
        self._modules = _Modules()
        self._place_modules, self._place_offsets = array("I"), array("Q")
        # Until it is known how many addresses no module holds, places are numbered among themselves.
        places: list[tuple[array[int], array[int]]] = []
        several: dict[int, dict[int, list[tuple[int, int]]]] = {}
        unheld: set[int] = set()
        for index, process in enumerate(processes):
            own = ProcessModules(process, len(self._modules))
            self._modules.add(process.number, own.modules)
            starts = process.threads.start_routines()
            held = {pc: own.holders(pc) for pc in process.mentions["pc"].rising()}
            for pc, holders in held.items():
                if len(holders) > 1:
                    times = process.pc_times.get(pc, ())
                    # A start routine has no time: it is that of the earliest module.
                    own_time = [each for each in holders[1:] if each[0] in times]
                    held[pc] = holders[:1] * (pc in starts or holders[0][0] in times or not own_time) + own_time
            unheld.update(pc for pc, holders in held.items() if not holders)
            numbers = self._numbers({place for holders in held.values() for _, place in holders})
            firsts = array("I", [numbers[holders[0][1]] if holders else NONE for holders in held.values()])
            places.append((array("Q", held), firsts))
            for pc, holders in held.items():
                if len(holders) > 1:
                    several.setdefault(index, {})[pc] = [(time_ns, numbers[place]) for time_ns, place in holders]
            process.forget_addresses()
        self._unheld = array("Q", sorted(unheld))
        first = len(self._unheld)
        self.pairs = [(pcs, array("I", map(self._id, pcs, numbers))) for pcs, numbers in places]
        """Of each process, its program counters and the native frame of each: of the earliest module that holds it."""
        self.remapped = {
            index: {pc: [(time_ns, first + number) for time_ns, number in holders] for pc, holders in of_one.items()}
            for index, of_one in several.items()
        }
        """By process, the program counters that several modules held at different times, with (time_ns, native frame)
        by time."""

    def _numbers(self, places: set[_Place]) -> dict[_Place, int]:
        """Enter the places of a process; the number of each."""
        in_order = sorted(places)
        numbers = {place: number for number, place in enumerate(in_order, len(self._place_modules))}
        self._place_modules.extend(module for module, _ in in_order)
        self._place_offsets.extend(offset for _, offset in in_order)
        return numbers

    def _id(self, pc: int, number: int) -> int:
        return bisect_left(self._unheld, pc) if number == NONE else len(self._unheld) + number

    def ids(self, index: int) -> dict[int, int]:
        """Map of a process's program counters to native frames."""
        return dict(zip(*self.pairs[index], strict=True))

    def tables(self, spec: Specification, resolve: Resolve | None) -> dict[str, pa.Table]:
        """The two tables; ``resolve`` is asked once for every file."""
        unheld = len(self._unheld)
        places = [NativePlace()] * (unheld + len(self._place_modules))
        if resolve is not None:
            places[unheld:] = self._resolved(resolve)
        columns = (
            range(len(places)),
            [*[None] * unheld, *self._place_modules],
            self._unheld + self._place_offsets,
            *([getattr(place, name) for place in places] for name in NativePlace._fields),
        )
        return {
            "modules": self._modules.table(spec),
            "native_frames": table_of_columns(columns, spec.tables["native_frames"].schema),
        }

    def _resolved(self, resolve: Resolve) -> list[NativePlace]:
        by_path: dict[str, list[int]] = {}
        for number, module in enumerate(self._place_modules):
            by_path.setdefault(self._modules.paths[module], []).append(number)
        frames = [NativePlace()] * len(self._place_modules)
        for path, numbers in by_path.items():
            offsets = list(dict.fromkeys(self._place_offsets[number] for number in numbers))
            resolved = dict(zip(offsets, resolve(path, offsets), strict=True))
            for number in numbers:
                frames[number] = resolved[self._place_offsets[number]]
        return frames


def frame_at(holders: Sequence[tuple[int, int]], time_ns: int) -> int:
    """The native frame of an address at a time, of the modules that held it: (time_ns, native frame), by time.

    It is that of the latest module that had been seen, else of the earliest.
    """
    at = bisect_right(holders, time_ns, key=lambda holder: holder[0])
    return holders[max(0, at - 1)][1]


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
        self._named = process.path_times
        places = process.native_stacks.numbers()
        for mentioned in process.mentions["native_stack"].rising():
            if places.get(mentioned) is None:
                self._add_path(process, mentioned, places)
        self.times = self._times()
        """The time of the first row that names each node, or one that it called; empty where it does not matter."""
        for pc, time_ns in zip(self.pcs, self.times, strict=False):
            process.note_time(pc, time_ns)
        process.mention("pc", (pc for pc in self.pcs if pc != _LOST_PC))
        process.mention("stack", (stack for stack in self.stacks if stack != NONE))
        process.native_stacks.clear()
        process.mentions["native_stack"].clear()

    def _times(self) -> list[int]:
        if not self._named:
            return []
        never = (1 << 63) - 1
        found = [self._named.get(node, never) for node in self.ids]
        for node in range(len(found) - 1, -1, -1):
            if self.parents[node] != NONE:
                found[self.parents[node]] = min(found[self.parents[node]], found[node])
        return found

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
        self,
        paths: NativePaths,
        native_frames: Mapping[int, int],
        stacks: IdNumbers,
        remapped: Mapping[int, Sequence[tuple[int, int]]],
    ) -> tuple[array[int], array[int]]:
        """Add the nodes of a process; ``native_frames`` are by program counter, ``stacks`` by the spool's ids.

        ``remapped`` are the native frames of the program counters that several modules held. Returns its ids, and the
        recording's for each.
        """
        numbers = array("I")
        for node, (parent, pc, stack) in enumerate(zip(paths.parents, paths.pcs, paths.stacks, strict=True)):
            caller = NONE if parent == NONE else numbers[parent]
            number = stacks.get(stack)
            frame = native_frames.get(pc)
            if pc in remapped:
                frame = frame_at(remapped[pc], paths.times[node])
            numbers.append(self._number(caller, frame, NONE if number is None else number))
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
