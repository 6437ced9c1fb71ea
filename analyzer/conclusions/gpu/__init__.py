"""What the GPUs did, joined by time to what the main threads did (docs/explanation/gpu.md)."""

from __future__ import annotations

from .columns import COLUMNS, GpuColumns
from .join import GpuSums, join_gpu
from .readings import Readings, read_readings
from .report import Gpu, describe_gpu, gpu_totals

__all__ = [
    "COLUMNS",
    "Gpu",
    "GpuColumns",
    "GpuSums",
    "Readings",
    "describe_gpu",
    "gpu_totals",
    "join_gpu",
    "read_readings",
]
