"""The JSON document of ``tachograph diff --json`` (docs/reference/diff-json.md); its names are kept stable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from ..report_data.difference import ComparedRun, DiffResult, Judgement, Level

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
        "totals": next(iter(_records(result.totals, None)), {"metrics": {}})["metrics"],
        **{
            level.name: _records(level, top) for level in (result.files, result.functions, result.lines, result.threads)
        },
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


def _records(level: Level, top: int | None) -> list[dict[str, Any]]:
    """A table as objects, each with its place and its metrics, the largest difference of CPU time first."""
    metrics: dict[int, dict[str, Any]] = {}
    columns = [level.values[name].tolist() for name in ("row", "metric", *_VALUES)]
    for row, metric, *values in zip(*columns, strict=True):
        metrics.setdefault(row, {})[metric] = dict(zip(_VALUES, values, strict=True))

    def weight(row: int) -> float:
        difference = metrics[row].get("cpu", {}).get("difference", 0.0)
        return -abs(difference) if difference == difference else 0.0

    order = sorted(metrics, key=weight)[:top]
    places = level.places.astype(object)
    names = list(places.columns)
    plain = places.iloc[order].itertuples(index=False, name=None)
    return [
        {**{name: _plain(value) for name, value in zip(names, place, strict=True)}, "metrics": metrics[row]}
        for row, place in zip(order, plain, strict=True)
    ]


def _plain(value: Any) -> Any:
    return None if value is pd.NA or (isinstance(value, float) and value != value) else value
