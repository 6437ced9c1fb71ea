"""Time in the interpreter's garbage collector, by the lines that set collections off; it is a part of Python's time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.frame import Frame
from ..recording.opened import Recording
from ..samples.accumulate import summed
from ..samples.cells import STATES
from ..samples.native_frames import FrameClass, stripped
from ..samples.nodes import NodeSums, joined
from ..samples.reduction import Facts
from ..samples.sites import state_label
from ..samples.summary import Columns, Placement

MEASURE = "collector_ns"
COLUMN = "gc_s"

_Floats = NDArray[np.float64]


def collector_sums(cpu: Frame, nodes: int) -> NodeSums:
    """Nanoseconds of rows of ``Facts.cpu`` by node or stack state."""
    mine = cpu.take(cpu["frame_class"] == FrameClass.COLLECTOR)
    placed = mine["stack"] >= 0
    inside, outside = mine.take(placed), mine.take(~placed)
    own = summed(inside["stack"], inside["python_ns"], nodes)
    by_state = summed(outside["stack_state"].astype(np.int64), outside["python_ns"], STATES)
    labels = [state_label(number) for number in range(STATES)]
    return joined([NodeSums((MEASURE,), own[:, None], labels, by_state[:, None])])


def collector_known(facts: Facts, recording: Recording) -> bool:
    """Whether it is known: samples tell of collections, as since version 1.4, or else names of functions do."""
    if facts.collections_known:
        return True
    if len(facts.cpu) and not (facts.cpu["frame_class"] != FrameClass.UNKNOWN).any():
        return False
    return not without_names(facts, recording)


def without_names(facts: Facts, recording: Recording) -> bool:
    """Whether the collector's time is not known for want of names."""
    tables = (recording.table(name) for name in ("native_frames", "modules"))
    return not facts.collections_known and stripped(*tables)


@dataclass(frozen=True)
class CollectorColumns:
    """Makes the column ``gc_s`` from the measures ``names`` of a summary; NaN where it is not ``known``."""

    names: tuple[str, ...]
    known: bool

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """Seconds in collections that were set off there."""
        del placement, total
        return {COLUMN: own[:, self.names.index(MEASURE)] / 1e9 if self.known else np.full(len(own), np.nan)}
