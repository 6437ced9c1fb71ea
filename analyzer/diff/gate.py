"""Conditions that fail a build: ``cpu>5%``, ``wait>0.5s``, ``function parse cpu>10%`` (docs/explanation/diff.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate

import numpy as np
import pandas as pd

from tachograph.format import FormatError
from tachograph.quantities import BYTES, LETTERS, SECONDS

from ..recording.text import printable
from ..report_data.difference import (
    BY_NAME,
    NATIVE,
    OVERALL,
    SELF,
    TOTAL,
    Condition,
    DiffResult,
    Judged,
    Judgement,
    Level,
    Outcome,
)
from .evidence import RATE

_CONDITION = re.compile(
    r"\s*(?:(?P<level>file|function|native|line|thread)\s+(?P<place>\S.*?)\s+)?"
    r"(?P<metric>[a-z_.]+)\s*>\s*(?P<amount>\d+(?:\.\d+)?)\s*(?P<unit>%|[a-zA-Zµ]+(?:/s)?)?\s*",
    re.DOTALL,
)
_SIZES = {**BYTES, **LETTERS}
_UNITS: Mapping[str, Mapping[str, float]] = {
    "s": SECONDS,
    "bytes": _SIZES,
    "bytes/s": {f"{name}/s": size for name, size in _SIZES.items()},
}
_METRICS = {"thread": SELF, "native": NATIVE}
"""Known metrics of some levels; the others have all metrics."""

FORM = "write for instance 'cpu>5%', 'wait>0.5s', 'memory.peak>10%' or 'function parse cpu>10%'"


def parse_condition(text: str) -> Condition:
    """Reads a condition.

    Errors:
        FormatError: it is none.
    """
    shown = printable(text, 100)
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise FormatError(f"--fail-if {shown!r} is not a condition: {FORM}")
    level, name, unit = match["level"], match["metric"], match["unit"]
    metrics = OVERALL if level is None else _METRICS.get(level, (*SELF, *TOTAL))
    by_name = {metric.name: metric for metric in metrics}
    if name not in by_name:
        raise FormatError(f"--fail-if {shown!r}: there is no metric {name!r} here; there are: {', '.join(by_name)}")
    units = _UNITS[by_name[name].unit]
    amount = float(match["amount"])
    if unit != "%" and unit not in units and not (unit is None and amount == 0):
        raise FormatError(f"--fail-if {shown!r}: {name} needs an amount in %, {', '.join(units)}")
    relative = unit == "%"
    factor = 0.01 if relative else units.get(unit or "", 1.0)
    table = "totals" if level is None else "native_functions" if level == "native" else f"{level}s"
    return Condition(text.strip(), table, match["place"], name, amount * factor, relative)


def needs_amounts(condition: Condition) -> bool:
    """True if a condition is about seconds or bytes of rows, which shares do not have."""
    return condition.level != "totals" and not condition.relative


def judge(result: DiffResult, conditions: Sequence[Condition]) -> list[Judgement]:
    """Judges each condition by its own 95 % interval.

    Errors:
        FormatError: a metric was not recorded, or nothing has the name in a condition.
    """
    for condition in conditions:
        if result.shares and needs_amounts(condition):
            raise FormatError(f"--fail-if {printable(condition.text, 100)!r}: shares need an amount in %")
    return [_judge(result.levels[condition.level], condition, result.judged) for condition in conditions]


def _judge(level: Level, condition: Condition, judged: Judged) -> Judgement:
    if not level.knows(condition.metric):
        raise FormatError(
            f"--fail-if {printable(condition.text, 100)!r}: {BY_NAME[condition.metric].label} was not recorded on both"
            " sides"
        )
    rows = np.flatnonzero(_matching(level, condition)) if condition.place else np.zeros(1, np.int64)
    if not len(rows):
        what = level.name.removesuffix("s").replace("_", " ")
        raise FormatError(
            f"--fail-if {printable(condition.text, 100)!r}: no {what} of that name has time in these recordings"
        )
    # Each of several rows has its part of the error that is allowed (Bonferroni).
    alpha = RATE / len(rows)
    if condition.relative:
        # How far new is above the base with the allowed increase; the same test as that of the ratio, and also right
        # where the base is nothing.
        excess = level.evidence(condition.metric, 1.0 + condition.amount).interval(alpha)
        allowed, shown = 0.0, level.evidence(condition.metric, 1.0).relative(alpha)
    else:
        excess = level.evidence(condition.metric, 1.0).interval(alpha)
        allowed, shown = condition.amount, excess
    outcomes = [
        Outcome.FAILED if low > allowed else Outcome.PASSED if high <= allowed else Outcome.UNDECIDED
        for low, high in zip(excess.low[rows].tolist(), excess.high[rows].tolist(), strict=True)
    ]
    if not judged.includes(BY_NAME[condition.metric]):
        outcomes = [Outcome.UNDECIDED] * len(outcomes)
    order = {Outcome.FAILED: 0, Outcome.UNDECIDED: 1, Outcome.PASSED: 2}
    worst = min(range(len(rows)), key=lambda n: (order[outcomes[n]], -np.nan_to_num(excess.low[rows[n]])))
    row = int(rows[worst])
    where = _name(level.places.iloc[row], level.name) if condition.place else None
    return Judgement(
        condition, outcomes[worst], where, float(shown.value[row]), float(shown.low[row]), float(shown.high[row])
    )


def _matching(level: Level, condition: Condition) -> pd.Series:
    """The rows that a condition names; lines are numbered as the new recording has them.

    What was renamed or moved has both of its names: a condition that was written for the base goes on to hold.
    """
    places, pattern = level.places, condition.place or ""
    if level.name == "native_functions":
        return _named(places["function"], pattern)
    if level.name == "functions":
        return _named(places["new_function"], pattern) | _named(places["base_function"], pattern)
    if level.name == "threads":
        return _named(places["name"], pattern)
    if level.name == "files":
        return _file(places["new_file"], pattern) | _file(places["base_file"], pattern)
    path, colon, number = pattern.rpartition(":")
    if not colon or not number.isdecimal():
        raise FormatError(f"--fail-if {printable(condition.text, 100)!r}: write a line as FILE:NUMBER")
    return _file(places["file"], path) & (places["new_line"].fillna(0) == int(number)).astype(bool)


def _named(names: pd.Series, text: str) -> pd.Series:
    pattern = re.compile(translate(text), re.DOTALL)
    matches = [isinstance(name, str) and (name == text or bool(pattern.match(name))) for name in names]
    return pd.Series(matches, names.index, dtype=bool)


def _file(paths: pd.Series, text: str) -> pd.Series:
    """Files by their whole path or the end of it, as a glob."""
    plain = text.replace("\\", "/")
    patterns = [re.compile(translate(each), re.DOTALL) for each in (plain, f"*/{plain}")]

    def matches(path: object) -> bool:
        return isinstance(path, str) and any(pattern.match(path.replace("\\", "/")) for pattern in patterns)

    return pd.Series([matches(path) for path in paths], paths.index, dtype=bool)


def _name(place: pd.Series, level: str) -> str:
    if level == "lines":
        return f"{place['file']}:{place['line']}"
    if level == "native_functions":
        return f"{place['function']} ({place['library']})" if place["library"] else str(place["function"])
    return str(place[{"functions": "function", "files": "file", "threads": "name"}[level]])
