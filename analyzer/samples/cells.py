"""The small columns of a CPU sample, packed: a *cell* is one combination of what the rules of attribution look at.

There are few of them, so that a rule is asked once for a cell, and not once for a sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, ids, known, numbers

from ..recording.compat.opcodes import classes_of
from ..recording.interpreter_phases import ENDING
from ..recording.opened import Recording
from .native_frames import FrameClass, frame_classes

STATES = ENDING + 2
"""States of stacks: those of the format, the analyzer's own, and one for all that this version does not know."""

_ORIGINS, _KERNEL, _OPCODES, _FRAMES = 8, 2, 5, len(FrameClass)
_SIZES = (
    ("stack_state", STATES),
    ("origin", _ORIGINS),
    ("kernel_known", _KERNEL),
    ("opcode_class", _OPCODES),
    ("frame_class", _FRAMES),
)
"""Columns and how many values each has, the one that changes fastest first."""

CELLS = STATES * _ORIGINS * _KERNEL * _OPCODES * _FRAMES


class CellPacker:
    """Packs the rows of one recording's ``cpu``."""

    def __init__(self, recording: Recording) -> None:
        processes, threads = recording.table("processes"), recording.table("threads")
        frames = frame_classes(recording.table("native_frames"), recording.table("modules"), processes)
        self._frames = frames.astype(np.uint16) * (_OPCODES * _KERNEL * _ORIGINS * STATES)
        versions = processes.column("python_version").to_pylist()
        opcodes = np.stack([classes_of(version) for version in versions] or [classes_of(None)])
        self._opcodes = opcodes.astype(np.uint16) * (_KERNEL * _ORIGINS * STATES)
        self._process = ids(threads.column("process"))

    def pack(
        self, batch: pa.RecordBatch, thread: NDArray[np.integer], state: NDArray[np.integer]
    ) -> NDArray[np.uint16]:
        """The cell of each row of a batch, whose stack states are ``state``."""
        system = batch.column("system_ns")
        kernel: NDArray[Any] | bool = known(system) if system.null_count else True
        cell: NDArray[np.uint16] = np.take(self._frames, filled(batch.column("native_frame"), len(self._frames) - 1))
        cell += self._opcode_part(thread, filled(batch.column("opcode"), 0))
        cell += _scaled(kernel, _ORIGINS * STATES)
        # Values that this version does not know count as the last.
        cell += _scaled(np.minimum(numbers(batch.column("origin")), _ORIGINS - 1), STATES)
        cell += _scaled(state, 1)
        return cell

    def _opcode_part(self, thread: NDArray[np.integer], opcode: NDArray[np.integer]) -> NDArray[np.uint16]:
        """The opcode's part of the cells; its meaning depends on the version of the thread's interpreter."""
        if len(self._opcodes) == 1:
            return np.take(self._opcodes[0], opcode)
        cells: NDArray[np.uint16] = self._opcodes[self._process[thread], opcode]
        return cells


def unpacked(cell: NDArray[np.integer]) -> dict[str, NDArray[np.integer | np.bool_]]:
    """The columns of which cells are made: stack_state, origin, kernel_known, opcode_class, frame_class."""
    columns: dict[str, NDArray[np.integer | np.bool_]] = {}
    for name, size in _SIZES:
        cell, columns[name] = np.divmod(cell, size)
    columns["kernel_known"] = columns["kernel_known"].astype(np.bool_)
    return columns


def _scaled(values: NDArray[np.integer] | bool, factor: int) -> NDArray[np.uint16] | np.uint16:
    """Values times a factor, as part of cells; one number if they are all equal, which they mostly are."""
    if isinstance(values, bool):
        return np.uint16(values * factor)
    if len(values) and values.min() == values.max():
        return np.uint16(int(values[0]) * factor)
    return values.astype(np.uint16) * np.uint16(factor)
