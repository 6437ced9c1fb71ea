"""The small columns of a CPU sample, packed: a *cell* is one combination of what the rules of attribution look at.

There are few of them, so that a rule is asked once for a cell, and not once for a sample.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ..recording.compat.opcodes import classes_of
from ..recording.interpreter_phases import ENDING
from ..recording.opened import Recording
from .native_callers import ForeignCallers
from .native_frames import FrameClass, frame_classes

STATES = ENDING + 2
"""States of stacks: those of the format, the analyzer's own, and one for all that this version does not know."""

_ORIGINS, _KERNEL, _OPCODES, _FRAMES, _CALLERS = 8, 2, 5, len(FrameClass), 2
_SIZES = (
    ("stack_state", STATES),
    ("origin", _ORIGINS),
    ("kernel_known", _KERNEL),
    ("opcode_class", _OPCODES),
    ("frame_class", _FRAMES),
    ("foreign_caller", _CALLERS),
)
"""Columns and how many values each has, the one that changes fastest first."""

_COLLECTS = (FrameClass.MACHINERY, FrameClass.INTERIOR, FrameClass.RUNTIME)
"""Where a thread in a collection may be for its sake. The Python code of finalizers has lines of its own."""

CELLS = STATES * _ORIGINS * _KERNEL * _OPCODES * _FRAMES * _CALLERS


class CellPacker:
    """Packs the columns of one recording's ``cpu``."""

    def __init__(self, recording: Recording) -> None:
        processes, threads = recording.table("processes"), recording.table("threads")
        self._frames = frame_classes(recording.table("native_frames"), recording.table("modules"), processes)
        versions = processes.column("python_version").to_pylist()
        self._opcodes = np.stack([classes_of(version) for version in versions] or [classes_of(None)])
        self._process = ids(threads.column("process"))
        self._callers = ForeignCallers(recording, self._frames)

    def pack(self, columns: Mapping[str, NDArray[np.int64]]) -> NDArray[np.uint16]:
        """The cell of each group of samples (``groups.SampleGroups``)."""
        values = {
            "stack_state": columns["stack_state"],
            # Values that this version does not know count as the last.
            "origin": np.minimum(columns["origin"], _ORIGINS - 1),
            "kernel_known": columns["kernel_known"],
            # The opcode's meaning depends on the version of the thread's interpreter.
            "opcode_class": self._opcodes[self._process[columns["thread"]], columns["opcode"]],
            "frame_class": self._frames[columns["native"]],
            "foreign_caller": self._callers.of(columns["stack"], columns["native_stack"], columns["native_path"]),
        }
        # Where the sample itself tells, no name is needed: what collections free is theirs, and not all that has such a
        # name is run by them alone.
        frame = values["frame_class"]
        within = (columns["collecting"] == 1) & ~values["foreign_caller"] & np.isin(frame, _COLLECTS)
        without = (columns["collecting"] == 0) & (frame == FrameClass.COLLECTOR)
        values["frame_class"] = np.select([within, without], [FrameClass.COLLECTOR, FrameClass.INTERIOR], frame)
        cell = np.zeros(len(columns["thread"]), np.int64)
        for name, size in reversed(_SIZES):
            cell = cell * size + values[name]
        return cell.astype(np.uint16)


def unpacked(cell: NDArray[np.integer]) -> dict[str, NDArray[np.integer | np.bool_]]:
    """The columns of which cells are made: those of ``_SIZES``."""
    columns: dict[str, NDArray[np.integer | np.bool_]] = {}
    for name, size in _SIZES:
        cell, columns[name] = np.divmod(cell, size)
    for name in ("kernel_known", "foreign_caller"):
        columns[name] = columns[name].astype(np.bool_)
    return columns
