"""The answer of a comparison, in one word and one sentence: what changed, by how much, and because of which line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..report_data.difference import BY_NAME, FASTER, LESS, MORE, NOT_JUDGED, SLOWER, Judged, Level, Summary
from ..report_data.numbers import amount, change, changes, counted, percent, signed
from .levels import DISTURBANCE

TIMES = ("cpu", "main_wait", "wall")
SIZES = ("memory.peak", "memory.live_at_end", "memory.allocated")
"""Totals that decide the answer, the most important first."""

_WORSE, _BETTER = {SLOWER, MORE}, {FASTER, LESS}
_REPEAT = "repeat to know: tachograph diff --base A1 A2 A3 --new B1 B2 B3"
_REPEAT_BUSY = "repeat on a quiet machine, or five times a side in turns, to know"
_JUDGE_BUSY = f"{_REPEAT_BUSY} (--anyway judges these)"

LEAST_STATED = 0.05
"""Change of a time that the answer begins with although it has no verdict, as a part of the wall time."""

LEAST_PART = 0.25
"""Part of it that a line has to have to be named."""


def summarise(totals: Level, lines: Level, judged: Judged, reason: str | None) -> Summary:
    """The answer; ``judged`` and ``reason`` are those of ``judging_conditions.unjudged``."""
    rows = totals.values.set_index("metric")
    measured = [name for name in (*TIMES, *SIZES) if name in rows.index]
    if reason is None:
        return _judged(totals, lines, rows, measured)
    # On a busy machine a time may have changed by more than that can do.
    open_ = [name for name in measured if not judged.includes(BY_NAME[name]) and not _has_verdict(rows.loc[name])]
    by_change = sorted(open_, key=lambda name: -_size_of_change(rows.loc[name]))
    changes = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in by_change if _noted(rows.loc[name])]
    # One run a side is not judged by its times, whatever the machine did.
    again = _REPEAT if "busy" not in reason else _REPEAT_BUSY if "one run a side" in reason else _JUDGE_BUSY
    decided = [name for name in measured if name not in open_]
    answer = _judged(totals, lines, rows, decided) if decided else None
    leading = _beyond(rows, open_)
    if leading is not None:
        parts = [_stated(lines, rows, leading, measured), f"{reason}: by how much is rough"]
        if answer is not None and answer.verdict != "same":
            parts.append(answer.sentence)
        return Summary(NOT_JUDGED, "; ".join(parts))
    verb = ", and the sides differ" if judged is Judged.BYTES else ", differs" if "busy" in reason else " differs"
    rest = f"{reason}{verb} by {', '.join(changes[:2]) or 'less than 1 %'}; {again}"
    if answer is None:
        return Summary(NOT_JUDGED, f"not judged: {rest}")
    if answer.verdict == "same":
        return Summary(NOT_JUDGED, f"not judged: {rest}; no difference found in memory")
    return Summary(answer.verdict, f"{answer.sentence}; not judged: {rest}")


def _beyond(rows: pd.DataFrame, open_: Sequence[str]) -> str | None:
    """The time without a verdict that changed most, if by more than a busy machine can do; None if none did.

    That is no verdict: runs differ for other reasons as well (other input, a cold cache).
    """
    wall = max((rows.at["wall", side] for side in ("base", "new")), default=0.0) if "wall" in rows.index else 0.0
    far = [
        name
        for name in TIMES
        if name in open_
        and (rows.at[name, "change_low"] > DISTURBANCE - 1 or rows.at[name, "change_high"] < 1 / DISTURBANCE - 1)
        and abs(rows.at[name, "difference"]) >= LEAST_STATED * wall
    ]
    # The time without a processor is in the wall time: it is for what neither computing nor waiting says.
    far.sort(key=lambda name: (name == "wall", -abs(rows.at[name, "difference"])))
    return far[0] if far else None


def _stated(lines: Level, rows: pd.DataFrame, name: str, measured: Sequence[str]) -> str:
    """A change with both amounts, and the line that most of it is of."""
    row, metric = rows.loc[name], BY_NAME[name]
    change = signed(row["difference"], metric.unit) if not row["base"] > 0 else _change(row)
    text = f"{metric.label} {amount(row['base'], metric.unit)} -> {amount(row['new'], metric.unit)} ({change})"
    text += _part_of_line(lines, name, row["difference"])
    against = _opposing(rows, measured, [name])
    if against is not None:
        text += f", but {BY_NAME[against].label} {signed(rows.at[against, 'difference'], 's')}"
    return text


def _part_of_line(lines: Level, metric: str, difference: float) -> str:
    """The line whose difference is a large part of a total's, in words."""
    name = "cpu" if metric == "wall" else metric
    if not lines.knows(name):
        return ""
    frame = lines.metric(name)
    frame = frame[frame["file"].notna() & (frame["difference"] * difference > 0)]
    part = frame.iloc[0]["difference"] / difference if len(frame) else 0.0
    if part < LEAST_PART:
        return ""
    how_much = "almost all of it" if part >= 0.8 else "most of it" if part >= 0.5 else f"{percent(part)} % of it"
    return f", {how_much} {_place(frame.iloc[0])}"


