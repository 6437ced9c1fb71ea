"""Findings of repeated work in a diff: which are gone, which are new, which stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .difference import ComparedRun, DiffResult

GONE, NEW, STAYS = "gone", "new", "stays"


@dataclass(frozen=True)
class RedundancyChange:
    """One finding on both sides, by file, function, kind and category: lines move when a program is edited.

    ``base_s`` and ``new_s`` are CPU seconds of a run, means over the runs of the side; 0 where it is not found.
    """

    file: str | None
    function: str | None
    kind: str
    category: str | None
    base_line: int | None
    new_line: int | None
    base_s: float
    new_s: float
    verdict: str
    """``gone``: in most runs of the base and in none of the new side; ``new``: the other way round; else ``stays``."""


def redundancy_changes(result: DiffResult) -> list[RedundancyChange] | None:
    """The findings of both sides, the largest first; None if a run did not look for repeated work."""
    if any(run.profile.frames.redundancies is None for run in (*result.base, *result.new)):
        return None
    base, new = _sums(result.base), _sums(result.new)
    found = []
    for key in {**base, **new}:
        before, after = base.get(key, _Sum()), new.get(key, _Sum())
        if before.runs * 2 > len(result.base) and after.runs == 0:
            verdict = GONE
        elif after.runs * 2 > len(result.new) and before.runs == 0:
            verdict = NEW
        else:
            verdict = STAYS
        quantities = before.quantity_s / len(result.base), after.quantity_s / len(result.new)
        file, function, kind, category = key
        found.append(RedundancyChange(file, function, kind, category, before.line, after.line, *quantities, verdict))
    return sorted(found, key=lambda each: -max(each.base_s, each.new_s))


@dataclass
class _Sum:
    quantity_s: float = 0.0
    runs: int = 0
    line: int | None = None


def _sums(runs: Sequence[ComparedRun]) -> dict[tuple[Any, ...], _Sum]:
    sums: dict[tuple[Any, ...], _Sum] = {}
    for run in runs:
        seen = set()
        assert run.profile.frames.redundancies is not None
        for row in run.profile.frames.redundancies.rows():
            key = tuple(row[name] for name in ("file", "function", "kind", "category"))
            each = sums.setdefault(key, _Sum())
            each.quantity_s += row["quantity_s"]
            each.line = row["line"] if each.line is None else each.line
            if key not in seen:
                each.runs += 1
                seen.add(key)
    return sums
