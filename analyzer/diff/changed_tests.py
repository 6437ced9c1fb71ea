"""Compares the tests of a run with those of earlier runs: the tests that need more CPU time or memory, with certainty.

The runs of the base tell how much runs differ; the same statistics judge as in a diff of groups (``evidence``), with
all tests and both metrics judged together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..profile.question import Question
from ..profile.tests import read_tests
from ..recording.opened import Recording
from ..recording.text import printable
from ..report_data.difference import FASTER, LESS, MORE, NO_EVIDENCE, SLOWER, UNKNOWN
from ..report_data.limit_verdicts import amount_text
from ..report_data.numbers import change, counted, signed, span
from ..samples.summary import ALL
from ..statistics.distributions import adjusted_alpha
from .evidence import RATE, Amounts, Evidence
from .runs import UNEQUAL, obstacles, read_run, remarks

FEWEST_BASES = 3
"""With fewer recordings of the base there are no verdicts: two runs hardly tell how much runs differ."""

SMALLEST = 0.05
"""The smallest difference that gets a verdict, as a part of the test's own amount."""

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Compared:
    """Compared quantity: seconds of CPU time of all phases, or the most bytes that one of them held."""

    name: str
    unit: str
    least: float
    """Tests with less on both sides are left out, and smaller differences have no verdict."""
    more: str
    less: str


UNEQUAL_PROGRAM = f"{UNEQUAL}: program "
METRICS = (Compared("CPU", "s", 0.01, SLOWER, FASTER), Compared("memory", "B", 200_000, MORE, LESS))
MAX_TEST = 150


@dataclass(frozen=True, slots=True)
class Change:
    """A test and a metric: means of both sides, the difference with its interval, and the verdict."""

    test: str
    metric: Compared
    base: float
    new: float
    low: float
    high: float
    verdict: str

    @property
    def worse(self) -> bool:
        """True if it needs more for certain."""
        return self.verdict == self.metric.more


@dataclass(frozen=True)
class Comparison:
    """The changes, the largest first; ``unjudged`` says why there are no verdicts, ``notes`` what weakens them."""

    changes: list[Change]
    compared: int
    added: int
    gone: int
    bases: int
    unjudged: str | None
    notes: list[str]

    def lines(self) -> Iterator[str]:
        """The comparison as text, line by line."""
        different = [each for each in self.changes if each.verdict not in (NO_EVIDENCE, UNKNOWN)]
        how_many = f"{counted(self.compared, 'tests')} compared with {counted(self.bases, 'recordings')}"
        others = f", {self.added} new, {self.gone} gone" if self.added or self.gone else ""
        yield f"{how_many}{others}: {sum(each.worse for each in different)} need more, for certain"
        for each in different:
            yield f"{each.verdict}: {about(each)}"
        if self.unjudged is not None:
            yield f"no verdicts: {self.unjudged}"
        for note in self.notes:
            yield f"note: {printable(note, 300)}"


def about(each: Change) -> str:
    """A change in words."""
    new, base = amount_text(each.new, each.metric.unit), amount_text(each.base, each.metric.unit)
    unit = "s" if each.metric.unit == "s" else "bytes"
    relative = change(each.new / each.base - 1) if each.base > 0 else "from nothing"
    ends = span(each.low, each.high, unit)
    difference = signed(each.new - each.base, unit)
    return (
        f"{printable(each.test, MAX_TEST)}: {new} of {each.metric.name}, was {base} ({relative}, {difference}: {ends})"
    )


def compare_tests(base: Sequence[Path], new: Path, *, anyway: bool = False) -> Comparison:
    """Compares the tests of ``new`` with those of the recordings ``base``; ``anyway``: also in another environment.

    Errors:
        FormatError: a recording cannot be read, has no tests, or was made in another environment or another way.
    """
    question = Question(ALL)
    runs = [read_run(path, question) for path in (*base, new)]
    reasons = obstacles(runs)
    if reasons and not anyway:
        raise FormatError(f"the tests cannot be compared with those of the base: {'; '.join(reasons)}")
    costs = [_costs(path) for path in (*base, new)]
    common = [test for test in costs[-1] if all(test in each for each in costs)]
    before = set().union(*costs[:-1])
    unjudged = None
    if len(base) < FEWEST_BASES:
        unjudged = f"fewer than {FEWEST_BASES} recordings of the base hardly tell how much runs differ"
    # The command lines differ in any case: they name the recordings.
    weaker = [note for note in remarks(runs[:-1], runs[-1:]) if not note.startswith(UNEQUAL_PROGRAM)]
    notes = [*(f"not comparable: {reason}" for reason in reasons), *weaker]
    return Comparison(
        changes=_changes(common, costs, judged=unjudged is None),
        compared=len(common),
        added=len(costs[-1].keys() - before),
        gone=len(before - costs[-1].keys()),
        bases=len(base),
        unjudged=unjudged,
        notes=notes,
    )


def _costs(path: Path) -> dict[str, _Array]:
    """Costs of each test: CPU time of all phases, the most that one of them held, and the lower end of that."""
    costs: dict[str, _Array] = {}
    with Recording.open(path) as recording:
        for row in read_tests(recording).frame.rows():
            mine = costs.setdefault(row["test"], np.array([0.0, np.nan, np.nan]))
            mine[0] += row["cpu_s"]
            if not mine[1] >= row["peak_bytes"]:
                mine[1:] = row["peak_bytes"], row["peak_bytes_low"]
    if not costs:
        raise FormatError(f"{printable(str(path))} has no tests: it was not made by pytest --tachograph")
    return costs


def _changes(tests: Sequence[str], costs: Sequence[dict[str, _Array]], *, judged: bool) -> list[Change]:
    values = np.array([[each[test] for test in tests] for each in costs]).reshape(len(costs), len(tests), 3)
    reach = values[:, :, 1] - values[:, :, 2]
    of_metrics = [
        Evidence(_amounts(values[:-1, :, 0], None), _amounts(values[-1:, :, 0], None)),
        Evidence(_amounts(values[:-1, :, 1], reach[:-1]), _amounts(values[-1:, :, 1], reach[-1:])),
    ]
    enough = [np.nanmax(values[:, :, place], axis=0, initial=0) >= each.least for place, each in enumerate(METRICS)]
    p_values = [
        np.where(rows, evidence.p_values(), np.nan) if judged else np.full(len(tests), np.nan)
        for rows, evidence in zip(enough, of_metrics, strict=True)
    ]
    alpha = adjusted_alpha(np.concatenate(p_values)) if judged else RATE
    changes = []
    for place, (metric, evidence) in enumerate(zip(METRICS, of_metrics, strict=True)):
        interval = evidence.interval(alpha)
        means = values[:-1, :, place].mean(axis=0)
        for row in np.flatnonzero(enough[place]).tolist():
            difference = float(interval.value[row])
            large = abs(difference) >= max(metric.least, SMALLEST * means[row])
            verdict = UNKNOWN if np.isnan(p_values[place][row]) else NO_EVIDENCE
            if p_values[place][row] <= alpha and large:
                verdict = metric.more if difference > 0 else metric.less
            ends = float(interval.low[row]), float(interval.high[row])
            changes.append(Change(tests[row], metric, float(means[row]), float(values[-1, row, place]), *ends, verdict))
    changes.sort(key=lambda each: -abs(each.new - each.base) / each.metric.least)
    return changes


def _amounts(values: _Array, reach: _Array | None) -> Amounts:
    """Measured amounts (``reach`` is None), or estimates whose intervals reach so far."""
    return Amounts(values, np.zeros((len(values), 1)), reach, reach)
