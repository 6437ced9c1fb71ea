"""The columns about GPUs in the frames of a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...samples.summary import Columns, Placement
from .join import GpuSums
from .steps import Floats

COLUMNS = ("gpu_s", "gpu_share", "gpu_memory_bytes", "gpu_peak_bytes", "total_gpu_s", "total_gpu_share")

LEAST_KNOWN_NS = 1_000_000
"""Of less time than this the driver's samples, a hundred times as long, say nothing."""


@dataclass(frozen=True)
class GpuColumns:
    """Makes the columns from the measures ``names`` of a summary; NaN where GPUs were not read."""

    names: tuple[str, ...]
    gpu: GpuSums | None

    def columns(self, placement: Placement, own: Floats, total: Floats) -> Columns:
        """The columns, for every row of a frame."""
        if self.gpu is None:
            return dict.fromkeys(COLUMNS, np.full(placement.rows, np.nan))
        seconds, share = self._busy(own)
        total_seconds, total_share = self._busy(total)
        bytes_, known = self._of(own, "gpu_byte_ns"), self._of(own, "gpu_byte_known_ns")
        values = (seconds, share, _ratio(bytes_, known, 0.0), self._peaks(placement), total_seconds, total_share)
        return dict(zip(COLUMNS, values, strict=True))

    def _of(self, values: Floats, name: str) -> Floats:
        return values[:, self.names.index(name)]

    def _busy(self, values: Floats) -> tuple[Floats, Floats]:
        busy, known = self._of(values, "gpu_ns"), self._of(values, "gpu_known_ns")
        return np.where(known > 0, busy / 1e9, np.nan), _ratio(busy, known, LEAST_KNOWN_NS)

    def _peaks(self, placement: Placement) -> Floats:
        assert self.gpu is not None
        labels = [placement.label_rows[label] for label in self.gpu.sums.labels]
        rows = np.concatenate((placement.node_rows, np.array(labels, np.int64)))
        peaks = np.full(placement.rows, np.nan)
        np.fmax.at(peaks, rows, self.gpu.peak_bytes)
        return peaks


def _ratio(part: Floats, whole: Floats, least: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > least, np.clip(part / whole, 0.0, None), np.nan)
