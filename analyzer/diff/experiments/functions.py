"""The functions of an experiment: how much each changed, and which of them (and of its lines) explains a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...report_data.difference import Metric
from ...report_data.experiment import FunctionEffect, LineEffect, Relative
from ...statistics.sequences import evidence, mean_sequence
from .evidence_of_rows import (
    SHOWN,
    RowEvidence,
    beside,
    error_of_few,
    has_rest,
    judge_rows,
    relative,
    rest_of,
    thresholds,
)
from .function_rows import Array, Rows, Sides
from .measuring import ALLOCATED, CPU, Measured

LEVELS: Mapping[Metric, float] = {CPU: 0.025, ALLOCATED: 0.003}
"""By metric, the probability of a wrong function in an experiment, for all of them together."""
OF_LINES = 0.005
"""The same for the lines of the function that is named."""

SMALL = 0.01
"""Functions with less of the CPU time or of the allocated bytes are not judged."""


class Functions:
    """The functions of some pairs of runs. ``effect`` is the smallest relative change that matters."""

    def __init__(self, pairs: Sequence[tuple[Measured, Measured]], sides: Sides, effect: float) -> None:
        self._pairs, self._sides, self._effect = pairs, sides, effect
        self._rows = Rows.of_functions(*sides)
        self._amounts: dict[Metric, Array] = {}
        self._means: dict[Metric, Array] = {}
        self._judged: dict[Metric, RowEvidence] = {}

    def by_time(self) -> list[FunctionEffect]:
        """The functions with their own CPU time, those that changed most first."""
        judged = self._judge(CPU)
        effects = [self._effect_of(row, CPU) for row in np.flatnonzero(judged.shares >= SMALL).tolist()]
        return sorted(effects, key=lambda each: -abs(each.difference_s))

    def explaining_bytes(self, difference: float) -> FunctionEffect | None:
        """The function that explains how many more bytes were allocated; None if none does.

        Of the program the ``difference`` is exact, of functions it is sampled. So it is the function for which it is
        most likely that it changed by just that, and no other: by the likelihood ratio to no change.
        """
        if any(not run.own.get(ALLOCATED) for pair in self._pairs for run in pair):
            return None
        judged, amounts = self._judge(ALLOCATED), self._amounts[ALLOCATED]
        changes = amounts[:, :, 1] - amounts[:, :, 0]
        mean, spread = changes.mean(axis=0), changes.std(axis=0, ddof=1) if len(changes) > 1 else math.inf
        spread = np.maximum(spread, judged.least * self._wholes(ALLOCATED).mean())
        towards = (mean * difference > 0) & (judged.shares >= SMALL)
        certain = towards & np.array(judged.certain, np.bool_)
        if certain.any():
            row = int(np.argmax(np.where(certain, np.abs(mean), -1.0)))
            return self._effect_of(row, ALLOCATED)
        # Counters may be exact, and their spread nothing.
        variance = np.square(np.maximum(spread, abs(difference) * 1e-6)) / len(changes)
        likelihood = np.where(towards, (2 * mean - difference) * difference / variance, -math.inf)
        row = int(np.argmax(likelihood)) if likelihood.size else 0
        return self._effect_of(row, ALLOCATED) if likelihood.size and likelihood[row] > 0 else None

    def with_line(self, place: FunctionEffect) -> FunctionEffect:
        """The function with the line that explains most of its change, where lines are known."""
        metric = ALLOCATED if place.metric == ALLOCATED.name else CPU
        row = self._rows.places.index((place.file, place.function, place.line))
        lines = self._rows.lines_of(row, self._pairs, self._sides, metric)
        if not lines.places:
            return place
        wholes, judged = self._wholes(metric), self._judge(metric)
        amounts = lines.amounts([(base.lines.get(metric, {}), new.lines.get(metric, {})) for base, new in self._pairs])
        parts = amounts / wholes[:, None, None]
        differences = parts[:, :, 1] - parts[:, :, 0]
        least = error_of_few(parts, self._unit(metric) / wholes.mean())
        own, against = evidence(differences, least), np.zeros(len(lines.places))
        beside_rest = None
        rest = rest_of(self._amounts[metric] / wholes[:, None, None], [row, *np.flatnonzero(judged.certain).tolist()])
        if metric is CPU and has_rest(rest):
            beside_rest = beside(parts, rest)
            against = np.where(least > 0, 0.0, evidence(beside_rest))
        change = differences.mean(axis=0)
        if beside_rest is not None and place.by_rest:
            change = beside_rest.mean(axis=0) * parts.mean(axis=(0, 2))
        towards = np.sign(place.judged.change) * change
        shares = parts.mean(axis=0).max(axis=1)
        certain = np.logaddexp(own, against) - math.log(2) >= thresholds(OF_LINES, shares) + math.log(shares.sum())
        certain &= towards > 0
        chosen = int(np.argmax(np.where(certain, towards, -math.inf) if certain.any() else towards))
        if towards[chosen] <= 0:
            return place
        if beside_rest is not None and place.by_rest and not least[chosen]:
            shown = relative(beside_rest[:, [chosen]])
        else:
            shown = _of_parts(parts[:, chosen], least[chosen])
        base, new = amounts[:, chosen].mean(axis=0).tolist()
        line = LineEffect(lines.places[chosen][2], base, new, *shown, bool(certain[chosen]))
        return replace(place, changed_line=line)

    def _judge(self, metric: Metric) -> RowEvidence:
        if metric not in self._judged:
            used = [(base.own.get(metric, {}), new.own.get(metric, {})) for base, new in self._pairs]
            self._amounts[metric] = amounts = self._rows.amounts(used)
            # Of bytes the machine has no part: there is nothing for the rest to show.
            self._judged[metric] = judge_rows(
                amounts, self._wholes(metric), self._unit(metric), LEVELS[metric], SMALL, by_rest=metric is CPU
            )
        return self._judged[metric]

    def _wholes(self, metric: Metric) -> Array:
        """The mean of both runs, by pair."""
        if metric not in self._means:
            self._means[metric] = np.array(
                [sum(run.amounts[metric] or 0.0 for run in pair) / 2 for pair in self._pairs]
            )
        return self._means[metric]

    def _unit(self, metric: Metric) -> float:
        """The amount that one sample stands for."""
        units = [run.units.get(metric, 0.0) for pair in self._pairs for run in pair]
        return sum(units) / len(units)

    def _effect_of(self, row: int, metric: Metric) -> FunctionEffect:
        judged, amounts, wholes = self._judge(metric), self._amounts[metric], self._wholes(metric)
        path, name, line = self._rows.places[row]
        parts = amounts[:, row] / wholes[:, None]
        itself = Relative(*_of_parts(parts, judged.least[row]))
        rest = Relative(*judged.against_rest[:, row].tolist())
        against_rest = None if math.isnan(rest.change) else rest
        self._judge(CPU)
        base_s, new_s = self._amounts[CPU][:, row].mean(axis=0).tolist()
        of_bytes = amounts[:, row].mean(axis=0).tolist() if metric is ALLOCATED else (None, None)
        views = [itself] if against_rest is None else [itself, against_rest]
        return FunctionEffect(
            function=name,
            file=path,
            line=line,
            base_s=base_s,
            new_s=new_s,
            share=float(judged.shares[row]),
            change=itself.change,
            low=itself.low,
            high=itself.high,
            certain=judged.certain[row],
            same=any(max(abs(view.low), abs(view.high)) <= self._effect for view in views),
            metric=metric.name,
            against_rest=against_rest,
            by_rest=judged.by_rest[row],
            base_bytes=of_bytes[0],
            new_bytes=of_bytes[1],
        )


def _of_parts(parts: Array, least: float) -> tuple[float, float, float]:
    """The relative change of a row (parts of the whole: pairs by sides), and the ends of its interval.

    ``least`` is the standard deviation that sampling explains.
    """
    differences = parts[:, [1]] - parts[:, [0]]
    base, shown = float(parts[:, 0].mean()), mean_sequence(differences, np.array([SHOWN]), least)
    ends = (float(each[0]) for each in (shown.mean, shown.low, shown.high))
    value, low, high = (each / base if base > 0 else math.copysign(math.inf, each) for each in ends)
    # Nothing shrinks by more than all of it.
    return value, max(low, -1.0), high
