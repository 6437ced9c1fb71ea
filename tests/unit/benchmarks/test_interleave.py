"""Which steps a comparison runs, and in which order."""

from harness.arms import Arm
from harness.interleave import LongRun, Plan
from harness.measure import START_UP

ARMS = [Arm("a", "x"), Arm("b", "x"), Arm("c", "x")]


def test_every_round_has_every_arm_and_another_one_begins() -> None:
    steps = list(Plan(["p", "q"], ARMS, rounds=3, seconds=1.0).steps())
    assert len(steps) == len({(number, name, arm.name) for number, name, arm in steps}) == 3 * 2 * 3
    firsts = [next(arm.name for number, name, arm in steps if (number, name) == (turn, "p")) for turn in range(3)]
    assert firsts == ["a", "b", "c"]
    assert [name for number, name, _ in steps if number == 0] == ["p"] * 3 + ["q"] * 3


def test_long_runs_and_starts_have_rounds_of_their_own() -> None:
    plan = Plan(["p"], ARMS, rounds=3, seconds=1.0, long=LongRun("long p", "p", 10.0, 2), start_ups=4)
    rounds = {name: {number for number, step, _ in plan.steps() if step == name} for name in ("p", "long p", START_UP)}
    assert rounds == {"p": {0, 1, 2}, "long p": {0, 1}, START_UP: {0, 1, 2, 3}}
