"""``fleet memory``: how much recordings hold at their peaks, and which leaks several hosts have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .selection import Selection

QUANTILES = {"least": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}


@dataclass(frozen=True)
class FleetMemory:
    """Memory of a fleet, in bytes.

    ``peaks``: measure (peak, resident_peak, end), least, median, p90, p99, most, recordings, largest (the recording
    that holds most). ``leaks``: name, file, line, hosts and recordings that have it, ``of`` recordings, median
    ``rate_bytes_per_s``, ``leaked_bytes`` (the sum), likelihood (the median), ``confirmed`` (on enough hosts).
    """

    peaks: pd.DataFrame
    leaks: pd.DataFrame


def memory(selection: Selection, *, confirmed_on: int = 2, anyway: bool = False) -> FleetMemory:
    """Peaks and leaks; a leak is confirmed where ``confirmed_on`` hosts have it.

    Errors:
        FormatError: no recording has memory, or some have it and others do not.
    """
    selection.refuse_mixed("memory", anyway=anyway)
    rows = []
    for measure, column in (("peak", "peak_bytes"), ("resident_peak", "resident_peak_bytes"), ("end", "end_bytes")):
        known = selection.frame.dropna(subset=[column])
        values = known[column]
        told = {name: float(values.quantile(at)) if len(values) else np.nan for name, at in QUANTILES.items()}
        largest = known["path"].iat[int(values.to_numpy().argmax())] if len(values) else None
        rows.append({"measure": measure, **told, "recordings": len(values), "largest": largest})
    return FleetMemory(pd.DataFrame(rows), _leaks(selection, confirmed_on))


def _leaks(selection: Selection, confirmed_on: int) -> pd.DataFrame:
    hosts = selection.frame[["recording", "host", "path"]].copy()
    hosts["host"] = hosts["host"].fillna(hosts["path"])  # of an unknown host each recording is one
    found = selection.query(
        "leaks",
        "SELECT any_value(name) AS name, file, min(line) AS line, count(DISTINCT hosts.host) AS hosts,"
        " count(DISTINCT recording) AS recordings, median(rate_bytes_per_s) AS rate_bytes_per_s,"
        " sum(leaked_bytes) AS leaked_bytes, median(likelihood) AS likelihood"
        " FROM t JOIN hosts USING (recording) GROUP BY file, coalesce(name, ''), line"
        " ORDER BY hosts DESC, leaked_bytes DESC, name",
        hosts=hosts[["recording", "host"]],
    )
    found["line"] = found["line"].astype("Int64")
    return found.assign(of=len(selection), confirmed=found["hosts"] >= confirmed_on)
