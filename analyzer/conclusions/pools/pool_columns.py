"""The columns about native threads in the frames of a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...samples.summary import Columns, Placement
from .pool_sums import MEASURE

COLUMNS = ("pool_cpu_s", "total_pool_cpu_s")
"""CPU seconds that native threads spent for a line itself, and for all that it calls; no part of ``cpu_s``."""


@dataclass(frozen=True)
class PoolColumns:
    """Makes the columns from the measures ``names`` of a summary."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: NDArray[np.float64], total: NDArray[np.float64]) -> Columns:
        """The columns, for every row of a frame."""
        del placement
        place = self.names.index(MEASURE)
        return dict(zip(COLUMNS, (own[:, place] / 1e9, total[:, place] / 1e9), strict=True))
