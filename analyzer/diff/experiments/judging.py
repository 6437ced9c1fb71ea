"""Judges pairs of runs as they come: which quantities changed, in which function, and whether more pairs are needed.

Each pair gives one observation of each quantity: the logarithm of its ratio, since what disturbs a machine multiplies
times. Functions give the difference of their CPU time as a part of the pair's whole, and the change of its ratio to
that of the rest of the program (``evidence_of_rows``). Confidence sequences (``statistics.sequences``) hold at each
look, so that one may stop at any. The 5 % of wrong verdicts that an experiment may have are shared out: between CPU
time, wall time, allocated bytes, functions and lines, and among the functions by their part of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...report_data.difference import FASTER, LESS, MORE, NOT_JUDGED, SLOWER, WALL, Metric
from ...report_data.experiment import (
    BETTER,
    MIXED,
    SAME,
    WORSE,
    Answer,
    Effect,
    FunctionEffect,
)
from ...statistics.sequences import FEWEST, mean_sequence
from ..links import Link
from .evidence_of_rows import SHOWN
from .function_rows import SideFunctions
from .functions import Functions
from .measuring import ALLOCATED, CPU, Measured

LEVELS: Mapping[Metric, float] = {CPU: 0.01, WALL: 0.005, ALLOCATED: 0.002}
"""By quantity, the probability of a wrong verdict in an experiment; the most important first. The rest of the 5 % is
that of functions and lines."""

LARGE = 0.1
"""A function with this part of the CPU time has to be known as well as the whole before nothing is said to differ."""
LEAST_BYTES = 0.01
"""A smaller change of the allocated bytes does not matter, however certain."""


class Judge:
    """Holds the pairs of an experiment. ``effect`` is the smallest relative change that matters."""

    def __init__(self, effect: float) -> None:
        self._effect = effect
        self._pairs: list[tuple[Measured, Measured]] = []
        self._sides: tuple[SideFunctions, SideFunctions] | None = None
        self._link: Link | None = None

    def add(self, base: Measured, new: Measured) -> None:
        """Add a pair of runs."""
        self._pairs.append((base, new))
        if self._sides is None:
            self._sides = SideFunctions.of(base), SideFunctions.of(new)
        added = [side.add(run) for side, run in zip(self._sides, (base, new), strict=True)]
        if any(added):
            one, other = self._sides
            self._link = Link(one.files, other.files, one.keys.values(), other.keys.values())

    def answer(self) -> Answer:
        """What is known now."""
        runs = [run for pair in self._pairs for run in pair]
        lived = sum(run.lived_s for run in runs)
        busy = float(sum(run.busy_s for run in runs) / lived) if lived > 0 else 0.0
        effects = [effect for metric in LEVELS if (effect := self._overall(metric)) is not None]
        if self._sides is None or self._link is None:
            return Answer(effects, [], None, *_decide(effects, []), len(self._pairs), busy)
        functions = Functions(self._pairs, (*self._sides, self._link), self._effect)
        by_time = functions.by_time()
        verdict, effect = _decide(effects, by_time)
        place = _explaining(by_time, verdict)
        if verdict in (MORE, LESS) and effect is not None:
            place = functions.explaining_bytes(effect.new - effect.base)
        if place is not None:
            place = functions.with_line(place)
        return Answer(effects, by_time, place, verdict, effect, len(self._pairs), busy)

    def settled(self, answer: Answer) -> bool:
        """True if no further pair is needed: the verdict is known, and so is the function that it is about."""
        if answer.pairs < FEWEST or answer.verdict == NOT_JUDGED:
            return False
        if answer.verdict in (SLOWER, FASTER):
            return answer.place is None or answer.place.certain
        # What was allocated is known at once; whether times changed may not be.
        large = [each for each in answer.functions if each.share >= LARGE]
        times = [each for each in answer.effects if each.metric is CPU]
        return all(each.verdict != NOT_JUDGED for each in times) and all(each.same or each.certain for each in large)

    def _overall(self, metric: Metric) -> Effect | None:
        values = [[side.amounts[metric] for side in pair] for pair in self._pairs]
        if not values or any(value is None or value <= 0 for pair in values for value in pair):
            return None
        amounts = np.array(values, np.float64)
        logs = np.log(amounts[:, 1] / amounts[:, 0])[:, None]
        shown = mean_sequence(logs, np.array([SHOWN]))
        judged = mean_sequence(logs, np.array([LEVELS[metric]]))
        with np.errstate(over="ignore"):
            value, low, high = (float(np.expm1(each[0])) for each in (shown.mean, shown.low, shown.high))
        matters = LEAST_BYTES if metric is ALLOCATED else self._effect
        verdict = NOT_JUDGED
        if max(abs(low), abs(high)) <= matters:
            verdict = SAME
        elif judged.low[0] > 0 or judged.high[0] < 0:
            verdict = metric.more if value > 0 else metric.less
        base, new = amounts.mean(axis=0)
        return Effect(metric, float(base), float(new), value, low, high, verdict)


def _decide(effects: Sequence[Effect], functions: Sequence[FunctionEffect]) -> tuple[str, Effect | None]:
    """The verdict on the whole, and the effect that it is about."""
    if not effects:
        return NOT_JUDGED, None
    decided = [each for each in effects if each.verdict in WORSE | BETTER]
    verdicts = [each.verdict for each in decided]
    if all(each.metric is ALLOCATED for each in decided) and (by_functions := _net(functions, effects[0])) is not None:
        verdicts.insert(0, by_functions)
        decided.insert(0, effects[0])
    if WORSE.intersection(verdicts) and BETTER.intersection(verdicts):
        return MIXED, decided[0]
    if decided:
        return verdicts[0], decided[0]
    return effects[0].verdict, effects[0]


def _net(functions: Sequence[FunctionEffect], whole: Effect) -> str | None:
    """The direction in which functions changed for certain; None if none did, or as much one way as the other.

    A change of one function is beyond chance long before that of the whole. But where the whole can only have changed
    the other way, or by less, the rest of the program changed, too, and functions alone do not decide.
    """
    changes = [each.difference_s for each in functions if each.certain and not each.same]
    difference = sum(changes)
    if not changes or abs(difference) < max(map(abs, changes)) / 2:
        return None
    change = difference / whole.base
    if whole.metric is CPU and (change > whole.high if change > 0 else change < whole.low):
        return None
    return SLOWER if difference > 0 else FASTER


def _explaining(functions: Sequence[FunctionEffect], verdict: str) -> FunctionEffect | None:
    """The function whose CPU time changed most in the direction of a verdict on times."""
    if verdict not in (SLOWER, FASTER):
        return None
    sign = 1 if verdict == SLOWER else -1
    towards = [each for each in functions if sign * each.difference_s > 0]
    certain = [each for each in towards if each.certain]
    return max(certain or towards, key=lambda each: abs(each.difference_s), default=None)
