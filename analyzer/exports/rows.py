"""The one shape in which all metrics are read: how much, when, in which thread, on which stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..samples.cells import STATES
from ..samples.sites import state_label

NONE = -1
"""Stands for "none" among ids."""

STATE_LABELS = [state_label(state) for state in range(STATES)]
"""Labels by state of the stack: ``stack_state``, and the analyzer's own for start and end of the interpreter."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one metric; all arrays have one length.

    ``thread`` is an id of ``threads``, or the number of threads plus a process id for what belongs to none of its
    threads. ``stack`` and ``native`` are ids or NONE. ``state`` says why there is no stack: it is the place of a name
    in ``labels``. ``weight`` is in nanoseconds or bytes. ``blocks`` is how many blocks of memory a row stands for.
    """

    time_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    stack: NDArray[np.int64]
    native: NDArray[np.int64]
    state: NDArray[np.int64]
    weight: NDArray[np.float64]
    labels: Sequence[str]
    native_stack: NDArray[np.int64] | None = None
    """Native call paths, NONE where there is none; None if they are not of interest."""
    native_path: NDArray[np.int64] | None = None
    """How they were got: values of the enumeration ``native_path``."""
    blocks: NDArray[np.float64] | None = None
    """None where rows are not of blocks, or their number is not of interest; 0 where it is unknown."""

    def only(self, wanted: NDArray[np.bool_]) -> Rows:
        """The wanted rows."""
        if wanted.all():
            return self
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays: dict[str, Any] = {
            name: array[wanted] for name, array in values.items() if isinstance(array, np.ndarray)
        }
        return replace(self, **arrays)

    def __len__(self) -> int:
        return len(self.weight)
