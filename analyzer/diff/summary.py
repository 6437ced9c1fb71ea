"""The answer of a diff in one word and one sentence, and whether the runs can give one at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..report_data.data_quality import CPU_WAIT_SHARE
from ..report_data.difference import FASTER, LESS, MORE, SLOWER, Judged, Level, Summary
from ..report_data.difference_metrics import BY_NAME
from ..report_data.numbers import change, changes, counted, percent, signed
from .drift import in_turns
from .runs import Run

TIMES = ("cpu", "main_wait", "wall")
SIZES = ("memory.peak", "memory.live_at_end", "memory.allocated")
"""Totals that decide the answer, the most telling first."""

_WORSE, _BETTER = {SLOWER, MORE}, {FASTER, LESS}
_REPEAT = "repeat to know: tachograph diff --base A1 A2 A3 --new B1 B2 B3"
_REPEAT_BUSY = "repeat on a quiet machine, or five times a side in turns, to know"


MIN_ON_BUSY = 5
"""Runs a side that can tell although the machine was busy, if the sides were recorded in turns."""


def unjudged(
    base: Sequence[Run], new: Sequence[Run], spread: float | None, *, anyway: bool
) -> tuple[Judged, str | None]:
    """What the runs tell of, and why not of everything, as the beginning of a sentence.

    ``spread`` is the standard deviation between runs that the user states, as a share; ``anyway`` judges runs of a busy
    machine as well. A busy machine changes the CPU time of one and the same program by tens of per cent within minutes
    (docs/explanation/diff.md has figures): three runs, and then three others, see little of that in each of the two
    groups. It does not change what is allocated.
    """
    single = len(base) == 1 and len(new) == 1
    busy = [sum(map(_busy, side)) / len(side) for side in (base, new)]
    steady = min(len(base), len(new)) >= MIN_ON_BUSY and in_turns(base, new)
    if max(busy) > CPU_WAIT_SHARE and not steady and not anyway:
        share = f"no processor for {percent(max(busy))} % of the time"
        if single:
            return Judged.NOTHING, f"one run a side, on a busy machine ({share}), differs"
        return Judged.BYTES, f"the machine was busy ({share}), and the sides differ"
    if single and spread is None:
        return Judged.NOTHING, "one run a side differs"
    return Judged.EVERYTHING, None


def _busy(run: Run) -> float:
    """The part of its time that a run had no processor for."""
    totals = run.profile.totals
    return (totals.main_cpu_wait_s or 0.0) / totals.main_s if totals.main_s > 0 else 0.0


def summarise(totals: Level, lines: Level, judged: Judged, reason: str | None) -> Summary:
    """The answer; ``judged`` and ``reason`` are those of ``unjudged``."""
    rows = totals.values.set_index("metric")
    known = [name for name in (*TIMES, *SIZES) if name in rows.index]
    if reason is None:
        return _judged(totals, lines, rows, known)
    open_ = [name for name in known if not judged.includes(BY_NAME[name])]
    told = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in open_ if _noted(rows.loc[name])]
    again = _REPEAT_BUSY if "busy" in reason else _REPEAT
    times = f"{reason} by {', '.join(told[:2]) or 'less than 1 %'}; {again}"
    if len(open_) == len(known):
        return Summary("unknown", times)
    sizes = _judged(totals, lines, rows, [name for name in known if name not in open_])
    if sizes.verdict == "same":
        return Summary("unknown", f"{times}; no difference found in memory")
    return Summary(sizes.verdict, f"{sizes.sentence}; of times nothing is certain: {times}")


def _judged(totals: Level, lines: Level, rows: pd.DataFrame, known: Sequence[str]) -> Summary:
    """The answer by the totals that are ``known`` and can be judged; ``rows`` are those of ``totals`` by metric."""
    times = [name for name in TIMES if name in known and rows.at[name, "verdict"] in _WORSE | _BETTER]
    sizes = [name for name in SIZES if name in known and rows.at[name, "verdict"] in _WORSE | _BETTER]
    if not times and not sizes:
        return _by_lines(lines, rows, known)
    found = [*times, *sizes]
    verdicts = {str(rows.at[name, "verdict"]) for name in found}
    if verdicts & _WORSE and verdicts & _BETTER:
        parts = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in found]
        return Summary("mixed", ", ".join(parts[:3]))
    row = rows.loc[found[0]]
    first = f"{row['verdict']}: {BY_NAME[found[0]].label} {_change(row)}{_interval(row)}"
    others = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in sizes[:1] if times]
    return Summary(str(row["verdict"]), ", ".join([first + _because(lines, found[0], str(row["verdict"])), *others]))


def _by_lines(lines: Level, rows: pd.DataFrame, known: Sequence[str]) -> Summary:
    """The totals have no verdict: what single lines say."""
    values = lines.values
    judged = values[values["metric"].isin((*TIMES, *SIZES)) & values["verdict"].isin(_WORSE | _BETTER)]
    if judged.empty:
        row = rows.loc[known[0]] if known else None
        told = "" if row is None else f": {BY_NAME[known[0]].label} {_change(row)}{_interval(row)}"
        return Summary("same", f"no difference found{told}")
    verdicts = set(judged["verdict"].astype(str))
    word = verdicts.pop() if len(verdicts) == 1 else "mixed"
    count = judged["row"].nunique()
    return Summary(word, f"{word}: {counted(count, 'lines')} changed, and the totals show no difference")


def _noted(row: pd.Series) -> bool:
    """Whether a total differs by more than rounding: for runs that cannot be judged."""
    return bool(np.isfinite(row["difference"]) and (not row["base"] > 0 or abs(row["change"]) >= 0.01))


def _change(row: pd.Series) -> str:
    unit = BY_NAME[str(row.name)].unit
    return change(row["change"]) or signed(row["difference"], unit)


def _interval(row: pd.Series) -> str:
    told = changes(row["change_low"], row["change_high"]) if row["base"] > 0 else ""
    return f" ({told})" if told else ""


def _because(lines: Level, metric: str, verdict: str) -> str:
    """The line that changed most in the same direction, if its change is most of the whole."""
    name = "cpu" if metric == "wall" else metric
    if not lines.knows(name):
        return ""
    frame = lines.metric(name)
    frame = frame[(frame["verdict"] == verdict) & frame["file"].notna()]
    if frame.empty:
        return ""
    first = frame.iloc[0]
    return f", because of {str(first['file']).rpartition('/')[2]}:{first['line']}"
