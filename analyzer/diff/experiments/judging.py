"""Judges pairs of runs as they come: which quantities changed, in which function, and whether more pairs are needed.

Each pair gives one observation of each quantity: the logarithm of its ratio, since what disturbs a machine multiplies
times. Functions give the difference of their CPU time as a part of the pair's whole. Confidence sequences
(``statistics.sequences``) hold at each look, so that one may stop at any. The 5 % of wrong verdicts that an experiment
may have are shared out: between CPU time, wall time, allocated bytes and functions, and among the functions by their
part of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...report_data.difference import BY_NAME, FASTER, NOT_JUDGED, SLOWER, WALL, Metric
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
from ..links import NO_FILE, FunctionKey, Link, SourceFile
from ..runs import Run

CPU, ALLOCATED = BY_NAME["cpu"], BY_NAME["memory.allocated"]
LEVELS: Mapping[Metric, float] = {CPU: 0.02, WALL: 0.01, ALLOCATED: 0.005}
"""By quantity, the probability of a wrong verdict in an experiment; the most important first."""
OF_FUNCTIONS = 0.015
"""The same for all functions together."""
SHOWN = 0.05
"""One minus the confidence of the intervals that are shown."""

LARGE = 0.1
"""A function with this part of the CPU time has to be known as well as the whole before nothing is said to differ."""
SMALL = 0.01
"""Functions with less of the CPU time are not judged."""
LEAST_BYTES = 0.01
"""A smaller change of the allocated bytes does not matter, however certain."""

_Array = NDArray[np.float64]
_Place = tuple[str, str, int]
"""A function: path, qualified name, first line."""


@dataclass(frozen=True)
class Measured:
    """What one run gives. Amounts are unknown where they are None; ``functions`` have their own CPU seconds."""

    files: Sequence[SourceFile]
    amounts: Mapping[Metric, float | None]
    busy_s: float
    lived_s: float
    functions: Mapping[_Place, float]


def measured(run: Run) -> Measured:
    """The amounts of a run."""
    totals = run.profile.totals
    waited = totals.main_cpu_wait_s or 0.0
    cpu_s = totals.clock_cpu_s or totals.cpu_s
    # How long a program had no processor is the machine's doing. Of several processes that is no part of the wall time.
    wall_s = totals.wall_s if totals.processes > 1 else max(totals.process_s - waited, 0.0)
    allocated = totals.allocated_bytes
    functions: dict[_Place, float] = {}
    frame = run.profile.functions
    columns = (frame[name].tolist() for name in ("file_id", "function", "line", "cpu_s"))
    for file, name, line, own_s in zip(*columns, strict=True):
        if file != NO_FILE and own_s > 0:
            place = (run.files[file].path, name, int(line) if isinstance(line, int) else 0)
            functions[place] = functions.get(place, 0.0) + own_s
    return Measured(run.files, {CPU: cpu_s, WALL: wall_s, ALLOCATED: allocated}, waited, totals.main_s, functions)


@dataclass
class _Functions:
    """The functions of a side that were met, and its files."""

    files: list[SourceFile]
    numbers: dict[str, int]
    keys: dict[_Place, FunctionKey] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Measured) -> _Functions:
        """Those of the first run of a side."""
        return cls(list(run.files), {file.path: number for number, file in enumerate(run.files)})

    def add(self, run: Measured) -> bool:
        """Add the functions of a run; True if one of them is new."""
        before = len(self.keys)
        for file in run.files:
            if file.path not in self.numbers:
                self.numbers[file.path] = len(self.files)
                self.files.append(file)
        for place in run.functions:
            self.keys.setdefault(place, (self.numbers[place[0]], place[1], place[2]))
        return len(self.keys) > before


class Judge:
    """Holds the pairs of an experiment. ``effect`` is the smallest relative change that matters."""

    def __init__(self, effect: float) -> None:
        self._effect = effect
        self._pairs: list[tuple[Measured, Measured]] = []
        self._sides: tuple[_Functions, _Functions] | None = None
        self._link: Link | None = None

    def add(self, base: Measured, new: Measured) -> None:
        """Add a pair of runs."""
        self._pairs.append((base, new))
        if self._sides is None:
            self._sides = _Functions.of(base), _Functions.of(new)
        added = [side.add(run) for side, run in zip(self._sides, (base, new), strict=True)]
        if any(added):
            one, other = self._sides
            self._link = Link(one.files, other.files, one.keys.values(), other.keys.values())

    def answer(self) -> Answer:
        """What is known now."""
        pairs = len(self._pairs)
        runs = [run for pair in self._pairs for run in pair]
        lived = sum(run.lived_s for run in runs)
        busy = float(sum(run.busy_s for run in runs) / lived) if lived > 0 else 0.0
        effects = [effect for metric in LEVELS if (effect := self._overall(metric)) is not None]
        functions = self._of_functions()
        verdict, effect = _decide(effects, functions)
        place = _explaining(functions, verdict)
        return Answer(effects, functions, place, verdict, effect, pairs, busy)

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

    def _of_functions(self) -> list[FunctionEffect]:
        if self._sides is None or self._link is None:
            return []
        rows = self._rows(self._link)
        parts = self._parts(rows, len(rows.places))
        means = parts.mean(axis=0)
        wholes = float(np.mean([[side.amounts[CPU] or 0.0 for side in pair] for pair in self._pairs]))
        shares = means.max(axis=1)
        judged = mean_sequence(parts[:, :, 1] - parts[:, :, 0], OF_FUNCTIONS * shares / max(shares.sum(), 1.0))
        shown = mean_sequence(parts[:, :, 1] - parts[:, :, 0], np.full(len(shares), SHOWN))
        effects = []
        for row in np.flatnonzero(shares >= SMALL).tolist():
            base, new = means[row].tolist()
            low, high = float(shown.low[row]), float(shown.high[row])
            path, name, line = rows.places[row]
            change, change_low, change_high = (
                each / base if base > 0 else math.copysign(math.inf, each) for each in (new - base, low, high)
            )
            effects.append(
                FunctionEffect(
                    function=name,
                    file=path,
                    line=line,
                    base_s=base * wholes,
                    new_s=new * wholes,
                    share=float(shares[row]),
                    change=change,
                    low=change_low,
                    high=change_high,
                    certain=bool(judged.low[row] > 0 or judged.high[row] < 0),
                    same=bool(max(abs(low), abs(high)) <= self._effect * max(base, new)),
                )
            )
        effects.sort(key=lambda each: -abs(each.new_s - each.base_s))
        return effects

    def _rows(self, link: Link) -> _Rows:
        """The functions of both sides, those that are linked in one row."""
        assert self._sides is not None
        base, new = self._sides
        rows = _Rows()
        at = {key: place for place, key in new.keys.items()}
        for place, key in base.keys.items():
            followed = link.forward.function(key)
            other = None if followed is None else at.get(followed)
            rows.add(other or place, place, other)
        for place in new.keys:
            if place not in rows.of_new:
                rows.add(place, None, place)
        return rows

    def _parts(self, rows: _Rows, size: int) -> _Array:
        """Parts of the pair's mean CPU time: pairs by functions by sides."""
        parts = np.zeros((len(self._pairs), size, 2))
        for number, pair in enumerate(self._pairs):
            whole = sum(side.amounts[CPU] or 0.0 for side in pair) / 2
            for side, (each, numbers) in enumerate(zip(pair, (rows.of_base, rows.of_new), strict=True)):
                for place, own_s in each.functions.items():
                    parts[number, numbers[place], side] += own_s / whole
        return parts


