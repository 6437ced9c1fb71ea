"""The page of a diff: what changed, how sure it is, and a flame graph of the difference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...recording.native_names import native_label
from ...recording.output_file import write_page
from ...report_data.difference import (
    BY_NAME,
    NO_EVIDENCE,
    OPEN,
    VERDICTS,
    ComparedRun,
    DiffResult,
    Level,
    Metric,
    verdict_text,
)
from ...report_data.difference_sections import spread_text, total_rows
from .pack import Names, Packer, number
from .report_page import BOX_TREE_SCRIPTS, render

STYLES = ("page.css", "charts.css", "tables.css", "diff.css", "print.css")
SCRIPTS = (*BOX_TREE_SCRIPTS, "diff.js")
METRICS = (
    "cpu",
    "python",
    "native",
    "kernel",
    "main_wait",
    "wait",
    "memory.allocated",
    "memory.live_at_peak",
    "memory.live_at_end",
    "memory.copied",
)
"""Metrics that the page offers, where both sides know them."""

MAX_PLACES = 400
"""Rows of a table: those with the largest differences in any metric."""

MAX_NODES = 5_000
MIN_SHARE = 0.0003


def write(result: DiffResult, target: str) -> int:
    """Writes the page to a file; returns its size in bytes.

    Errors:
        FormatError: the file cannot be written.
    """
    return write_page(page(result), Path(target))


def page(result: DiffResult) -> str:
    """The page of a diff."""
    names = Names()
    document: dict[str, Any] = {
        "shares": result.shares,
        "verdicts": list(map(verdict_text, VERDICTS)),
        "metrics": [_metric(BY_NAME[name]) for name in _metrics(result)],
        "totals": _totals(result.totals),
        "lines": _places(result.lines, names),
        "functions": _places(result.functions, names),
        "native": _places(result.native_functions, names),
        "files": _places(result.files, names),
        "calls": _calls(result.calls, names),
    }
    document["names"] = names.texts
    return render(
        "difference.html.j2",
        STYLES,
        SCRIPTS,
        data=Packer().block(document),
        base=_side(result.base),
        new=_side(result.new),
        sentence=result.summary.sentence,
        facts=_facts(result),
        remarks=result.remarks,
        totals=list(total_rows(result)),
    )


def _side(runs: list[ComparedRun]) -> str:
    return runs[0].name if len(runs) == 1 else f"{runs[0].name} and {len(runs) - 1} more"


def _facts(result: DiffResult) -> list[str]:
    program = result.new[0].profile.metadata.program
    runs = f"{len(result.base)} against {len(result.new)} recording{'s' if len(result.new) > 1 else ''}"
    shares = "shares of each run's total" if result.shares else ""
    return [fact for fact in (program, runs, spread_text(result), shares, f"scope {result.scope}") if fact]


def _metrics(result: DiffResult) -> list[str]:
    """The metrics that functions differ by, also where the runs cannot tell and nothing has a verdict."""
    differing = set(result.functions.values["metric"])
    return [name for name in METRICS if name in differing]


def _metric(metric: Metric) -> dict[str, Any]:
    return {"name": metric.name, "label": metric.label, "unit": metric.unit}


def _totals(level: Level) -> list[dict[str, Any]]:
    return [
        {"label": BY_NAME[row.metric].label, "unit": BY_NAME[row.metric].unit, "metric": row.metric, **_amounts(row)}
        for row in level.values.itertuples()
    ]


def _amounts(row: Any) -> dict[str, Any]:
    amounts = {
        name: number(float(getattr(row, name))) for name in ("base", "new", "difference", "low", "high", "change")
    }
    return {**amounts, "verdict": VERDICTS.index(row.verdict)}


def _places(level: Level, names: Names) -> dict[str, Any]:
    """The rows of a level with the largest differences, each with its values by metric."""
    values = level.values[level.values["metric"].isin(METRICS)]
    whole = values.groupby("metric")["difference"].transform(lambda column: column.abs().max() or 1.0)
    sure = ~values["verdict"].isin(OPEN)
    rank = (values["difference"].abs() / whole + sure).groupby(values["row"]).max()
    kept = rank.sort_values(ascending=False, kind="stable").index[:MAX_PLACES]
    rows = []
    amounts = _amounts_by_row(values[values["row"].isin(kept)])
    columns = {name: values.tolist() for name, values in level.places.loc[kept].items()}
    for at, row in enumerate(kept.tolist()):
        place = {str(name): values[at] for name, values in columns.items()}
        rows.append(
            {
                "status": str(place["status"]),
                "file": names.number(place.get("file")),
                "line": _line(place.get("line")),
                "base_line": _line(place.get("base_line")),
                "function": names.number(_function(place)),
                "module": names.number(place.get("module")),
                "source": names.number(place.get("source")),
                "base_source": names.number(place.get("base_source")),
                "values": amounts[row],
            }
        )
    return {"rows": rows, "left_out": len(rank) - len(kept)}


def _function(place: Mapping[str, Any]) -> Any:
    """The name of a row's function."""
    name = place.get("function")
    return native_label(name, place["module"]) if "module" in place and isinstance(name, str) else name


def _amounts_by_row(values: pd.DataFrame) -> dict[int, dict[str, dict[str, Any]]]:
    by_row: dict[int, dict[str, dict[str, Any]]] = {}
    for each in values.itertuples():
        by_row.setdefault(int(each.row), {})[each.metric] = _amounts(each)
    return by_row


def _line(value: Any) -> int | None:
    return None if value is None or value is pd.NA or value != value else int(value)


def _calls(level: Level, names: Names) -> dict[str, Any]:
    """The merged call tree: the nodes that are large enough to be seen on either side."""
    places = level.places
    count = len(places)
    metrics = [metric.name for metric in level.metrics if metric.name in METRICS]
    sides = {name: np.zeros((2, count)) for name in metrics}
    verdicts = {name: np.full(count, VERDICTS.index(NO_EVIDENCE)) for name in metrics}
    share = np.zeros(count)
    parent = places["parent"].to_numpy(np.int64)
    for name in metrics:
        chosen = level.values[level.values["metric"] == name]
        rows = chosen["row"].to_numpy(np.int64)
        sides[name][:, rows] = chosen[["base", "new"]].fillna(0.0).to_numpy().T
        verdicts[name][rows] = [VERDICTS.index(verdict) for verdict in chosen["verdict"]]
        whole = sides[name][:, parent < 0].sum(axis=1).max(initial=0.0)
        if whole > 0:
            share = np.maximum(share, sides[name].max(axis=0) / whole)
    least = MIN_SHARE
    if (share >= least).sum() > MAX_NODES:
        least = float(np.partition(share, -MAX_NODES)[-MAX_NODES])
    kept = np.flatnonzero(share >= least)
    # A caller has at least what its callees have, so it is kept if they are.
    new_number = np.full(count + 1, -1, np.int64)
    new_number[kept] = np.arange(len(kept))
    chosen = places.iloc[kept]
    return {
        "parent": new_number[parent[kept]].tolist(),
        "function": names.numbers(chosen["function"]),
        "file": names.numbers(chosen["file"]),
        "line": [_line(value) for value in chosen["line"].tolist()],
        "status": names.numbers(str(status) for status in chosen["status"]),
        "left_out": count - len(kept),
        "values": {
            name: {
                "base": [number(value, 5) for value in sides[name][0, kept].tolist()],
                "new": [number(value, 5) for value in sides[name][1, kept].tolist()],
                "verdict": verdicts[name][kept].tolist(),
            }
            for name in metrics
        },
    }