def _place(line: pd.Series) -> str:
    return f"{str(line['file']).rpartition('/')[2]}:{line['line']}"


def _has_verdict(row: pd.Series) -> bool:
    return row["verdict"] in _WORSE | _BETTER


def _size_of_change(row: pd.Series) -> float:
    """The size of a relative change, up or down alike; what was nothing before is last."""
    if not (row["base"] > 0 and row["new"] > 0):
        return 0.0
    return abs(math.log(row["new"] / row["base"]))


def _judged(totals: Level, lines: Level, rows: pd.DataFrame, measured: Sequence[str]) -> Summary:
    """The answer by the totals that are ``measured`` and can be judged; ``rows`` are those of ``totals`` by metric."""
    times = [name for name in TIMES if name in measured and _has_verdict(rows.loc[name])]
    # What changed by most seconds is the answer.
    times.sort(key=lambda name: -abs(rows.at[name, "difference"]))
    sizes = [name for name in SIZES if name in measured and _has_verdict(rows.loc[name])]
    if not times and not sizes:
        return _by_lines(lines, rows, measured)
    changed = [*times, *sizes]
    verdicts = {str(rows.at[name, "verdict"]) for name in changed}
    against = _opposing(rows, measured, times)
    if (verdicts & _WORSE and verdicts & _BETTER) or against is not None:
        parts = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in changed[:3]]
        if against is not None:
            parts.insert(1, f"{BY_NAME[against].label} {signed(rows.at[against, 'difference'], 's')}, most likely")
        return Summary("mixed", f"mixed: {', '.join(parts[:3])}")
    row = rows.loc[changed[0]]
    first = f"{row['verdict']}: {BY_NAME[changed[0]].label} {_change(row)}{_interval(row)}"
    others = [f"{BY_NAME[name].label} {_change(rows.loc[name])}" for name in sizes[:1] if times]
    return Summary(str(row["verdict"]), ", ".join([first + _because(lines, changed[0], str(row["verdict"])), *others]))


def _opposing(rows: pd.DataFrame, measured: Sequence[str], times: Sequence[str]) -> str | None:
    """The time that changed the other way by at least half as many seconds, certain or not; None if none did.

    A program that waits for half a second more than it computes less has not become faster.
    """
    if not times or "wall" in times:
        return None
    difference = rows.at[times[0], "difference"]
    for name in ("main_wait", "cpu"):
        if name in measured and name not in times:
            other = rows.at[name, "difference"]
            if other * difference < 0 and abs(other) >= abs(difference) / 2:
                return name
    return None


def _by_lines(lines: Level, rows: pd.DataFrame, measured: Sequence[str]) -> Summary:
    """The summary by lines, where the totals have no verdict."""
    values = lines.values
    judged = values[values["metric"].isin((*TIMES, *SIZES)) & values["verdict"].isin(_WORSE | _BETTER)]
    if judged.empty:
        row = rows.loc[measured[0]] if measured else None
        change = "" if row is None else f": {BY_NAME[measured[0]].label} {_change(row)}{_interval(row)}"
        return Summary("same", f"no difference found{change}")
    verdicts = set(judged["verdict"].astype(str))
    word = verdicts.pop() if len(verdicts) == 1 else "mixed"
    count = judged["row"].nunique()
    return Summary(word, f"{word}: {counted(count, 'lines')} changed, and the totals show no difference")


def _noted(row: pd.Series) -> bool:
    """True if a total differs by more than rounding: for runs that cannot be judged."""
    return bool(np.isfinite(row["difference"]) and (not row["base"] > 0 or abs(row["change"]) >= 0.01))


def _change(row: pd.Series) -> str:
    unit = BY_NAME[str(row.name)].unit
    return change(row["change"]) or signed(row["difference"], unit)


def _interval(row: pd.Series) -> str:
    interval = changes(row["change_low"], row["change_high"]) if row["base"] > 0 else ""
    return f" ({interval})" if interval else ""


def _because(lines: Level, metric: str, verdict: str) -> str:
    """The line that changed most in the same direction, if its change is most of the whole."""
    name = "cpu" if metric == "wall" else metric
    if not lines.knows(name):
        return ""
    frame = lines.metric(name)
    frame = frame[(frame["verdict"] == verdict) & frame["file"].notna()]
    if frame.empty:
        return ""
    return f", because of {_place(frame.iloc[0])}"
