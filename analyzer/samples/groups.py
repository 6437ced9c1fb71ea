"""Groups of CPU samples: those that are equal in all but their times and weights; they have one number and one sum.

What is known of a sample's thread, stacks, native frame, opcode and state is asked once for its group. Time grows with
the number of samples and memory with the number of groups: the rules divide sums, which is the same as the sums of what
they would divide.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, known, numbers
from tachograph.format.enumerations import NativePath

from ..recording.opened import Recording
from ..recording.tree import NOTHING
from .accumulate import Keys, Totals
from .cells import STATES, CellPacker

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
        sizes |= {"opcode": _BYTE, "collecting": 3, "thread": max(recording.rows("threads"), 1)}
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
        """By group, what attribution looks at (``cells.unpacked``)."""
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
        """By group: count, cpu_ns, system_ns and delay_ns."""
        self._totals.grow(len(self._groups))
        return self._totals

    def add(
        self, group: Ids, weight_ns: Floats, elapsed_ns: Floats, system_ns: Floats | None, delay_ns: Floats | None
    ) -> None:
        """Adds samples by their groups; arguments as in ``stream.CpuBatch``."""
        weights = {"cpu_ns": weight_ns, "system_ns": system_ns, "delay_ns": delay_ns}
        self._totals.add(group, len(self._groups), weights)
        self.weight_squared += float(np.einsum("i,i->", weight_ns, elapsed_ns))
