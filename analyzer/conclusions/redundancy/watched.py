"""Reads the samples of native code below Python lines, and tells which are evidence for a repetition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids, no_rows
from tachograph.format.enumerations import Access, WatchOutcome

from ...recording.call_tree import NOTHING
from ...recording.filter import Filter
from ...recording.opened import Recording
from ...recording.time_window import Window
from ..pools.submitters import NO_LIBRARY
from .borders import Borders
from .candidates import Kind
from .cycles import in_cycles
from .results import LEAST_BYTES

_COLUMNS = ("time_ns", "thread", "stack", "native_frame", "native_stack", "access", "outcome")
BLOCKS = ("block_bytes", "block_hash", "block_again", "block_head_hash")
"""Since version 1.5."""
_PARTNERS = ("partner_stack", "partner_native_frame", "partner_native_stack", "equal", "crossed", "rested")
_ANSWERED = (WatchOutcome.PAIR, WatchOutcome.RELEASED, WatchOutcome.STORED_OVER)
_ACCESS: dict[Kind, Access] = {"load": Access.LOAD, "store": Access.STORE}
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Watched:
    """Samples of native code below Python lines, one entry each in every array."""

    line: Ids
    libraries: Ids
    rows: dict[str, Ids]
    same_function: Mask
    """True if both accesses are of one native function."""
    by_turns: Mask
    """True if the functions of both accesses come by turns, again and again."""
    copies: Mask
    """True if that function loads data that its library has copied."""
    buffers: Mask
    """True if the memory is a buffer of the library's own, for copies of operands, or the state of an iterator."""
    iterated: Mask
    """True if a built-in function of Python called the library one element at a time."""
    built: Mask
    """True if no library did it: the interpreter made a new object of all the elements of others."""
    concatenated: Mask
    """True if it made one of two, or of a part of one."""
    read: Mask
    """True if the interpreter loaded elements that it went through, such as those of a sum."""
    settings: Mask
    """True for loads of dispatch that their own call repeats: what it looks up time and again."""

    def answered(self, kind: Kind) -> Mask:
        """True for accesses that were watched until it was known what becomes of them."""
        answered = np.isin(self.rows["outcome"], _ANSWERED)
        return np.asarray(answered if kind == "result" else answered & (self.rows["access"] == _ACCESS[kind]), np.bool_)

    def within(self) -> Mask:
        """True for pairs of loads in the same native function, in one call or in two."""
        pairs = (self.rows["access"] == Access.LOAD) & (self.rows["outcome"] == WatchOutcome.PAIR)
        return np.asarray(pairs & ~self.copies & ~self.built & self.same_function, np.bool_)

    def pairs(self, kind: Kind) -> Mask:
        """True for pairs of two calls in the same native function, or in functions that come by turns.

        Not for pairs within one call, unless that is a call of a built-in function which calls the library again and
        again. Of results: true for blocks whose content is known.
        """
        if kind == "result":
            released = (self.rows["outcome"] == WatchOutcome.RELEASED) & ~self.buffers
            return np.asarray(released & (self.rows["block_bytes"] >= LEAST_BYTES), np.bool_)
        pairs = (self.rows["access"] == _ACCESS[kind]) & (self.rows["outcome"] == WatchOutcome.PAIR)
        if kind == "load":
            pairs &= ~self.copies & ~self.settings
        pairs &= ~self.built | self.read  # allocators give the same memory to the next object
        calls = (self.rows["crossed"] == 1) | (self.iterated & ~self.built)
        return np.asarray(pairs & calls & (self.same_function | self.by_turns), np.bool_)


def _selected(
    columns: dict[str, Ids], borders: Borders, line_of_node: Ids, window: Window, chosen: Filter
) -> tuple[dict[str, Ids], Ids, Ids]:
    """The rows of native code below Python lines, with line and library."""
    mine = window.selects(columns["thread"], columns["time_ns"])
    if chosen.threads is not None:
        mine &= chosen.threads[columns["thread"]]
    library = borders.called_library(columns["stack"], columns["native_frame"], columns["native_stack"])
    mine &= library != NO_LIBRARY
    rows = {name: values[mine] for name, values in columns.items()}
    for side in ("", "partner_"):
        frame, path = f"{side}native_frame", f"{side}native_stack"
        rows[frame], rows[path] = borders.accessing(rows[frame], rows[path])
    return rows, line_of_node[rows["stack"]], library[mine]


