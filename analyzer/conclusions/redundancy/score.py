"""Weighs all that is known of a line, as one sum: the witnesses' log-likelihood ratios.

A witness that was asked so many times and agreed so many times (pairs with the same value, blocks with the same
content) has two distributions of its share, a Beta distribution each: on lines that repeat work, and on ordinary ones.
Its weight is the logarithm of how much more probable the counts are by the first (the ratio of two beta-binomial
distributions). So few pairs weigh little and add up, a chance that was not taken counts against a line, and thousands
of pairs do not outweigh everything else. What the source says has a weight of its own.

Sums are in nats. A line is a finding from ``ENOUGH`` on; it has to be so much more probable than without evidence, as
most lines repeat nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lgamma

from .candidates import ALGORITHM, MISUSE, SLICE, Kind

Beta = tuple[float, float]

ENOUGH = 4.5
"""The sum that makes a finding."""
MOST_COUNTED = 80
"""Of one witness: accesses of one line are no independent ones."""
MOST_WEIGHT = 6.0
"""Of a counted witness, for and against."""


@dataclass(frozen=True)
class Shares:
    """The share that repeats, on lines that repeat work and on ordinary ones: parameters of Beta distributions."""

    text: str
    repeating: Beta
    ordinary: Beta


COUNTED: dict[Kind, Shares] = {
    "load": Shares("loads", (16.0, 1.0), (16.0, 4.0)),
    "store": Shares("stores", (1.5, 0.7), (1.2, 2.2)),
    "result": Shares("results", (1.2, 0.8), (0.4, 5.0)),
}
"""Ordinary loads repeat 80 % and stores 36 % (Witch, ASPLOS 2018), some lines more than others; a result of a kilobyte
hardly ever is the same by chance. Shares that do repeat, and how far lines differ: of 140 programs (see the docs)."""

LEAST_OF_ELEMENTS = 0.5
"""Of a counted witness against elements: they are other ones each time, and so is some of what is loaded for each."""

SAID = {
    "reason": 2.6,
    "expression": 2.35,
    "elements": 4.0,
    "dispatch": 2.0,
    "some dispatch": -3.0,
    "sizes": 5.0,
    "time": 5.6,
    "no reason": -0.5,
}
"""Weights of source, sizes and samples: work that gets the same; an expression of a category, such as one element of an
array; the same where a library takes it by much work; most of the line is dispatch, or only some of it; blocks that
grow or move where the source says why; most of the time in what the source names."""

TIMES = ((0.5, 1.5), (0.25, 1.0), (0.1, 0.5), (0.05, -1.0), (0.0, -3.0))
"""From so much of the CPU time on: lines that repeat work are hot ones more often than others."""


@dataclass(frozen=True)
class Witness:
    """One addend of a score: ``met`` of ``count``, both None where nothing is counted."""

    text: str
    weight: float
    met: int | None = None
    count: int | None = None

    def __str__(self) -> str:
        counts = "" if self.count is None else f" {self.met} of {self.count}"
        return f"{self.text}{counts} {self.weight:+.1f}"


@dataclass(frozen=True)
class Score:
    """The witnesses of a line, the one that weighs most first."""

    witnesses: tuple[Witness, ...]

    @property
    def total(self) -> float:
        """In nats."""
        return sum(each.weight for each in self.witnesses)

    @property
    def is_enough(self) -> bool:
        """True for a finding."""
        return self.total >= ENOUGH

    def leads_with(self, kind: Kind) -> bool:
        """True if accesses or results of a kind weigh more than all else."""
        return bool(self.witnesses) and self.witnesses[0].text == COUNTED[kind].text and self.witnesses[0].weight > 0

    def __str__(self) -> str:
        return f"Evidence {self.total:.1f} of {ENOUGH:g} needed: {', '.join(map(str, self.witnesses))}."


def counted(kind: Kind, met: int, count: int, usual: float | None = None) -> Witness:
    """The weight of ``met`` of ``count`` pairs or blocks; ``usual`` is what a library's other lines repeat."""
    shares = COUNTED[kind]
    ordinary = shares.ordinary
    if usual is not None and kind != "result":
        strength = sum(ordinary)
        usual = min(max(usual, ordinary[0] / strength), 0.99)
        ordinary = (strength * usual, strength * (1 - usual))
    part = min(1.0, MOST_COUNTED / count) if count else 0.0
    taken, other = met * part, (count - met) * part
    weight = _log_probability(taken, other, shares.repeating) - _log_probability(taken, other, ordinary)
    return Witness(shares.text, max(-MOST_WEIGHT, min(MOST_WEIGHT, weight)), met, count)


def of_elements(witness: Witness) -> Witness:
    """The same for elements that a line takes one by one: what belongs to one is another thing each time anyway."""
    return replace(witness, weight=max(witness.weight, -LEAST_OF_ELEMENTS))


def said(source: str, text: str) -> Witness:
    """The weight of a key of ``SAID``."""
    return Witness(text, SAID[source])


def of_time(part: float) -> Witness:
    """The weight of a line's part of the CPU time."""
    weight = next(weight for least, weight in TIMES if part >= least)
    return Witness(f"{part:.0%} of the CPU time", weight)


def relevant(category: str | None, leading: Kind) -> tuple[Kind, ...]:
    """The kinds that are witnesses of a category: elements, and parts of what grows, give other results each time."""
    return (leading,) if category in (ALGORITHM, MISUSE, SLICE) else ("load", "store", "result")


def together(witnesses: list[Witness]) -> Score:
    """The sum of those that weigh anything."""
    return Score(tuple(sorted((each for each in witnesses if each.weight), key=lambda each: -abs(each.weight))))


def _log_probability(met: float, other: float, beta: Beta) -> float:
    """Of one order of so many that do and do not repeat, by a Beta distribution of the share."""
    first, second = beta
    return _log_beta(met + first, other + second) - _log_beta(first, second)


def _log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)
