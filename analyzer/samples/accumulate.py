"""Sums by index: of the rows of a long table by (place, cell), the inner loop of reading 10^8 samples; of any array.

A *place* is a stack in a thread, a *cell* one combination of the small columns that attribution looks at. As a rule
there are few of both, and then the sums are arrays that are indexed directly; else Arrow keeps them in hash tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .measures import distinct

MAX_DENSE = 4_000_000
"""Sums that are kept in arrays at most (32 MB each)."""

_COMPACT_ROWS = 4_000_000

Key = NDArray[np.int64]
Weights = NDArray[np.float64]


class Accumulator:
    """Adds up a count and some weights by key; ``cells`` is the number of cells that are possible."""

    def __init__(self, places: int, cells: int, weights: Sequence[str]) -> None:
        self._places = places
        self._cells = cells
        self._names = ("count", *weights)
        self._cell_index = np.full(cells, -1, np.int64)
        self._known: list[int] = []
        self._dense = np.zeros((len(self._names), 0))
        self._sparse: list[pa.Table] = []
        self._sparse_rows = 0

    def add(self, place: Key, cell: NDArray[np.integer], weights: Sequence[Weights | None]) -> None:
        """Adds rows; None stands for weights that are all zero. ``place`` is used up."""
        index = np.take(self._cell_index, cell)
        if len(index) and index.min() < 0:
            for new in np.unique(cell[index < 0]).tolist():
                self._cell_index[new] = len(self._known)
                self._known.append(new)
            index = np.take(self._cell_index, cell)
        size = len(self._known) * self._places
        if size > MAX_DENSE:
            self._add_sparse(place, cell, weights)
            return
        index *= self._places
        index += place
        if self._dense.shape[1] < size:
            grown = np.zeros((len(self._names), size))
            grown[:, : self._dense.shape[1]] = self._dense
            self._dense = grown
        self._dense[0] += np.bincount(index, minlength=size)
        for row, values in enumerate(weights, 1):
            if values is not None:
                self._dense[row] += np.bincount(index, weights=values, minlength=size)

    def sums(self) -> tuple[Key, Key, dict[str, Weights]]:
        """Places, cells and their sums by name, for the keys that have rows."""
        used = np.flatnonzero(self._dense[0])
        cell_number, place = np.divmod(used, self._places)
        cell = np.array(self._known, np.int64)[cell_number]
        columns = {name: self._dense[row, used] for row, name in enumerate(self._names)}
        if not self._sparse:
            return place, cell, columns
        dense = pa.table({"key": place * self._cells + cell, **columns})
        merged = self._merge([dense, *self._sparse])
        place, cell = np.divmod(merged.column("key").to_numpy(), self._cells)
        return place, cell, {name: merged.column(name).to_numpy() for name in self._names}

    def _add_sparse(self, place: Key, cell: NDArray[np.integer], weights: Sequence[Weights | None]) -> None:
        place *= self._cells
        place += cell
        columns = {
            name: np.zeros(len(place)) if values is None else values
            for name, values in zip(self._names[1:], weights, strict=True)
        }
        part = self._merge([pa.table({"key": place, "count": np.ones(len(place)), **columns})])
        self._sparse.append(part)
        self._sparse_rows += part.num_rows
        if self._sparse_rows > _COMPACT_ROWS:
            self._sparse = [self._merge(self._sparse)]
            self._sparse_rows = self._sparse[0].num_rows

    def _merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        grouped = pa.concat_tables(tables).group_by("key").aggregate([(name, "sum") for name in self._names])
        return grouped.rename_columns([name.removesuffix("_sum") for name in grouped.column_names])


class Numbers:
    """Numbers 0, 1 ... for keys, in the order in which they first come; by an array where few keys are possible."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        """By number."""
        self._known: dict[int, int] = {}
        self._table = np.zeros(0, np.int32)

    def of(self, keys: Key, size: int) -> Key:
        """The number of each key; they are below ``size``, which may grow from call to call."""
        if size > MAX_DENSE:
            group, first = distinct(keys)
            return np.array([self._number(key) for key in keys[first].tolist()], np.int64)[group]
        if len(self._table) < size:
            self._table = np.append(self._table, np.full(size - len(self._table), -1, np.int32))
        found = np.take(self._table, keys)
        if len(found) and found.min() < 0:
            new = keys[found < 0]
            for key in new[distinct(new)[1]].tolist():
                self._table[key] = self._number(key)
            found = np.take(self._table, keys)
        return found.astype(np.int64)

    def _number(self, key: int) -> int:
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.keys)
            self.keys.append(key)
        return number


def summed(index: NDArray[np.integer], weights: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """For each of 0 .. ``size`` - 1 the sum of the weights with that index."""
    return np.asarray(np.bincount(index, weights=weights, minlength=size), np.float64)


def counted(index: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    """For each of 0 .. ``size`` - 1 how often it is in the index."""
    return np.asarray(np.bincount(index, minlength=size), np.float64)
