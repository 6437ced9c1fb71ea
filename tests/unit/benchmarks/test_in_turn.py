"""Arms that take turns, and what their pairs say."""

from pathlib import Path

import pytest

from harness.arms import BARE, BARE_AGAIN, Arm
from harness.errors import BenchmarkError
from harness.in_turn import Turn, Turns, added_memory, middle, middle_of_programs, ratios, take_turns
from harness.turn_tables import of_bare


def turn(number: int, arm: str, cpu_s: float, *, program: str = "p", peak: int | None = None, of: int = 0) -> Turn:
    return Turn(of, program, arm, number, 3, cpu_s, cpu_s, 2 * cpu_s, peak)


def test_ratios_are_of_the_same_turn_and_each_set_of_processes_counts_once() -> None:
    turns = [turn(0, BARE, 1.0), turn(0, "a", 1.1), turn(1, BARE, 2.0), turn(1, "a", 2.4), turn(2, "a", 9.0)]
    turns += [turn(0, BARE, 4.0, program="q"), turn(0, BARE, 2.0, of=1), turn(0, "a", 3.0, of=1)]
    assert ratios(turns, "p", "a", [BARE], lambda each: each.cpu_s) == pytest.approx([1.15, 1.5])


def test_ratios_are_over_the_mean_of_the_bare_arms_that_took_the_turn() -> None:
    turns = [turn(0, BARE, 1.0), turn(0, BARE_AGAIN, 3.0), turn(0, "a", 3.0), turn(1, BARE, 2.0), turn(1, "a", 5.0)]
    assert ratios(turns, "p", "a", [BARE, BARE_AGAIN], lambda each: each.cpu_s) == [2.0]
    assert of_bare(turns, "p", "a") == [2.0]
    assert of_bare(turns, "p", BARE_AGAIN) == [3.0]


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (3, 0, 2),
        (5, 0, 4),  # one value beyond the least has the probability of 1 in 32, on each side
        (6, 0, 5),
        (9, 1, 7),  # tables of the sign test: 2 and 8 of 9, 6 and 15 of 20
        (20, 5, 14),
    ],
)
def test_the_interval_of_a_median_is_that_of_the_sign_test(count: int, low: int, high: int) -> None:
    found = middle([float(each) for each in range(count)])
    assert (found.value, found.low, found.high) == ((count - 1) / 2, low, high)


def test_the_median_of_programs_has_an_interval_around_it() -> None:
    found = middle_of_programs({"a": [1.0, 1.02, 1.04] * 5, "b": [1.1] * 15, "c": [0.9] * 15})
    assert found.value == 1.02
    assert 1.0 <= found.low <= 1.02 <= found.high <= 1.04
    assert found.low < found.high


def test_memory_is_compared_within_a_set_of_processes() -> None:
    turns = [turn(0, BARE, 1.0, peak=100), turn(0, "a", 1.0, peak=130)]
    turns += [turn(0, BARE, 1.0, peak=200, of=1), turn(0, "a", 1.0, peak=210, of=1)]
    assert added_memory(turns, "p", "a", BARE) == 20
    assert added_memory([turn(0, BARE, 1.0), turn(0, "a", 1.0)], "p", "a", BARE) is None


def test_arms_take_turns_and_what_they_took_is_kept(tmp_path: Path) -> None:
    arms = [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python}")]
    found = take_turns(0, "small_calls", "recursion", arms, turns=2, seconds=1e-6, timeout_s=60)
    assert [(each.arm, each.turn) for each in found] == [(BARE, 0), (BARE_AGAIN, 0), (BARE_AGAIN, 1), (BARE, 1)]
    assert all(each.cpu_s > 0 and each.passes == 1 for each in found)
    kept = Turns(tmp_path / "turns.jsonl")
    kept.append(found)
    assert kept.all() == found
    kept.clear()
    assert kept.all() == []


def test_an_arm_that_ends_is_named() -> None:
    with pytest.raises(BenchmarkError, match=r"'bare again'.*KeyError"):
        take_turns(
            0,
            "small_calls",
            "recursion",
            [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python} -c 'raise KeyError' --")],
            turns=1,
            seconds=1e-6,
            timeout_s=60,
        )
