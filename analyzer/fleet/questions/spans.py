"""``fleet spans`` and ``fleet memory``: durations and costs of named spans; memory peaks, leaks on several hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...profile.span_sums import QUANTILES as DURATIONS
from ...statistics.ratios import FEWEST, pooled, ratios
from ...statistics.relative_buckets import quantile
from .selection import Selection
from .top import MAX_GROUPS, groups_of


def spans(selection: Selection, *, by: str | None = None, limit: int = 20) -> pd.DataFrame:
    """The named spans with the most time, the most first.

    Columns: with ``by`` first ``group``; ``name``; ``count``; ``mean_s`` with ``low`` and ``high`` (seconds that one
    lasts, and its 95 % interval over hosts, as in ``questions.top``); ``p50_s``, ``p95_s`` and ``p99_s`` (that so large
    a part of them lasted at most, to within 2 %); ``cpu_s``, ``wait_s``, ``await_s`` and
    ``allocated_bytes`` (of one, with the spans within it; NaN is unknown); ``longest_s`` and ``longest_in`` (the
    recording that has it); ``recordings`` that have the span, and ``of`` how many there are.

    Errors:
        FormatError: no recording has the label ``by``.
    """
    if by is None:
        return _of(selection, limit)
    parts = [_of(each, limit).assign(group=value) for value, each in groups_of(selection, by)[:MAX_GROUPS]]
    return pd.concat([part[["group", *part.columns.drop("group")]] for part in parts], ignore_index=True)


_SUMS = ("duration_s", "cpu_s", "wait_s")
_SOMETIMES = ("await_s", "allocated_bytes")
"""Not known of every recording: their means are those of the spans in the others."""


def _of(selection: Selection, limit: int) -> pd.DataFrame:
    spans = selection.query(
        "spans",
        "SELECT name, recording, sum(count) AS count, sum(duration_s) AS duration_s, max(longest_s) AS longest_s,"
        " sum(total_cpu_s) AS cpu_s, sum(total_wait_s) AS wait_s, sum(total_await_s) AS await_s,"
        " sum(total_allocated_bytes) AS allocated_bytes FROM t WHERE count > 0 GROUP BY 1, 2",
    )
    lasted = selection.query("span_durations", "SELECT name, bucket, sum(count) AS count FROM t GROUP BY 1, 2").groupby(
        "name"
    )
    names = spans.groupby("name")["duration_s"].sum().sort_values(ascending=False, kind="stable").index[:limit]
    places = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    paths = selection.frame["path"].to_numpy(object)
    rows = []
    units_of_all = selection.units(by_host=selection.hosts >= FEWEST)
    for name in names:
        mine = spans[spans["name"] == name]
        at = places[mine["recording"].to_numpy()].to_numpy()
        count = np.zeros(len(selection))
        sums = np.zeros((len(_SUMS), len(selection)))
        count[at] = mine["count"].to_numpy()
        sums[:, at] = mine[[*_SUMS]].to_numpy(np.float64).T
        has_span = count > 0
        units = np.unique(units_of_all[has_span], return_inverse=True)[1]
        mean = ratios(*pooled(np.nan_to_num(sums[:, has_span]), count[has_span], units))
        unknown = np.isnan(sums[:, at]).all(axis=1)
        value = np.where(unknown, np.nan, mean.value)
        longest = int(mine["longest_s"].to_numpy().argmax())
        rows.append(
            {
                "name": name,
                "count": int(count.sum()),
                "mean_s": float(value[0]),
                "low": float(mean.low[0]),
                "high": float(mean.high[0]),
                **_quantiles(lasted.get_group(name)),
                "cpu_s": float(value[1]),
                "wait_s": float(value[2]),
                **{each: _mean(mine[each], mine["count"]) for each in _SOMETIMES},
                "longest_s": float(mine["longest_s"].iat[longest]),
                "longest_in": paths[at[longest]],
                "recordings": len(mine),
                "of": len(selection),
            }
        )
    columns = ("name", "count", "mean_s", "low", "high", *DURATIONS, *_SUMS[1:], *_SOMETIMES, "longest_s", "longest_in")
    return pd.DataFrame(rows, columns=[*columns, "recordings", "of"])


def _quantiles(lasted: pd.DataFrame) -> dict[str, float]:
    bucket, count = lasted["bucket"].to_numpy(np.int64), lasted["count"].to_numpy(np.float64)
    return {column: quantile(bucket, count, part) for column, part in DURATIONS.items()}


def _mean(sums: pd.Series, counts: pd.Series) -> float:
    known = sums.notna()
    return float(sums[known].sum() / counts[known].sum()) if known.any() else np.nan


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
        measured = selection.frame.dropna(subset=[column])
        values = measured[column]
        quantiles = {name: float(values.quantile(at)) if len(values) else np.nan for name, at in QUANTILES.items()}
        largest = measured["path"].iat[int(values.to_numpy().argmax())] if len(values) else None
        rows.append({"measure": measure, **quantiles, "recordings": len(values), "largest": largest})
    return FleetMemory(pd.DataFrame(rows), _leaks(selection, confirmed_on))


def _leaks(selection: Selection, confirmed_on: int) -> pd.DataFrame:
    hosts = selection.frame[["recording", "host", "path"]].copy()
    hosts["host"] = hosts["host"].fillna(hosts["path"])  # of an unknown host each recording is one
    leaks = selection.query(
        "leaks",
        "SELECT any_value(name) AS name, file, min(line) AS line, count(DISTINCT hosts.host) AS hosts,"
        " count(DISTINCT recording) AS recordings, median(rate_bytes_per_s) AS rate_bytes_per_s,"
        " sum(leaked_bytes) AS leaked_bytes, median(likelihood) AS likelihood"
        " FROM t JOIN hosts USING (recording) GROUP BY file, coalesce(name, ''), line"
        " ORDER BY hosts DESC, leaked_bytes DESC, name",
        hosts=hosts[["recording", "host"]],
    )
    leaks["line"] = leaks["line"].astype("Int64")
    return leaks.assign(of=len(selection), confirmed=leaks["hosts"] >= confirmed_on)
