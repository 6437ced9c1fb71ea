"""A machine whose speed changes between the sides is not a program that did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tachograph.analyzer.diff import DiffResult, diff
from tachograph.analyzer.diff.evidence import Amounts, Evidence
from unit.analyzer.diff.conftest import SORT, WORK, Make

SLOW, FAST = (3000, 2970, 3030), (2000, 1980, 2020)
"""CPU samples of runs of one program, on a machine whose speed had a step between them."""
UNSTEADY, STEADY = (248, 176, 170, 123, 143, 116), (120, 121, 120, 119, 120, 121)
"""Microseconds that the recorder itself took for a sample on such a machine, as measured, and on one without steps."""


pytestmark = pytest.mark.broad


def record(make: Make, number: int, samples: int, cost_us: int | None, at: int) -> Path:
    """A run that began in the minute ``at``."""
    cost = {} if cost_us is None else {"handler_cpu_ns": cost_us * samples * 1000, "samples": samples}
    return make(
        f"r{number}",
        {WORK: samples},
        created_utc=f"2026-11-25T04:{at:02}:00Z",
        sampler_cost={"processes": [{"process": 0, **cost}]},
    )


def compared(
    make: Make, base: Sequence[int], new: Sequence[int], costs: Sequence[int | None], *, turns: bool = False
) -> DiffResult:
    """The diff of runs with so many samples, recorded one after the other or in turns."""
    numbers = range(len(base) + len(new))
    when = [number // 2 + len(base) * (number % 2) for number in numbers] if turns else list(numbers)
    paths = [
        record(make, number, samples, costs[number], when.index(number)) for number, samples in enumerate([*base, *new])
    ]
    return diff(paths[: len(base)], paths[len(base) :])


def test_a_step_of_the_machine_is_not_the_programs(make: Make) -> None:
    result = compared(make, SLOW, FAST, UNSTEADY)
    assert result.summary.verdict == "same"
    assert set(result.lines.values["verdict"]) == {"no evidence"}
    shares, speed = [remark for remark in result.remarks if "one after the other" in remark]
    assert "are compared by their shares" in shares
    assert "varied by some 16." in speed


def test_a_stored_base_is_compared_by_shares(make: Make) -> None:
    """The machine was a third faster, and one line has half of its part of the time."""
    numbers = range(6)
    counts = [(count, 1000) for count in (1000, 990, 1010)] + [(count, 1000) for count in (340, 330, 335)]
    paths = []
    for number, (work, sort) in zip(numbers, counts, strict=True):
        scale = 1.0 if number < 3 else 0.66
        samples = {WORK: round(work * scale), SORT: round(sort * scale)}
        cost = {"handler_cpu_ns": UNSTEADY[number] * sum(samples.values()) * 1000, "samples": sum(samples.values())}
        cost_of = {"processes": [{"process": 0, **cost}]}
        created = f"2026-11-25T04:{number:02}:00Z"
        paths.append(make(f"s{number}", samples, created_utc=created, sampler_cost=cost_of))
    result = diff(paths[:3], paths[3:])
    assert result.shares
    row = result.lines.metric("cpu").set_index("line").loc[WORK]
    assert row["verdict"] == "faster"
    assert row["base"] == pytest.approx(0.5, abs=0.01)
    assert not diff(paths[:3], paths[3:], anyway=True).shares


@pytest.mark.parametrize("costs", [STEADY, [None] * 6], ids=["steady", "unknown"])
def test_on_a_steady_machine_it_is_found(make: Make, costs: Sequence[int | None]) -> None:
    result = compared(make, SLOW, FAST, costs)
    assert result.summary.verdict == "faster"
    assert not [remark for remark in result.remarks if "one after the other" in remark]


def test_in_turns_it_is_in_the_spread_of_the_runs(make: Make) -> None:
    result = compared(make, SLOW, FAST, UNSTEADY, turns=True)
    assert result.summary.verdict == "faster"
    assert not [remark for remark in result.remarks if "one after the other" in remark]


def test_what_is_much_faster_is_found_however_unsteady_the_machine(make: Make) -> None:
    assert compared(make, [3000, 2600, 3100], [460, 440, 450], UNSTEADY).summary.verdict == "faster"


def test_samples_of_the_new_program_may_cost_more(make: Make) -> None:
    """That they do on one side and not on the other says nothing about the machine."""
    costs = [*STEADY[:3], *(3 * cost for cost in STEADY[3:])]
    assert compared(make, SLOW, FAST, costs).summary.verdict == "faster"


def test_verdicts_at_the_level_that_was_asked_for() -> None:
    """Sides that are off by a tenth as a whole, in runs that differ by a hundredth: the p-value is as often below."""
    rng = np.random.default_rng(1)

    def side() -> Amounts:
        off, own = rng.lognormal(0, 0.1, 8_000), rng.lognormal(0, 0.01, (3, 8_000))
        return Amounts(100 * off * own, np.zeros((3, 1)))

    base, new = side(), side()
    assert np.mean(Evidence(base, new).p_values() < 0.01) > 0.5
    assert np.mean(Evidence(base, new, drift=0.1).p_values() < 0.01) == pytest.approx(0.01, abs=0.005)
    interval = Evidence(base, new, drift=0.1).interval(0.05)
    assert np.mean((interval.low <= 0) & (interval.high >= 0)) == pytest.approx(0.95, abs=0.015)


def test_a_step_of_an_allocator_is_no_difference(make: Make) -> None:
    """Three runs on one side of it, three on the other, each three the same to the byte."""

    def held(number: int, size: int) -> Path:
        return make(f"h{number}-{size}", {WORK: 100}, allocated={WORK: size})

    def verdict(small: int, large: int) -> str:
        found = diff([held(n, small + n) for n in range(3)], [held(n, large + n) for n in range(3)]).totals.values
        return str(found.set_index("metric").at["memory.live_at_end", "verdict"])

    assert verdict(3_560_000, 3_750_000) == "no evidence"
    assert verdict(3_570_000, 5_750_000) == "more"