class _Rows:
    """Functions of both sides by row; ``places`` names them as the new side does, where it has them."""

    def __init__(self) -> None:
        self.places: list[_Place] = []
        self.of_base: dict[_Place, int] = {}
        self.of_new: dict[_Place, int] = {}

    def add(self, shown: _Place, base: _Place | None, new: _Place | None) -> None:
        """Add a row."""
        if base is not None:
            self.of_base[base] = len(self.places)
        if new is not None:
            self.of_new[new] = len(self.places)
        self.places.append(shown)


def _decide(effects: Sequence[Effect], functions: Sequence[FunctionEffect]) -> tuple[str, Effect | None]:
    """The verdict on the whole, and the effect that it is about."""
    if not effects:
        return NOT_JUDGED, None
    decided = [each for each in effects if each.verdict in WORSE | BETTER]
    verdicts = [each.verdict for each in decided]
    if all(each.metric is ALLOCATED for each in decided) and (by_functions := _net(functions)) is not None:
        verdicts.insert(0, by_functions)
        decided.insert(0, effects[0])
    if WORSE.intersection(verdicts) and BETTER.intersection(verdicts):
        return MIXED, decided[0]
    if decided:
        return verdicts[0], decided[0]
    return effects[0].verdict, effects[0]


def _net(functions: Sequence[FunctionEffect]) -> str | None:
    """The direction in which functions changed for certain; None if none did, or as much one way as the other.

    A change of one function is beyond chance long before that of the whole.
    """
    changes = [each.new_s - each.base_s for each in functions if each.certain and not each.same]
    if not changes or abs(sum(changes)) < max(map(abs, changes)) / 2:
        return None
    return SLOWER if sum(changes) > 0 else FASTER


def _explaining(functions: Sequence[FunctionEffect], verdict: str) -> FunctionEffect | None:
    """The function whose CPU time changed most in the direction of a verdict on times."""
    if verdict not in (SLOWER, FASTER):
        return None
    sign = 1 if verdict == SLOWER else -1
    towards = [each for each in functions if sign * (each.new_s - each.base_s) > 0]
    certain = [each for each in towards if each.certain]
    return max(certain or towards, key=lambda each: abs(each.new_s - each.base_s), default=None)
