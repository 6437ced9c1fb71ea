"""The GPUs over time, for the timeline of a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ...report_data.report_data import ReportData
from .pack import number

MAX_DEVICES = 8
"""GPUs that are drawn at most: those that the program used come first."""


def gpu_document(picture: ReportData) -> list[dict[str, Any]] | None:
    """By GPU how busy it was in each span of time (null: unknown) and its memory; None if GPUs were not read."""
    gpu, bins = picture.profile.gpu, picture.bins
    if gpu is None:
        return None
    order = gpu.devices.sort_values("used", ascending=False, kind="stable")
    shown = order[order["used"]] if order["used"].any() else order
    documents = []
    for row in shown.head(MAX_DEVICES).itertuples():
        mine = gpu.timeline[gpu.timeline["device"] == row.device]
        held = mine[mine["memory_bytes"].notna()]
        documents.append(
            {
                "label": "GPU" if len(gpu.devices) == 1 else f"GPU {int(row.device)}",
                "name": None if pd.isna(row.name) else row.name,
                "share": number(row.busy_share),
                "busy": [number(value, 4) for value in busy_by_span(mine, bins.start_s, bins.width_s, bins.count)],
                "memory": [
                    [number(float(at), 6), number(float(size), 5)]
                    for at, size in thinned(held[["time_s", "memory_bytes"]], 4 * bins.count).to_numpy()
                ],
            }
        )
    return documents


def busy_by_span(timeline: pd.DataFrame, start_s: float, width_s: float, count: int) -> list[float]:
    """The mean of what is known in each span of time, NaN where nothing is; each value holds since the one before."""
    known = timeline[timeline["busy_share"].notna()]
    end, share = known["time_s"].to_numpy(np.float64), known["busy_share"].to_numpy(np.float64)
    if len(end) < 2:
        return [float("nan")] * count
    edges = start_s + np.arange(count + 1) * width_s
    work = np.concatenate(([0.0], np.cumsum(share[1:] * np.diff(end))))
    done = np.diff(np.interp(edges, end, work))
    covered = np.diff(np.clip(edges, end[0], end[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(covered > 0.05 * width_s, done / covered, np.nan)
    return [float(value) for value in means]


def thinned(points: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Points without those in the middle of a run of equal values; the highest of each group where there are many."""
    value = points["memory_bytes"]
    points = points[(value != value.shift()) | (value != value.shift(-1))]
    if len(points) <= limit:
        return points
    group = np.arange(len(points)) * limit // len(points)
    return points.loc[points.groupby(group)["memory_bytes"].idxmax()]
