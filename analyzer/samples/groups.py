"""Groups of CPU samples, numbered and added up: samples that are equal in all but their times and weights.

Properties of a sample's thread, stacks, native frame, opcode and state are worked out once for its group. Time grows
with the number of samples and memory with the number of groups: the rules divide sums, which gives the same as sums of
what they would divide.

``Keys`` numbers the groups of rows with a hash table in arrays, ``Totals`` adds up by these numbers: the inner loop of
reading 10^8 samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, known, numbers
from tachograph.format.enumerations import NativePath

from ..recording.call_tree import NOTHING
from ..recording.opened import Recording
from .attribution import STATES, CellPacker

_MAX_KEY = 1 << 62
_MAX_NUMBERS = 1 << 31
_BLOCK = 1 << 15
"""Rows that are looked up at a time: their keys stay in the processor's cache."""

_NONE = -1
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the upper bits of a product are the hash (Knuth, The Art of Computer Programming,
volume 3, section 6.4)."""


class Numbers:
    """Numbers 0, 1 ... for whole numbers that are not negative (keys), in the order in which they first come.

    A hash table with open addressing and linear probing. At most a quarter of its slots are used.
    """

    def __init__(self) -> None:
        self._count = 0
        self._keys: Ids = np.full(1, _NONE, np.int64)  # the last one is what an empty slot points to
        self._slots: Ids = np.full(0, _NONE, np.int64)
        self._shift = np.uint64(64)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Ids:
        """The keys, in the order of their numbers."""
        return self._keys[: self._count]

    def of(self, keys: Ids) -> Ids:
        """The number of each key."""
        number = np.empty(len(keys), np.int64)
        for start in range(0, len(keys), _BLOCK):
            block = keys[start : start + _BLOCK]
            block_numbers, new = self._find(block)
            if len(new):
                self._add(block[new])
                block_numbers[new] = self._find(block[new])[0]
            number[start : start + _BLOCK] = block_numbers
        return number

    def _find(self, keys: Ids) -> tuple[Ids, NDArray[np.intp]]:
        """The number of each key, and the rows of those that have none yet."""
        if not self._count:
            return np.full(len(keys), _NONE, np.int64), np.arange(len(keys))
        slot = self._hash(keys)
        number = np.take(self._slots, slot)
        rows = np.flatnonzero(np.take(self._keys, number) != keys)
        new = [rows[number[rows] == _NONE]]
        while len(rows):
            rows = rows[number[rows] != _NONE]
            slot[rows] = (slot[rows] + 1) & (len(self._slots) - 1)
            number[rows] = self._slots[slot[rows]]
            rows = rows[self._keys[number[rows]] != keys[rows]]
            new.append(rows[number[rows] == _NONE])
        return number, np.sort(np.concatenate(new))

    def _add(self, keys: Ids) -> None:
        """Gives numbers to keys that have none; they may come several times."""
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
        first, self._count = self._count, self._count + len(keys)
        if self._count >= len(self._keys):
            grown = np.full(2 * self._count + 1, _NONE, np.int64)
            grown[:first] = self._keys[:first]
            self._keys = grown
        self._keys[first : self._count] = keys
        if 4 * self._count > len(self._slots):
            bits = (8 * self._count).bit_length()
            self._slots = np.full(1 << bits, _NONE, np.int64)
            self._shift = np.uint64(64 - bits)
            first = 0
        self._place(np.arange(first, self._count))

    def _place(self, number: Ids) -> None:
        """Puts numbers into slots."""
        slot = self._hash(self._keys[number])
        while len(number):
            free = self._slots[slot] == _NONE
            # Of several that want one slot the first gets it: what comes often comes early, and is found at once then.
            self._slots[slot[free][::-1]] = number[free][::-1]
            left = self._slots[slot] != number
            number, slot = number[left], (slot[left] + 1) & (len(self._slots) - 1)

    def _hash(self, keys: Ids) -> Ids:
        product = keys.view(np.uint64) * _MULTIPLIER
        product >>= self._shift
        return product.view(np.int64)


class Keys:
    """Numbers 0, 1 ... for combinations of the values of columns, in the order in which they first come.

    ``sizes`` says of each column how many values there may be, from 0 on.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        # Packed into one whole number; where that would be too large, what was packed before is numbered first.
        self._parts: list[tuple[list[tuple[str, int]], Numbers]] = [([], Numbers())]
        room = _MAX_KEY
        for name, size in sizes.items():
            if size > room:
                self._parts.append(([], Numbers()))
                room = _MAX_KEY // _MAX_NUMBERS
            self._parts[-1][0].append((name, size))
            room //= max(size, 1)

    def __len__(self) -> int:
        return len(self._parts[-1][1])

    def of(self, columns: Mapping[str, NDArray[Any]]) -> Ids:
        """The number of each row."""
        rows = len(next(iter(columns.values())))
        number = np.empty(rows, np.int64)
        for start in range(0, rows, _BLOCK):
            number[start : start + _BLOCK] = self._block(columns, slice(start, start + _BLOCK))
        return number

    def columns(self, since: int = 0) -> dict[str, Ids]:
        """The values of each column by number, from one number on."""
        keys = self._parts[-1][1].keys[since:]
        columns: dict[str, Ids] = {}
        for place in range(len(self._parts) - 1, -1, -1):
            for name, size in reversed(self._parts[place][0]):
                keys, columns[name] = np.divmod(keys, max(size, 1))
            if place:
                keys = self._parts[place - 1][1].keys[keys]
        return columns

    def _block(self, columns: Mapping[str, NDArray[Any]], rows: slice) -> Ids:
        key: Ids | None = None
        for part, ids in self._parts:
            factor, more = 1, 0  # what is left to do: key * factor + more
            for name, size in part:
                values = columns[name][rows]
                if key is None:
                    key = values.astype(np.int64)
                elif values.itemsize == 1 and values.min() == values.max():  # as most small columns are
                    factor, more = factor * size, more * size + int(values[0])
                else:
                    key *= factor * size
                    key += values
                    if more:
                        key += more * size
                    factor, more = 1, 0
            assert key is not None
            if factor > 1:
                key *= factor
                key += more
            key = ids.of(key)
        assert key is not None
        return key


