"""``fleet spans``: how long named spans take over all recordings, and what they cost each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..statistics import FEWEST, pooled, ratios
from .selection import Selection
from .top import MAX_GROUPS, groups_of


def spans(selection: Selection, *, by: str | None = None, limit: int = 20) -> pd.DataFrame:
    """The named spans with the most time, the most first.

    Columns: with ``by`` first ``group``; ``name``; ``count``; ``mean_s`` with ``low`` and ``high`` (seconds that one
    lasts, and its 95 % interval over hosts, as in ``questions.top``); ``cpu_s`` and ``wait_s`` (in one, with the spans
    within it, of its own thread); ``longest_s`` and ``longest_in`` (the recording that has it); ``recordings`` that
    have the span, and ``of`` how many there are.

    Errors:
        FormatError: no recording has the label ``by``.
    """
    if by is None:
        return _of(selection, limit)
    parts = [_of(each, limit).assign(group=value) for value, each in groups_of(selection, by)[:MAX_GROUPS]]
    return pd.concat([part[["group", *part.columns.drop("group")]] for part in parts], ignore_index=True)


def _of(selection: Selection, limit: int) -> pd.DataFrame:
    found = selection.query(
        "spans",
        "SELECT name, recording, sum(count) AS count, sum(duration_s) AS duration_s, max(longest_s) AS longest_s,"
        " sum(total_cpu_s) AS cpu_s, sum(total_wait_s) AS wait_s FROM t WHERE count > 0 GROUP BY 1, 2",
    )
    names = found.groupby("name")["duration_s"].sum().sort_values(ascending=False, kind="stable").index[:limit]
    places = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    paths = selection.frame["path"].to_numpy(object)
    rows = []
    units_of_all = selection.units(by_host=selection.hosts >= FEWEST)
    for name in names:
        mine = found[found["name"] == name]
        at = places[mine["recording"].to_numpy()].to_numpy()
        count = np.zeros(len(selection))
        sums = np.zeros((3, len(selection)))
        count[at] = mine["count"].to_numpy()
        sums[:, at] = mine[["duration_s", "cpu_s", "wait_s"]].to_numpy(np.float64).T
        there = count > 0
        units = np.unique(units_of_all[there], return_inverse=True)[1]
        told = ratios(*pooled(np.nan_to_num(sums[:, there]), count[there], units))
        unknown = np.isnan(sums[:, at]).all(axis=1)
        value = np.where(unknown, np.nan, told.value)
        longest = int(mine["longest_s"].to_numpy().argmax())
        rows.append(
            {
                "name": name,
                "count": int(count.sum()),
                "mean_s": float(value[0]),
                "low": float(told.low[0]),
                "high": float(told.high[0]),
                "cpu_s": float(value[1]),
                "wait_s": float(value[2]),
                "longest_s": float(mine["longest_s"].iat[longest]),
                "longest_in": paths[at[longest]],
                "recordings": len(mine),
                "of": len(selection),
            }
        )
    columns = ("name", "count", "mean_s", "low", "high", "cpu_s", "wait_s", "longest_s", "longest_in")
    return pd.DataFrame(rows, columns=[*columns, "recordings", "of"])