def _arrays(batch: pa.RecordBatch, names: Iterable[str]) -> dict[str, Ids]:
    """Columns of numbers, NOTHING for null, and for a column that the recording's version does not have."""
    held = set(batch.schema.names)
    return {
        name: ids(_signed(batch.column(name))) if name in held else np.full(len(batch), NOTHING, np.int64)
        for name in names
    }


def _signed(column: pa.Array) -> pa.Array:
    return column.view(pa.int64()) if column.type == pa.uint64() else column.cast(pa.int64())


def read_watched(recording: Recording, borders: Borders, line_of_node: Ids, window: Window, chosen: Filter) -> Watched:
    """All of them within a window and a filter."""
    names = (*_COLUMNS, *_PARTNERS, *BLOCKS)
    schema = pa.schema([recording.specification.tables["redundancies"].schema.field(name) for name in names])
    batches = [no_rows(schema), *recording.batches("redundancies", names)]
    parts = [_selected(_arrays(batch, names), borders, line_of_node, window, chosen) for batch in batches]
    rows = {name: np.concatenate([part[0][name] for part in parts]) for name in names}
    # Work of the interpreter and its allocator for the library is the same for all libraries, and does not count.
    line, library = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    own = borders.in_library(rows["native_frame"]) | (library == borders.interpreter)
    read = (library == borders.interpreter) & borders.reads(rows["native_frame"], rows["native_stack"])
    own &= ~read | ~_beside_others(line, read, own & ~read)
    line, library, read = line[own], library[own], read[own]
    rows = {name: values[own] for name, values in rows.items()}
    same = borders.same_function(rows["native_frame"], rows["partner_native_frame"])
    partner_line = np.where(rows["partner_stack"] == NOTHING, NOTHING, line_of_node[rows["partner_stack"]])
    functions = borders.functions(rows["native_frame"]), borders.functions(rows["partner_native_frame"])
    loads = (
        (rows["outcome"] == WatchOutcome.PAIR)
        & (rows["access"] == Access.LOAD)
        & borders.in_library(rows["partner_native_frame"])
    )
    by_turns = in_cycles(
        (line, functions[0]),
        (partner_line, functions[1]),
        loads & (rows["crossed"] == 1),
        rows["equal"] == 1,
        loads & (rows["crossed"] == 0),
    )
    copies = borders.loads_copies(rows["native_frame"])
    return Watched(
        line,
        library,
        rows,
        same,
        by_turns,
        copies,
        (copies & (rows["access"] == Access.LOAD))
        | borders.is_packing(rows["native_frame"])
        | _in_blocks_of(line, rows["block_bytes"], borders.is_iterator(rows["native_frame"])),
        borders.is_iterated(rows["native_stack"]),
        library == borders.interpreter,
        borders.concatenates(rows["native_frame"], rows["native_stack"]) & (library == borders.interpreter),
        read & (rows["access"] == Access.LOAD),
        (rows["rested"] == 1) & borders.is_dispatch(rows["native_frame"]),
    )


def _in_blocks_of(line: Ids, block_bytes: Ids, chosen: Mask) -> Mask:
    """True for accesses to blocks of a size that the chosen ones have on the same line; NOTHING is no size."""
    blocks = np.unique(np.stack([line, block_bytes], axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    met = np.bincount(blocks[chosen], minlength=len(blocks))[blocks] > 0
    return np.asarray(chosen | (met & (block_bytes != NOTHING)), np.bool_)


def _beside_others(line: Ids, read: Mask, others: Mask) -> Mask:
    """True on lines where most accesses are not of the interpreter's that reads elements: it works for others there."""
    if not read.any():
        return np.zeros(len(line), np.bool_)
    count = int(line.max()) + 1
    of_line = np.bincount(line[others], minlength=count) >= np.bincount(line[read], minlength=count)
    return np.asarray(of_line[line], np.bool_)
