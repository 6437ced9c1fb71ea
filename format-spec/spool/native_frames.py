"""Builds the tables modules and native_frames: which mapping holds a program counter, and the place in the source."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..schema import Specification
from .arrow_columns import table_of_columns
from .layout import NONE, Module
from .process_definitions import ProcessFacts

if TYPE_CHECKING:
    import pyarrow as pa

INTERPRETER = 1
"""Flag of a module that holds the evaluation loop."""


class NativePlace(NamedTuple):
    """What is known of a native program counter, None where it is not: the columns of native_frames."""

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
        found = []
        for index in range(bisect_right(self._starts, pc) - 1, -1, -1):
            module = self.modules[index]
            if pc - module.start >= self._longest:
                break
            if pc < module.end:
                found.append((module.time_ns, (self._first_id + index, self._offset(module, pc))))
        return sorted(found)

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
            held = {pc: own.holders(pc) for pc in process.mentions["pc"].rising()}
            unheld.update(pc for pc, found in held.items() if not found)
            numbers = self._numbers({place for found in held.values() for _, place in found})
            firsts = array("I", [numbers[found[0][1]] if found else NONE for found in held.values()])
            places.append((array("Q", held), firsts))
            for pc, found in held.items():
                if len(found) > 1:
                    several.setdefault(index, {})[pc] = [(time_ns, numbers[place]) for time_ns, place in found]
            process.forget_addresses()
        self._unheld = array("Q", sorted(unheld))
        first = len(self._unheld)
        self.pairs = [(pcs, array("I", map(self._id, pcs, numbers))) for pcs, numbers in places]
        """Of each process, its program counters and the native frame of each: of the earliest module that holds it."""
        self.remapped = {
            index: {pc: [(time_ns, first + number) for time_ns, number in found] for pc, found in of_one.items()}
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
        found = [NativePlace()] * len(self._place_modules)
        for path, numbers in by_path.items():
            offsets = list(dict.fromkeys(self._place_offsets[number] for number in numbers))
            known = dict(zip(offsets, resolve(path, offsets), strict=True))
            for number in numbers:
                found[number] = known[self._place_offsets[number]]
        return found
