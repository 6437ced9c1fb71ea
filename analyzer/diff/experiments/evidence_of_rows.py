"""Evidence that functions changed beyond chance: by themselves, or against the rest of the program in the same pair.

A function's own CPU time varies with the machine, as that of the whole does: its frequency, and its neighbours. Within
a run that is common to all functions, so that a function's time relative to that of the rest is free of it. What the
rest does not share is the error of sampling, which a function has by itself, too. Each view is better than the other on
some machine; the e-values of both are averaged, which is valid and costs at most a factor of two (Vovk and Wang,
"E-values: calibration, combination and applications", 2021).

Another function that changed is part of the rest, and would make this one look changed. So a function is certain only
if it is so against the rest without any single other function (an intersection-union test: Berger 1982), and what is
certain already is never part of the rest. And it has to have changed by itself by half as much or more, in the mean of
the pairs: else several others changed more likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...statistics.sequences import evidence, mean_sequence
from .function_rows import Array

LEAST_REST = 0.1
"""A smaller part of the CPU time is no rest that a function could be compared with: it is judged by itself alone."""
FEW = 20
"""A row with fewer samples in a run is judged by itself alone, with the error of sampling at least: a few counts may
be the same in all runs by chance."""
SHOWN = 0.05
"""One minus the confidence of the intervals that are shown."""


@dataclass(frozen=True)
class RowEvidence:
    """Evidence on rows, by row. ``shares`` are the parts of the whole that they have on the side with more.

    ``against_rest`` has relative changes with their ends (3 by rows), unknown (NaN) without a rest; ``by_rest`` is true
    where that view tells more than the amount itself does. ``least`` is the error of sampling where it is not nothing.
    """

    shares: Array
    against_rest: Array
    by_rest: list[bool]
    certain: list[bool]
    least: Array


def thresholds(level: float, shares: Array) -> Array:
    """The evidence that each row needs (logarithm): ``level`` is shared out by their parts of the whole."""
    return np.asarray(-np.log(np.maximum(level * shares / max(shares.sum(), 1.0), 1e-300)), np.float64)


def error_of_few(parts: Array, unit: float) -> Array:
    """The standard deviation of a row's difference that sampling explains; 0 with enough samples.

    ``unit`` is what a sample stands for, as a part of the whole.
    """
    few = parts.mean(axis=0).max(axis=1, initial=0.0) < FEW * unit
    # Two observations more (Agresti and Coull): runs that all happen to have none are not certain.
    variance = unit * (parts.sum(axis=2).mean(axis=0) + 2 * unit)
    return np.where(few, np.sqrt(variance), 0.0)


def judge_rows(
    amounts: Array, wholes: Array, unit: float, level: float, smallest: float, *, by_rest: bool
) -> RowEvidence:
    """Judges what rows used (pairs by rows by sides), given the mean of both runs by pair.

    ``unit`` is what a sample stands for, 0 if nothing is sampled. ``level`` is the probability of a wrong row among
    all; rows of at least the share ``smallest`` can be certain. Without ``by_rest`` they are judged by themselves
    alone.
    """
    parts = amounts / wholes[:, None, None]
    shares = parts.mean(axis=0).max(axis=1)
    differences = parts[:, :, 1] - parts[:, :, 0]
    enough = thresholds(level, shares)
    least = error_of_few(parts, unit / wholes.mean())
    own = evidence(differences, least)
    directions = np.sign(differences.mean(axis=0))
    candidates = np.flatnonzero(shares >= smallest).tolist()
    against, by_the_rest = np.full((3, len(shares)), np.nan), [False] * len(shares)
    if not by_rest:
        return RowEvidence(shares, against, by_the_rest, ((own >= enough) & (shares >= smallest)).tolist(), least)
    changed: list[int] = []
    while True:
        left = [row for row in candidates if row not in changed]
        found: dict[int, float] = {}
        for row in left:
            few = bool(least[row])
            log_e = _least(parts, row, left, changed, own[row], directions[row], few=few)
            if log_e >= enough[row] and (own[row] >= enough[row] or _by_itself(parts, row, changed)):
                found[row] = log_e
        if not found:
            break
        # The surest first: it may be why others seem to have changed.
        changed.append(max(found, key=lambda row: found[row]))
    for row in candidates:
        rest = rest_of(parts, [row, *changed])
        if has_rest(rest) and not least[row]:
            values = beside(parts[:, [row]], rest)
            against[:, row] = relative(values)
            by_the_rest[row] = bool(evidence(values)[0] > own[row])
    return RowEvidence(shares, against, by_the_rest, [row in changed for row in range(len(shares))], least)


def rest_of(parts: Array, without: Sequence[int]) -> Array:
    """The amounts of all other rows: pairs by sides."""
    rest = np.ones(parts.shape[1])
    rest[list(without)] = 0.0
    return np.asarray(np.einsum("prs,r->ps", parts, rest), np.float64)


def has_rest(rest: Array) -> bool:
    """True if it is enough to compare with."""
    return len(rest) > 0 and bool(rest.mean() >= LEAST_REST)


def beside(parts: Array, rest: Array) -> Array:
    """By pair and row, the change of the ratio to the rest: 2 (a - b) / (a + b) for a ratio b that became a.

    ``rest`` is that of all rows (pairs by sides), or one for each (pairs by rows by sides).

    It is nearly the logarithm of the ratio, but is defined where a short function has no sample in a run, and changes
    its sign if the sides are exchanged, so that its mean is 0 where nothing changed.
    """
    of_base, of_new = (rest[..., side] if rest.ndim > 2 else rest[:, [side]] for side in (0, 1))
    new, base = parts[:, :, 1] * of_base, parts[:, :, 0] * of_new
    whole = new + base
    return np.asarray(np.divide(2 * (new - base), whole, out=np.zeros_like(whole), where=whole > 0), np.float64)


def relative(values: Array) -> tuple[float, float, float]:
    """The mean of ``beside`` of one row as a relative change, and the ends of its interval."""
    found = mean_sequence(values, np.array([SHOWN]))
    return _change(found.mean[0]), _change(found.low[0]), _change(found.high[0])


def _change(value: float) -> float:
    """The relative change for a value of ``beside``."""
    return -1.0 if value <= -2 else math.inf if value >= 2 else 2 * value / (2 - value)


def _by_itself(parts: Array, row: int, changed: Sequence[int]) -> bool:
    """True if a row changed by itself, too, by half as much or more, as far as the means of the pairs tell.

    If not, the rest changed more likely: several other functions, or all of them.
    """
    rest = rest_of(parts, [row, *changed])
    if not has_rest(rest):
        return True
    base, new = parts[:, row].mean(axis=0)
    against = float(beside(parts[:, [row]], rest).mean())
    return bool(2 * (new - base) / (new + base) * np.sign(against) >= abs(against) / 2)


def _least(
    parts: Array, row: int, others: Sequence[int], changed: Sequence[int], own: float, direction: float, *, few: bool
) -> float:
    """The evidence that a row changed (logarithm), whichever one of the ``others`` changed as well.

    With ``few`` samples a row is not compared with the rest.
    """
    rest = rest_of(parts, [row, *changed])
    without = parts[:, [other for other in others if other != row]]
    rests = np.concatenate([rest[:, None], rest[:, None] - without], axis=1)
    values = beside(np.broadcast_to(parts[:, [row]], rests.shape), rests)
    usable = (rests.mean(axis=(0, 2)) >= LEAST_REST) & (not few)
    against = np.where(usable, evidence(values), 0.0)
    directions = np.where(against > own, np.sign(values.mean(axis=0)), direction)
    if (directions != directions[0]).any():
        return -math.inf
    return float((np.logaddexp(own, against) - math.log(2)).min())
