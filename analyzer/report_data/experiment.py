"""The answer of an experiment: what changed between two programs that ran in turns, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .difference import FASTER, LESS, MORE, NOT_JUDGED, SLOWER, Metric
from .numbers import amount, change, changes, percent, seconds

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
class Relative:
    """A relative change with the ends of its interval, which holds at any number of pairs."""

    change: float
    low: float
    high: float

    @property
    def visible(self) -> float:
        """The smallest change that could have been told from none; infinite: none at all."""
        return max(self.high - self.change, self.change - self.low)


@dataclass(frozen=True, slots=True)
class LineEffect:
    """The line of a function that changed most; it may be on one side only. ``certain``: beyond chance.

    ``base`` and ``new`` are in the unit of the function's metric.
    """

    line: int
    base: float
    new: float
    change: float
    low: float
    high: float
    certain: bool


@dataclass(frozen=True, slots=True)
class FunctionEffect:
    """The change of what a function used itself. ``share`` is its part of the program's; ``certain``: beyond chance.

    ``low`` and ``high`` are ends of the relative change, infinite where the base has none of it. ``against_rest`` is
    the change of its ratio to all functions that did not change for certain, in the same pair; None if there is too
    little of that. ``by_rest`` is true where that view tells more. ``base_s`` and ``new_s`` are CPU time;
    ``base_bytes`` and ``new_bytes`` are known where the metric is ``memory.allocated``.
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
    metric: str = "cpu"
    against_rest: Relative | None = None
    by_rest: bool = False
    base_bytes: float | None = None
    new_bytes: float | None = None
    changed_line: LineEffect | None = None

    @property
    def judged(self) -> Relative:
        """The change in the view that tells more."""
        if self.by_rest and self.against_rest is not None:
            return self.against_rest
        return Relative(self.change, self.low, self.high)

    @property
    def visible(self) -> float:
        """The smallest relative change that could have been told from none; infinite: none at all."""
        views = (
            [self.judged]
            if self.against_rest is None
            else [self.against_rest, Relative(self.change, self.low, self.high)]
        )
        return min(view.visible for view in views)

    @property
    def difference_s(self) -> float:
        """By how many seconds it changed: what the machine did to the whole program is left out where that is known."""
        change = self.judged.change
        return self.base_s * change if math.isfinite(change) else self.new_s - self.base_s


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
    def by_function(self) -> bool:
        """True if a function decided, and the whole alone would not have."""
        return self.verdict in (SLOWER, FASTER) and self.effect is not None and self.effect.verdict != self.verdict

    @property
    def unjudged_time(self) -> Effect | None:
        """The effect on CPU time where bytes alone decided, and it is not known."""
        times = [each for each in self.effects if each.metric.name == "cpu" and each.verdict == NOT_JUDGED]
        return times[0] if times and self.verdict in (MORE, LESS) else None

    @property
    def largest(self) -> FunctionEffect | None:
        """The function with the largest part of the CPU time, if a change of it could have been seen."""
        telling = [each for each in self.functions if math.isfinite(each.visible)]
        return max(telling, key=lambda each: each.share, default=None)

    @property
    def sentence(self) -> str:
        """The answer as people read it."""
        if self.effect is None:
            return "not judged: no pair of runs was complete"
        if self.verdict == NOT_JUDGED:
            return f"not judged: {self.effect.metric.label} {_with_interval(self.effect)}; {self._seen(self.effect)}"
        if self.verdict == SAME:
            return f"same: {self.effect.metric.label} {_with_interval(self.effect)}"
        if self.verdict == MIXED:
            decided = [each for each in self.effects if each.verdict in WORSE | BETTER]
            parts = [f"{each.metric.label} {change(each.change)}" for each in dict.fromkeys((self.effect, *decided))]
            return "mixed: " + ", ".join(parts)
        effect = _with_interval(self.effect, ", not certain by itself" if self.by_function else "")
        because = "" if self.place is None else f", because of {described(self.place)}"
        others = [each for each in self.effects if each is not self.effect and each.verdict in (MORE, LESS)]
        also = "".join(f"; {each.metric.label} {change(each.change)}" for each in others)
        if (times := self.unjudged_time) is not None:
            also += f"; CPU not judged: {self._seen(times)}"
        return f"{self.verdict}: {self.effect.metric.label} {effect}{because}{also}"

    def _seen(self, effect: Effect) -> str:
        visible = "nothing" if effect.visible is None else f"a change of {percent(effect.visible)} % or more"
        function = self.largest
        if effect.visible is not None and function is not None and function.visible < effect.visible:
            visible += f", or of {percent(function.visible)} % of {function.function} alone,"
        busy = f"; the programs had no processor for {percent(self.busy)} % of the time" if self.busy > 0.1 else ""
        return f"{visible} could have been seen in {self.pairs} pairs{busy}"


def described(place: FunctionEffect) -> str:
    """A function with its change: ``price (orders.py:21) +52.1 % (+41.0 .. +63.2 %) at line 23``."""
    where = f"{place.function} ({place.file.rpartition('/')[2]}:{place.line})"
    effect = change(place.judged.change)
    if not effect and place.base_bytes is not None:
        effect = f"{amount(place.base_bytes, 'bytes')} -> {amount(place.new_bytes or 0.0, 'bytes')}"
    elif not effect:
        effect = f"{seconds(place.base_s)} -> {seconds(place.new_s)}"
    elif math.isfinite(place.judged.low) and math.isfinite(place.judged.high):
        effect += f" ({changes(place.judged.low, place.judged.high)})"
    line = place.changed_line
    against = " against the rest of the program" if place.by_rest else ""
    at = "" if line is None or not line.certain else f" at line {line.line}"
    return f"{where} {effect}{against}{at}" + ("" if place.certain else ", most likely")


def _with_interval(effect: Effect, remark: str = "") -> str:
    if not math.isfinite(effect.low) or not math.isfinite(effect.high):
        return f"{change(effect.change)} (nothing certain)"
    return f"{change(effect.change)} ({changes(effect.low, effect.high)}{remark})"
