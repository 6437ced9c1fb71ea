"""From rows to ratios: pure functions.

A ratio is taken between two arms of the same round, because a machine's speed drifts more between rounds than within
one. Three figures are given: the median of the per-round ratios; the ratio of the arms' medians, which should agree
with it where the machine was quiet enough; and the ratio of the fastest runs, for a machine that others share: what
they do can make a run slower, and never faster.
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
    of_fastest: float
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
        of_fastest=min(mine[number] for number in both) / min(base[number] for number in both),
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


@dataclass(frozen=True)
class Size:
    """What an arm needs beside time, for one program. Bytes; None if unknown."""

    program_peak: float | None
    """The program's own largest resident set, median over the rounds."""
    above_bare: float | None
    """The median over the rounds of what that is more than in the bare run of the same round."""
    command_peak: float | None
    """Largest resident set of any process of the command."""
    recording: float | None
    """What the profiler left on disk."""
    recording_per_s: float | None
    """That, per second of the program's run."""


def size(rows: list[Row], program: str, arm: str, against: str) -> Size:
    """Memory and disk that an arm takes for a program."""
    bare = {
        row.round: row.program_peak_bytes
        for row in rows
        if row.program == program and row.arm == against and row.program_peak_bytes is not None
    }
    above = [
        row.program_peak_bytes - bare[row.round]
        for row in rows
        if row.program == program and row.arm == arm and row.program_peak_bytes is not None and row.round in bare
    ]
    recording = median_of(rows, program, arm, lambda row: row.recording_bytes)
    seconds = median_of(rows, program, arm, lambda row: row.in_program_s)
    return Size(
        program_peak=median_of(rows, program, arm, lambda row: row.program_peak_bytes),
        above_bare=median(above) if above else None,
        command_peak=median_of(rows, program, arm, lambda row: row.peak_rss_bytes),
        recording=recording,
        recording_per_s=recording / seconds if recording is not None and seconds else None,
    )


def growth(rows: list[Row], short: str, long: str, arm: str) -> float | None:
    """Bytes by which a recording grows in each further second, from a short and a long run of the same program."""
    known = [
        median_of(rows, program, arm, figure)
        for program in (short, long)
        for figure in (lambda row: row.recording_bytes, lambda row: row.in_program_s)
    ]
    short_bytes, short_s, long_bytes, long_s = known
    if short_bytes is None or short_s is None or long_bytes is None or long_s is None or long_s <= short_s:
        return None
    return (long_bytes - short_bytes) / (long_s - short_s)


def failures(rows: Iterable[Row], program: str, arm: str) -> str | None:
    """How an arm failed with a program, the last time it did; None if it never did."""
    found = [row.outcome for row in rows if row.program == program and row.arm == arm and not row.whole]
    return found[-1] if found else None
