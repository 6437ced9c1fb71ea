"""Reads the tables of GPUs: what each GPU did, and each recorded process on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...recording.opened import Recording
from .steps import Busy, Floats, Held, Ids, busy_of, busy_or_idle, together, with_edges

if TYPE_CHECKING:
    import pandas as pd

WHOLE = -1
"""Stands for the whole GPU in the column of processes."""

LONGEST_GAP_NS = 2_000_000_000
"""A reading further than this from the one before tells nothing of the time between them."""

COLUMNS = (
    "time_ns", "since_ns", "device", "process", "busy_percent", "memory_bytes", "power_mw", "temperature_c", "users",
)  # fmt: skip


@dataclass(frozen=True)
class Readings:
    """The rows of ``gpu`` (floats, NaN is unknown; process WHOLE is the whole GPU) and of ``gpu_devices``."""

    rows: pd.DataFrame
    devices: pd.DataFrame

    def device_busy(self, device: int) -> Busy:
        """How busy a GPU was: by the driver's samples with times, or by its readings where it has none."""
        mine = self.whole(device)
        timed = mine[mine["since_ns"].notna() & mine["busy_percent"].notna()]
        if len(timed):
            timed = timed.sort_values("time_ns", kind="stable")
            return busy_of(*with_edges(_ns(timed["since_ns"]), _ns(timed["time_ns"]), _share(timed)))
        read = mine[mine["busy_percent"].notna()]
        end, share = _ns(read["time_ns"]), _share(read)
        near = np.diff(end) <= LONGEST_GAP_NS
        return busy_of(end[:-1][near], end[1:][near], share[1:][near])

    def process_busy(self, device: int, process: int) -> Busy | None:
        """How busy a process kept a GPU; None if the driver never told that of any process."""
        users = self.rows[(self.rows["device"] == device) & (self.rows["process"] != WHOLE)]
        told = users[users["busy_percent"].notna() & users["since_ns"].notna()]
        read = self.whole(device)["time_ns"]
        if not len(told) or not len(read):
            return None
        mine = told[told["process"] == process]
        first, last = int(read.min()), int(read.max())
        return busy_or_idle(_ns(mine["since_ns"]), _ns(mine["time_ns"]), _share(mine), first, last)

    def whole(self, device: int) -> pd.DataFrame:
        """The rows of a whole GPU."""
        return self.rows[(self.rows["device"] == device) & (self.rows["process"] == WHOLE)]

    def shared(self, device: int) -> bool:
        """Whether more than one process was ever seen on a GPU."""
        users = self.whole(device)["users"]
        return bool((users > 1).any())

    def used_by(self, process: int) -> list[int]:
        """The GPUs on which a process was seen; all of them where no process could be told from another."""
        known = self.rows[self.rows["process"] != WHOLE]
        if not len(known):
            return sorted(self.devices["device"].tolist())
        return sorted(known.loc[known["process"] == process, "device"].unique().tolist())

    def busy(self, process: int) -> Busy:
        """Device-nanoseconds that the GPUs of a process were busy: with it where others use them and that is known."""
        parts = []
        for device in self.used_by(process):
            own = self.process_busy(device, process) if self.shared(device) else None
            parts.append(self.device_busy(device) if own is None else own)
        return together(parts)

    def held(self, process: int) -> Held:
        """Memory of GPUs that a process held; that of the whole GPUs where the driver does not tell."""
        rows = self.rows[self.rows["memory_bytes"].notna()]
        mine = rows[rows["process"] == process]
        if not len(mine):
            mine = rows[(rows["process"] == WHOLE) & rows["device"].isin(self.used_by(process))]
        return summed_memory(mine)


def read_readings(recording: Recording) -> Readings | None:
    """All readings of a recording, None if GPUs were not read."""
    if not recording.rows("gpu"):
        return None
    import pandas as pd  # not loaded for a report without GPUs

    # Floating point, which pandas would make of times where some are missing, has no room for all of them.
    exact = {pa.int64(): pd.Int64Dtype()}
    parts = [
        batch.to_pandas().assign(since_ns=batch.column("since_ns").to_pandas(types_mapper=exact.get))
        for batch in recording.batches("gpu", COLUMNS)
    ]
    rows = pd.concat(parts, ignore_index=True)
    rows["process"] = rows["process"].fillna(WHOLE).astype(np.int64)
    rows["device"] = rows["device"].astype(np.int64)
    for name in ("busy_percent", "memory_bytes", "power_mw", "temperature_c", "users"):
        rows[name] = rows[name].astype(np.float64)
    rows.loc[rows["busy_percent"] > 100, "busy_percent"] = np.nan
    return Readings(rows, recording.table("gpu_devices").to_pandas())


def summed_memory(rows: pd.DataFrame) -> Held:
    """Memory over time of the rows of one or several GPUs, added up."""
    if not len(rows):
        return Held(np.zeros(0, np.int64), np.zeros(0))
    table = rows.pivot_table(index="time_ns", columns="device", values="memory_bytes", aggfunc="last")
    table = table.sort_index().ffill().fillna(0.0)
    return Held(table.index.to_numpy(np.int64), table.sum(axis=1).to_numpy(np.float64))


def _ns(column: pd.Series) -> Ids:
    return np.asarray(column.astype(np.int64), np.int64)


def _share(rows: pd.DataFrame) -> Floats:
    return np.asarray(rows["busy_percent"].to_numpy(np.float64) / 100, np.float64)


def processes_of_threads(recording: Recording) -> NDArray[np.int64]:
    """The process of each thread."""
    return np.asarray(recording.table("threads").column("process").to_numpy(), np.int64)
