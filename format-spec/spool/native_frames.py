"""Builds the tables modules and native_frames: which mapping holds a program counter, and the place in the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..schema import Specification
from .arrow_columns import table_of
from .layout import Module
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
_Row = tuple[int, int, str, str | None, int, int, int, int, bool]
_Place = tuple[int | None, int]
"""A module of the recording and an offset in its file; or None and the raw address."""


class ProcessModules:
    """The modules of one process and the places of the program counters that its rows mention."""

    def __init__(self, process: ProcessFacts, number: int, first_id: int) -> None:
        self._modules = sorted(process.modules.values(), key=lambda module: (module.start, module.time_ns))
        self._number = number
        self._first_id = first_id
        self._starts = [module.start for module in self._modules]
        # Mappings replace one another; the longest tells how far to the left of an address its holders can begin.
        self._longest = max((module.end - module.start for module in self._modules), default=0)

    def __len__(self) -> int:
        return len(self._modules)

    def rows(self) -> list[_Row]:
        """Rows of the table modules."""
        return [
            (
                self._first_id + index,
                self._number,
                module.path,
                module.build_id or None,
                module.start,
                module.end,
                module.file_offset,
                module.time_ns,
                bool(module.flags & INTERPRETER),
            )
            for index, module in enumerate(self._modules)
        ]

    def holders(self, pc: int) -> list[tuple[int, _Place]]:
        """(time_ns, place) of every module that holds ``pc`` at some time, by time."""
        found = []
        for index in range(bisect_right(self._starts, pc) - 1, -1, -1):
            module = self._modules[index]
            if pc - module.start >= self._longest:
                break
            if pc < module.end:
                found.append((module.time_ns, (self._first_id + index, self._offset(module, pc))))
        return sorted(found)

    @staticmethod
    def _offset(module: Module, pc: int) -> int:
        return (pc - module.start + module.file_offset) & 0xFFFFFFFFFFFFFFFF


class NativeFrames:
    """The modules and native frames of a recording."""

    def __init__(self, processes: Sequence[ProcessFacts]) -> None:
        self._modules: list[_Row] = []
        self._holders: list[dict[int, list[tuple[int, _Place]]]] = []
        for process in processes:
            modules = ProcessModules(process, process.number, len(self._modules))
            self._modules += modules.rows()
            unknown: _Place
            holders = {}
            for pc in process.mentions["pc"].rising():
                unknown = (None, pc)
                holders[pc] = modules.holders(pc) or [(0, unknown)]
            self._holders.append(holders)
        places = {place for holders in self._holders for found in holders.values() for _, place in found}
        in_order = sorted(places, key=lambda place: (place[0] is not None, place[0] or 0, place[1]))
        self._ids = {place: index for index, place in enumerate(in_order)}

    def ids(self, index: int) -> dict[int, int]:
        """Map of the process's program counters to native frames: the earliest module that holds them."""
        return {pc: self._ids[found[0][1]] for pc, found in self._holders[index].items()}

    def remapped(self, index: int) -> dict[int, list[tuple[int, int]]]:
        """The program counters that several modules held at different times, with (time_ns, native frame) by time."""
        return {
            pc: [(time_ns, self._ids[place]) for time_ns, place in found]
            for pc, found in self._holders[index].items()
            if len(found) > 1
        }

    def tables(self, spec: Specification, resolve: Resolve | None) -> dict[str, pa.Table]:
        """The two tables; ``resolve`` is asked once for every file."""
        places = self._places(resolve) if resolve is not None else {}
        nowhere = NativePlace()
        frames = [
            (index, module, offset, *places.get((module, offset), nowhere))
            for (module, offset), index in self._ids.items()
        ]
        return {
            "modules": table_of(self._modules, spec.tables["modules"].schema),
            "native_frames": table_of(frames, spec.tables["native_frames"].schema),
        }

    def _places(self, resolve: Resolve) -> dict[_Place, NativePlace]:
        by_path: dict[str, list[_Place]] = {}
        for place in self._ids:
            if place[0] is not None:
                by_path.setdefault(self._modules[place[0]][2], []).append(place)
        found: dict[_Place, NativePlace] = {}
        for path, places in by_path.items():
            found.update(zip(places, resolve(path, [offset for _, offset in places]), strict=True))
        return found