class Totals:
    """A count and sums of weights by number; there may be more numbers from call to call."""

    def __init__(self, names: Sequence[str]) -> None:
        self._sums = {name: np.zeros(0) for name in ("count", *names)}

    def __getitem__(self, name: str) -> Floats:
        return self._sums[name]

    def add(self, number: Ids, size: int, weights: Mapping[str, Floats | None]) -> None:
        """Adds rows with numbers below ``size``; None stands for weights that are all zero."""
        self.grow(size)
        where: Ids | slice = slice(size)
        if size > 4 * len(number):  # few of many: only they are touched
            where, number = np.unique(number, return_inverse=True)
            size = len(where)
        self._sums["count"][where] += np.bincount(number, minlength=size)
        for name, values in weights.items():
            if values is not None:
                self._sums[name][where] += np.bincount(number, weights=values, minlength=size)

    def grow(self, size: int) -> None:
        """Makes room for numbers below ``size``."""
        if len(self._sums["count"]) < size:
            for name, sums in self._sums.items():
                self._sums[name] = np.append(sums, np.zeros(size - len(sums)))


Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

PATH_COLUMNS = ("native_stack", "native_path")
"""Read where there are native call paths, of CPU samples and of waits."""

COLLECTING_UNKNOWN = 2
"""In column ``collecting``, which is 1 in a garbage collection and 0 outside of one."""

_BYTE = 256
"""Values that a column of bytes may have."""


class SampleGroups:
    """Numbers for the groups of one recording's samples, in the order in which they first come."""

    def __init__(self, recording: Recording) -> None:
        self._nodes = recording.rows("stacks")
        self._frames = recording.rows("native_frames")
        self._paths = recording.rows("native_stacks")
        sizes = {"stack": self._nodes + 1, "native": self._frames + 1}
        if self._paths:
            sizes |= {"native_stack": self._paths + 1, "native_path": _BYTE}
        sizes |= {"opcode": _BYTE, "collecting": 3, "thread": max(len(recording.all_threads), 1)}
        self._keys = Keys({**sizes, "origin": _BYTE, "stack_state": STATES, "kernel_known": 2})
        self._packer = CellPacker(recording)
        self._columns: dict[str, Ids] = {}
        self._cell = np.zeros(0, np.uint16)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, rows: pa.RecordBatch, state: NDArray[np.integer]) -> Ids:
        """The group of each row of a batch, whose stack states are ``state``."""
        system, collecting = rows.column("system_ns"), rows.column("collecting")
        columns = {
            "stack": filled(rows.column("stack"), self._nodes),
            "native": filled(rows.column("native_frame"), self._frames),
            "opcode": filled(rows.column("opcode"), 0),
            "collecting": np.where(known(collecting), filled(collecting, 0), COLLECTING_UNKNOWN),
            "thread": numbers(rows.column("thread")),
            "origin": numbers(rows.column("origin")),
            "stack_state": state,
            "kernel_known": known(system),
        }
        if self._paths:
            columns["native_stack"] = filled(rows.column("native_stack"), self._paths)
            columns["native_path"] = filled(rows.column("native_path"), NativePath.UNRECORDED)
        return self._keys.of(columns)

    @property
    def columns(self) -> Mapping[str, Ids]:
        """The columns of samples by group, ``kernel_known`` in place of times; ids are NOTHING for none."""
        self._learn()
        return self._columns

    @property
    def cell(self) -> NDArray[np.uint16]:
        """The attribution cell of each group (``attribution.unpacked``)."""
        self._learn()
        return self._cell

    def _learn(self) -> None:
        """Takes in the groups that came since the last time."""
        since = len(self._cell)
        if since == len(self) and self._columns:
            return
        new = self._keys.columns(since)
        if not self._paths:
            new["native_stack"] = np.full(len(self) - since, NOTHING, np.int64)
            new["native_path"] = np.full(len(self) - since, int(NativePath.UNRECORDED), np.int64)
        self._cell = np.append(self._cell, self._packer.pack(new))
        for name, none in (("stack", self._nodes), ("native", self._frames), ("native_stack", self._paths)):
            new[name] = np.where(new[name] == none, NOTHING, new[name])
        before = self._columns or {name: np.zeros(0, np.int64) for name in new}
        self._columns = {name: np.append(before[name], values) for name, values in new.items()}


class CpuSums:
    """CPU samples, added up by group."""

    def __init__(self, groups: SampleGroups) -> None:
        self._groups = groups
        self._totals = Totals(("cpu_ns", "system_ns", "delay_ns"))
        self.weight_squared = 0.0
        """Of all together: the sum of ``stream.CpuBatch.squared``."""

    @property
    def totals(self) -> Totals:
        """Count, cpu_ns, system_ns and delay_ns of each group."""
        self._totals.grow(len(self._groups))
        return self._totals

    def add(
        self, group: Ids, weight_ns: Floats, elapsed_ns: Floats, system_ns: Floats | None, delay_ns: Floats | None
    ) -> None:
        """Adds samples by their groups; arguments as in ``stream.CpuBatch``."""
        weights = {"cpu_ns": weight_ns, "system_ns": system_ns, "delay_ns": delay_ns}
        self._totals.add(group, len(self._groups), weights)
        self.weight_squared += float(np.einsum("i,i->", weight_ns, elapsed_ns))
