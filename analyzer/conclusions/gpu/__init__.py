"""What the GPUs did, joined by time to what the main threads did (docs/explanation/gpu.md)."""

from __future__ import annotations

from .gpu_report import Gpu, describe_gpu, gpu_totals
from .join import COLUMNS, GpuColumns, GpuJoin, GpuSums
from .readings import Readings, read_readings

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
