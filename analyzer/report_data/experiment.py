"""The answer of an experiment: what changed between two programs that ran in turns, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .difference import FASTER, LESS, MORE, NOT_JUDGED, SLOWER, Metric
from .numbers import change, changes, percent, seconds

SAME, MIXED = "same", "mixed"
WORSE, BETTER = frozenset({SLOWER, MORE}), frozenset({FASTER, LESS})


@dataclass(frozen=True, slots=True)
class Effect:
    """The change of one quantity of the whole program.

    ``base`` and ``new`` are means of the runs; ``change`` is relative, with the ends of an interval that holds at any
    number of pairs. ``verdict`` is ``slower``, ``faster``, ``more``, ``less``, ``same`` (the interval is within the
    effect that matters) or ``not_judged``.
    """

    metric: Metric
    base: float
    new: float
    change: float
    low: float
    high: float
    verdict: str

    @property
    def visible(self) -> float | None:
        """The smallest relative change that could have been told from none; None: none at all."""
        reach = max(self.high - self.change, self.change - self.low)
        return reach if math.isfinite(reach) else None


@dataclass(frozen=True, slots=True)
class FunctionEffect:
    """The change of a function's own CPU time. ``share`` is its part of the program's; ``certain``: beyond chance.

    ``low`` and ``high`` are ends of the relative change, infinite where the base has none of it.
    """

    function: str
    file: str
    line: int
    base_s: float
    new_s: float
    share: float
    change: float
    low: float
    high: float
    certain: bool
    same: bool


@dataclass(frozen=True)
class Answer:
    """What is known after some pairs of runs. ``place`` is the function that explains the verdict, if one does."""

    effects: Sequence[Effect]
    functions: Sequence[FunctionEffect]
    place: FunctionEffect | None
    verdict: str
    effect: Effect | None
    pairs: int
    busy: float
    """Part of the time for which the programs had no processor."""

    @property
    def sentence(self) -> str:
        """The answer as people read it."""
        if self.effect is None:
            return "not judged: no pair of runs was complete"
        if self.verdict == NOT_JUDGED:
            return f"not judged: {self.effect.metric.label} {_with_interval(self.effect)}{self._why_not()}"
        if self.verdict == SAME:
            return f"same: {self.effect.metric.label} {_with_interval(self.effect)}"
        if self.verdict == MIXED:
            decided = [each for each in self.effects if each.verdict in WORSE | BETTER]
            parts = [f"{each.metric.label} {change(each.change)}" for each in dict.fromkeys((self.effect, *decided))]
            return "mixed: " + ", ".join(parts)
        because = "" if self.place is None else f", because of {described(self.place)}"
        others = [each for each in self.effects if each is not self.effect and each.verdict in (MORE, LESS)]
        also = "".join(f"; {each.metric.label} {change(each.change)}" for each in others)
        return f"{self.verdict}: {self.effect.metric.label} {_with_interval(self.effect)}{because}{also}"

    def _why_not(self) -> str:
        visible = self.effect.visible if self.effect is not None else None
        seen = "nothing" if visible is None else f"a change of {percent(visible)} % or more"
        busy = f"; the programs had no processor for {percent(self.busy)} % of the time" if self.busy > 0.1 else ""
        return f"; {seen} could have been seen in {self.pairs} pairs{busy}"


def described(place: FunctionEffect) -> str:
    """A function with its change: ``price (orders.py:21) +52.1 %``."""
    where = f"{place.function} ({place.file.rpartition('/')[2]}:{place.line})"
    amount = change(place.change) or f"{seconds(place.base_s)} -> {seconds(place.new_s)}"
    return f"{where} {amount}" + ("" if place.certain else ", most likely")


def _with_interval(effect: Effect) -> str:
    if not math.isfinite(effect.low) or not math.isfinite(effect.high):
        return f"{change(effect.change)} (nothing certain)"
    return f"{change(effect.change)} ({changes(effect.low, effect.high)})"
