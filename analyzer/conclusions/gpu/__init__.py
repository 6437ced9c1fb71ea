"""What the GPUs did, joined by time to what the main threads did (docs/explanation/gpu.md)."""

from __future__ import annotations

from .columns import COLUMNS, GpuColumns
from .join import GpuJoin, GpuSums
from .readings import Readings, read_readings
from .report import Gpu, describe_gpu, gpu_totals

__all__ = [
    "COLUMNS",
    "Gpu",
    "GpuColumns",
    "GpuJoin",
    "GpuSums",
    "Readings",
    "describe_gpu",
    "gpu_totals",
    "read_readings",
]
