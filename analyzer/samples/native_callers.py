"""Whether a sample's program counter was called by code outside of the interpreter: its native call path tells.

An extension module calls the interpreter's allocator, and the C library copies for it. The program counter lies in the
interpreter or in the C library then, and the opcode need not be a call (``a / b`` of two decimals is none), so neither
tells for whom the work is done. The path does: what lies between the program counter and the activation of the
evaluation loop that runs the leaf is what the leaf's instruction called.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids
from tachograph.format.enumerations import NativePath

from ..recording.opened import Recording
from ..recording.tree import NOTHING, Tree
from .native_frames import FrameClass

_KNOWN = (NativePath.WHOLE, NativePath.TRUNCATED, NativePath.TORN)
"""Paths of which the innermost frames are facts; a guessed one decides nothing."""


class ForeignCallers:
    """Finds foreign callers in a recording's native paths; ``classes`` are those of ``native_frames.frame_classes``."""

    def __init__(self, recording: Recording, classes: NDArray[np.integer]) -> None:
        table = recording.table("native_stacks")
        parent, runs = ids(table.column("parent"), NOTHING), ids(table.column("stack"), NOTHING)
        frame = ids(table.column("native_frame"), len(classes) - 1)
        self._leaf = np.append(_served(Tree(parent), runs, classes[frame] == FrameClass.OUTSIDE), NOTHING)
        """By node of a path, and for none: the Python frame whose instruction called foreign code that led there."""

    def of(
        self, stack: NDArray[np.integer], native_stack: NDArray[np.integer], how: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Whether foreign code is between each sample's program counter and the Python frame at its leaf.

        Arguments as columns of ``groups.SampleGroups``, where an id of none is the number of rows of its table.
        """
        found: NDArray[np.bool_] = (self._leaf[native_stack] == stack) & np.isin(how, _KNOWN)
        return found


def _served(paths: Tree, runs: NDArray[np.int64], outside: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each node the innermost Python frame of its activation, if a frame within that is ``outside``."""
    if not len(paths):
        return np.zeros(0, np.int64)
    activation = runs != NOTHING
    activated, first = paths.nearest(activation), paths.nearest(activation | outside)
    between = (activated != NOTHING) & (first != activated)
    return np.where(between, runs[activated], NOTHING)
