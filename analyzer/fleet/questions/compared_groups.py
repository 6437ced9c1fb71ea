"""``fleet compare``: what differs between two groups of recordings, such as two versions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tachograph.format import FormatError

from ...statistics.distributions import adjusted_alpha
from ...statistics.ratios import FEWEST, difference, pooled, ratios
from .selection import Selection
from .top import LEVELS, amounts_by_group, metric_named, row_sums, weights_of, with_spans

MAX_TESTED = 500
"""Rows that are compared: those with the largest amounts on either side."""

MORE, LESS, NO_EVIDENCE = "more", "less", "no evidence"


def compare(
    base: Selection,
    new: Selection,
    both: Selection,
    *,
    level: str = "functions",
    metric: str = "cpu",
    total: bool = False,
    per: str | None = None,
    limit: int = 20,
    anyway: bool = False,
) -> pd.DataFrame:
    """The rows that differ most, the largest difference first; ``both`` has the recordings of both groups.

    Columns: name, file, line and source (of lines); ``base`` and ``new`` (each group's amount divided by the metric's
    whole), ``difference`` with ``low`` and ``high``, ``p``, ``verdict`` (more, less, no evidence; null where
    nothing can be said), ``of_base`` and ``of_new`` (recordings). Verdicts are corrected for the number of rows
    (Benjamini and Hochberg), and the intervals are as wide as they then must be (Benjamini and Yekutieli).

    Errors:
        FormatError: a recording is in both groups, or they were made in different ways.
    """
    measure = metric_named(metric)
    if level not in LEVELS or level == "stacks":
        raise FormatError("groups are compared by functions or by lines")
    shared = set(base.frame["recording"]) & set(new.frame["recording"])
    if shared:
        raise FormatError(f"{len(shared)} recordings are in both groups: let each condition leave out the other's")
    both.refuse_mixed(*measure.needs, "python", anyway=anyway)
    column = measure.total() if total else measure.column
    base, new, both = (with_spans(each, per) for each in (base, new, both))
    places = row_sums(both, level, column)
    places = places[places["amount"] > 0].nlargest(MAX_TESTED, "amount", keep="first").reset_index(drop=True)
    by_host = min(base.hosts, new.hosts) >= FEWEST
    amounts = amounts_by_group((base, new), both, level, column, (places, places))
    old, young = (
        ratios(*pooled(amount, weights_of(side, measure, per), side.units(by_host=by_host)), draws=9)
        for side, amount in zip((base, new), amounts, strict=True)
    )
    change = difference(old, young)
    p = change.p
    alpha = adjusted_alpha(p)
    low, high = change.interval(alpha)
    enough = min(len(base), len(new)) >= FEWEST
    verdict = np.where(p <= alpha, np.where(change.value > 0, MORE, LESS), NO_EVIDENCE).astype(object)
    columns = {"name": places["name"], "file": places["file"]}
    if level == "lines":
        columns |= {"line": places["line"].astype("Int64"), "source": places["source"]}
    frame = pd.DataFrame(
        {
            **columns,
            "base": old.value,
            "new": young.value,
            "difference": change.value,
            "low": low,
            "high": high,
            "p": p,
            "verdict": verdict if enough else np.full(len(p), None, object),
            "of_base": len(base),
            "of_new": len(new),
        }
    )
    order = np.lexsort(
        (-np.abs(np.nan_to_num(change.value)), frame["verdict"].isin([NO_EVIDENCE]) | frame["verdict"].isna())
    )
    return frame.iloc[order[:limit]].reset_index(drop=True)
