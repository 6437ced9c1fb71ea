"""GPU activity, joined by time to the stacks of the main threads (docs/explanation/gpu.md)."""

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
