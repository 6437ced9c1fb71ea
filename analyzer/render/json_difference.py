"""The JSON document of ``tachograph diff --json`` (docs/reference/diff-json.md); its names are kept stable.

It stands alone since it needs pandas, which a report in the terminal or as JSON does not load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from ..recording.frame import rows_of_pandas
from ..report_data.difference import (
    CALL_TIME,
    CALLS,
    ComparedRun,
    DiffResult,
    Judgement,
    Level,
)
from ..report_data.difference_sections import calls_verdict_text, redundancy_changes

VERSION = 1
"""Version of the document; names are only ever added to a version."""

_VALUES = ("base", "new", "difference", "low", "high", "change", "change_low", "change_high", "p", "verdict")


def document(result: DiffResult, judgements: Sequence[Judgement] = (), top: int | None = None) -> dict[str, Any]:
    """The document as Python objects; ``top`` limits the rows of each table."""
    return {
        "tachograph": {"document": "diff", "version": VERSION},
        "verdict": result.summary.verdict,
        "sentence": result.summary.sentence,
        "base": [_run(run) for run in result.base],
        "new": [_run(run) for run in result.new],
        "question": {
            **asdict(result.question),
            "scope": result.scope,
            "scope_widened": result.widened,
            "shares": result.shares,
            "spread": result.spread,
        },
        "remarks": result.remarks,
        "compared": [
            {"table": level.name, **dict(zip(level.families.columns, row, strict=True))}
            for level in result.levels.values()
            for row in level.families.itertuples(index=False, name=None)
        ],
        "totals": next(iter(_records(result.totals)), {"metrics": {}})["metrics"],
        "files": _sorted(_records(result.files), top),
        "functions": _sorted(_functions(result), top),
        "lines": _sorted(_records(result.lines), top),
        "threads": _sorted(_records(result.threads), top),
        "redundancies": _redundancies(result, top),
        "gate": [
            {**asdict(judgement.condition), **{k: v for k, v in asdict(judgement).items() if k != "condition"}}
            for judgement in judgements
        ],
    }


def _run(run: ComparedRun) -> dict[str, Any]:
    quality = run.profile.quality
    return {
        **asdict(run.profile.metadata),
        "wall_s": run.profile.totals.wall_s,
        "samples": run.profile.totals.samples,
        "state": quality.state,
        "nothing_lost": quality.nothing_lost,
    }


def _records(level: Level) -> list[dict[str, Any]]:
    """A table as objects, each with its place and its metrics."""
    metrics: dict[int, dict[str, Any]] = {}
    columns = [level.values[name].tolist() for name in ("row", "metric", *_VALUES)]
    for row, metric, *values in zip(*columns, strict=True):
        metrics.setdefault(row, {})[metric] = _with_known_interval(dict(zip(_VALUES, values, strict=True)))
    places = rows_of_pandas(_columns(level).iloc[list(metrics)])
    return [
        {**place, **_more(level, metrics[row]), "metrics": metrics[row]}
        for row, place in zip(metrics, places, strict=True)
    ]


def _with_known_interval(values: dict[str, Any]) -> dict[str, Any]:
    """Values without the ends of an interval that has none: how far what was measured once may be off is unknown."""
    if values["low"] == values["high"] and values["difference"] != 0:
        values |= dict.fromkeys(("low", "high", "change_low", "change_high"))
    return values


def _redundancies(result: DiffResult, top: int | None) -> list[dict[str, Any]] | None:
    changes = redundancy_changes(result)
    return None if changes is None else [asdict(change) for change in changes[:top]]


def _columns(level: Level) -> pd.DataFrame:
    """The places of a level without names that are for display only."""
    return level.places.drop(columns="module", errors="ignore")


def _functions(result: DiffResult) -> list[dict[str, Any]]:
    """Functions of Python and native ones, under the same names."""
    columns = [*result.functions.places.columns, *_columns(result.native_functions), "calls_verdict"]
    unknown = dict.fromkeys(columns)
    python = [
        {**unknown, "language": None if row["file"] is None else "python", **row} for row in _records(result.functions)
    ]
    native = [{**unknown, "language": "native", **row} for row in _records(result.native_functions)]
    return python + native


def _sorted(records: list[dict[str, Any]], top: int | None) -> list[dict[str, Any]]:
    """The largest difference of CPU time first."""

    def weight(record: dict[str, Any]) -> float:
        difference = record["metrics"].get("cpu", {}).get("difference", 0.0)
        return -abs(difference) if difference == difference else 0.0

    return sorted(records, key=weight)[:top]


def _more(level: Level, metrics: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a function's calls, for its record."""
    if level.name != "functions":
        return {}
    calls, per_call = (metrics.get(metric.name, {}).get("verdict") for metric in (CALLS, CALL_TIME))
    return {"calls_verdict": calls_verdict_text(calls, per_call)}
