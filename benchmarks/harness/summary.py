"""From rows to ratios: pure functions.

A ratio is taken between two arms of the same round, because a machine's speed drifts more between rounds than within
one. Two figures are given: the ratio of the arms' medians, and the median of the per-round ratios, which should agree;
where they do not, the machine was not quiet enough.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median, quantiles

from harness.store import Row

Figure = Callable[[Row], float | None]


@dataclass(frozen=True)
class Ratio:
    """One arm against another, over the rounds in which both have the figure."""

    of_medians: float
    median: float
    low: float
    """First quartile of the per-round ratios."""
    high: float
    """Third quartile of the per-round ratios."""
    rounds: int


def ratio(rows: Iterable[Row], program: str, arm: str, against: str, figure: Figure) -> Ratio | None:
    """`figure` of `arm` over that of `against` for a program; None without a round that has both."""
    mine: dict[int, float] = {}
    base: dict[int, float] = {}
    for row in rows:
        value = figure(row)
        if row.program != program or not value:
            continue
        if row.arm == arm:
            mine[row.round] = value
        if row.arm == against:
            base[row.round] = value
    both = sorted(mine.keys() & base.keys())
    if not both:
        return None
    ratios = [mine[number] / base[number] for number in both]
    low, high = quartiles(ratios)
    return Ratio(
        of_medians=median(mine[number] for number in both) / median(base[number] for number in both),
        median=median(ratios),
        low=low,
        high=high,
        rounds=len(both),
    )


def quartiles(values: list[float]) -> tuple[float, float]:
    """First and third quartile; of a single value, that value twice."""
    if len(values) == 1:
        return values[0], values[0]
    cuts = quantiles(values, n=4, method="inclusive")
    return cuts[0], cuts[2]


def median_of(rows: Iterable[Row], program: str, arm: str, figure: Figure) -> float | None:
    """The median of a figure over the rounds; None if it was never measured."""
    values = [value for row in rows if row.program == program and row.arm == arm and (value := figure(row)) is not None]
    return median(values) if values else None
