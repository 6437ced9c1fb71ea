"""The GPUs as wholes: for the head of reports, timelines and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from ...recording.opened import Recording
from ...recording.text import printable
from ...recording.time_window import Window
from .join import GpuSums
from .readings import WHOLE, Floats, Readings, summed_memory

if TYPE_CHECKING:
    import pandas as pd

DEVICE_COLUMNS = (
    "device", "index", "name", "uuid", "memory_bytes", "driver", "busy_share", "peak_bytes", "power_w", "energy_j",
    "temperature_c", "users", "used",
)  # fmt: skip
TIMELINE_COLUMNS = ("time_s", "device", "busy_share", "memory_bytes", "power_w")


class GpuTotals(TypedDict, total=False):
    """The fields of ``Totals`` about GPUs, as far as they are known."""

    gpu_s: float | None
    gpu_share: float | None
    gpu_peak_bytes: float | None


@dataclass(frozen=True)
class Gpu:
    """``devices`` has DEVICE_COLUMNS (means and the most over the window), ``timeline`` TIMELINE_COLUMNS.

    In a timeline a row with ``busy_share`` covers the time since the device's previous such row.
    """

    devices: pd.DataFrame
    timeline: pd.DataFrame
    shared: bool
    """True if other processes used a GPU of the program, or none of its own could be recognised."""


def describe_gpu(recording: Recording, readings: Readings, window: Window) -> Gpu:
    """The GPUs in a window."""
    import pandas as pd  # not loaded for a report without GPUs

    zero = recording.start_ns
    end = recording.end_ns
    start_ns = max(zero, window.start_ns)
    end_ns = min(window.end_ns, end if end is not None else int(readings.rows["time_ns"].max()))
    owned = readings.rows[readings.rows["process"] != WHOLE]
    devices, timelines = [], []
    for row in readings.devices.rename(columns={"index": "index_"}).itertuples():
        device = int(row.device)
        whole = readings.whole(device)
        inside = whole[(whole["time_ns"] >= start_ns) & (whole["time_ns"] <= end_ns)]
        busy, covered = (values[0] for values in _between(readings, device, start_ns, end_ns))
        power = inside["power_mw"].mean() / 1e3
        devices.append(
            (
                device,
                None if pd.isna(row.index_) else int(row.index_),
                _text(row.name),
                _text(row.uuid),
                _number(row.memory_bytes),
                _text(row.driver),
                busy / covered if covered > 0 else np.nan,
                inside["memory_bytes"].max(),
                power,
                power * (end_ns - start_ns) / 1e9,
                inside["temperature_c"].max(),
                inside["users"].max(),
                bool((owned["device"] == device).any()),
            )
        )
        timelines.append(_timeline(inside, device, zero))
    timeline = pd.concat(timelines, ignore_index=True) if timelines else pd.DataFrame(columns=list(TIMELINE_COLUMNS))
    frame = pd.DataFrame(devices, columns=list(DEVICE_COLUMNS))
    of_ours = frame[frame["used"]] if frame["used"].any() else frame
    others = bool((of_ours["users"] > owned["process"].nunique()).any())
    unknown = not len(owned) and bool((frame["busy_share"] > 0).any())
    return Gpu(frame, timeline, others or unknown)


def gpu_totals(gpu: Gpu, sums: GpuSums, readings: Readings, window: Window) -> GpuTotals:
    """Device-seconds that the GPUs were busy while the threads in question lived, their share, and the peak."""
    busy, covered = sums.sums.total("gpu_ns"), sums.sums.total("gpu_known_ns")
    used = gpu.devices[gpu.devices["used"]] if gpu.devices["used"].any() else gpu.devices
    rows = readings.rows
    memory = rows[rows["memory_bytes"].notna() & window.contains(rows["time_ns"].to_numpy(np.int64))]
    owned = memory[memory["process"] != WHOLE]
    if len(owned):
        each = [summed_memory(mine).bytes.max() for _, mine in owned.groupby("process")]
        peak = float(np.max(each)) if len(each) == 1 else _peak_together(owned)
    else:
        of_used = memory[memory["device"].isin(used["device"])]
        peak = float(summed_memory(of_used).bytes.max()) if len(of_used) else np.nan
    return {
        "gpu_s": busy / 1e9 if covered > 0 else None,
        "gpu_share": busy / covered if covered > 0 else None,
        "gpu_peak_bytes": None if np.isnan(peak) else peak,
    }


def _peak_together(rows: pd.DataFrame) -> float:
    """The most that several processes held at one time."""
    table = rows.pivot_table(index="time_ns", columns=["device", "process"], values="memory_bytes", aggfunc="last")
    # A process that has no row at a reading of its GPU has ended.
    return float(table.sort_index().ffill(limit=1).fillna(0.0).sum(axis=1).max())


def _between(readings: Readings, device: int, start_ns: int, end_ns: int) -> tuple[Floats, Floats]:
    return readings.device_busy(device).between(np.array([start_ns]), np.array([end_ns]))


def _timeline(rows: pd.DataFrame, device: int, zero: int) -> pd.DataFrame:
    import pandas as pd

    timed = rows["since_ns"].notna()
    busy = rows["busy_percent"].where(timed) if timed.any() else rows["busy_percent"]
    frame = pd.DataFrame(
        {
            "time_s": (rows["time_ns"] - zero) / 1e9,
            "device": device,
            "busy_share": busy / 100,
            "memory_bytes": rows["memory_bytes"],
            "power_w": rows["power_mw"] / 1e3,
        }
    )
    measured = frame[["busy_share", "memory_bytes", "power_w"]].notna().any(axis=1)
    return frame[measured]


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) else None


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)
