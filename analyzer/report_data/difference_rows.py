"""What reports of a diff show: the metrics that matter, their rows, and what a condition was judged by."""

from __future__ import annotations

import pandas as pd

from .difference import FASTER, LESS, MORE, SLOWER, DiffResult, Judgement, Level, Outcome
from .difference_metrics import BY_NAME
from .numbers import change, changes, signed, span

DIRECTIONS = (SLOWER, FASTER, MORE, LESS)
"""The verdicts that say that something changed."""

MIN_SHARE = 0.01
"""Rows without a verdict are shown if they differ by this part of the larger total."""

MIN_JUDGED = 0.001
"""Rows with a verdict are shown if they differ by this part of it."""

MAX_ROWS, MAX_OTHERS = 15, 6
"""Rows with a verdict, and others, that a table shows of the first metric."""

MAX_FURTHER = 6
"""Rows with a verdict that a table shows of any further metric; others are not shown."""

METRICS = ("cpu", "main_wait", "memory.live_at_peak", "memory.allocated", "memory.copied")
"""Metrics whose lines are shown: the first always, the others if there is a verdict."""

HIDDEN_TOTALS = ("cpu_wait", "gpu_wait", "wait")
"""Totals that are only shown if there is a verdict (all threads' waiting is mostly idleness)."""


def shown_metrics(result: DiffResult, metric: str | None) -> list[str]:
    """The metric that was asked for, or those that matter."""
    if metric is not None:
        return [metric]
    told = [name for name in METRICS[1:] if result.lines.verdicts(name) or result.functions.verdicts(name)]
    return [METRICS[0], *told]


def shown_rows(result: DiffResult, level: Level, name: str, metric: str | None, top: int | None) -> pd.DataFrame:
    """The rows of a level by the metric ``name``: those with a verdict, then those that differ most.

    ``metric`` is the one that was asked for; ``top`` rows are shown whatever their verdicts.
    """
    frame = level.metric(name)
    if top is not None:
        return frame.head(top)
    own = result.lines.metric(name.removeprefix("total_"))
    share = frame["difference"].abs() / max(own["base"].sum(), own["new"].sum(), 1e-300)
    judged = frame["verdict"].isin(DIRECTIONS) & (share >= MIN_JUDGED)
    if name.removeprefix("total_") != (metric or METRICS[0]):
        return frame[judged].head(MAX_FURTHER)
    large = share >= MIN_SHARE
    return pd.concat([frame[judged].head(MAX_ROWS), frame[~judged & large].head(MAX_OTHERS)])


def explained(judgement: Judgement) -> str:
    """What a condition was judged by, in one line."""
    condition = judgement.condition
    if condition.relative:
        what = f"{change(judgement.value) or '?'}, 95 % interval {changes(judgement.low, judgement.high)}"
    else:
        unit = BY_NAME[condition.metric].unit
        what = f"{signed(judgement.value, unit)}, 95 % interval {span(judgement.low, judgement.high, unit)}"
    where = f"{judgement.where}: " if judgement.where else ""
    return f"{where}{what}" + ("; more runs would tell" if judgement.outcome is Outcome.UNDECIDED else "")
