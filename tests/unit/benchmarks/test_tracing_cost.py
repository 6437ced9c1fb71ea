"""What cProfile itself takes is taken off the functions on which it fell."""

import cProfile
import itertools
from pathlib import Path

import pytest

from harness.tracing_cost import EventCost, Traced, TracingCost, tracing_cost
from programs import empty_calls

CALLS = 1000


def callee() -> int:
    return sum(range(200))


def caller() -> None:
    for _ in range(CALLS):
        callee()


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    """By a clock that each event moves on by a microsecond, whatever else the machine does."""
    profile = cProfile.Profile(itertools.count().__next__, 1e-6)
    profile.runcall(caller)
    profile.dump_stats(tmp_path / "stats")
    return Traced(tmp_path / "stats")


def test_functions_in_c_are_their_callers(traced: Traced) -> None:
    sums = [call for call in traced.calls if call.in_c and call.caller == "callee"]
    assert [call.calls for call in sums] == [CALLS]
    assert traced.own_with_c()["callee"] == pytest.approx(traced.own_s["callee"] + sums[0].own_s)


def test_callee_and_caller_have_their_parts(traced: Traced) -> None:
    """A tenth of the time was tracing, and three quarters of that fell on the callee."""
    before = traced.own_with_c()
    whole = sum(before.values())
    cost = TracingCost(python=EventCost(3e-6, 1e-6), c=EventCost(0.0, 0.0))
    after = traced.less(cost, 0.9 * whole)
    assert before["callee"] - after["callee"] == pytest.approx(0.075 * whole)
    assert before["caller"] - after["caller"] == pytest.approx(0.025 * whole)


def test_a_run_as_fast_as_bare_has_nothing_taken_off(traced: Traced) -> None:
    cost = TracingCost(python=EventCost(3e-6, 1e-6), c=EventCost(0.0, 0.0))
    assert traced.less(cost, 10.0) == pytest.approx(traced.own_with_c())


def test_the_cost_of_empty_calls(tmp_path: Path) -> None:
    """Had they taken no time without tracing, all of it were tracing."""
    profile = cProfile.Profile()
    for loop in (empty_calls.no_call, empty_calls.python_call, empty_calls.c_call):
        profile.runcall(loop, CALLS)
    profile.dump_stats(tmp_path / "stats")
    traced = Traced(tmp_path / "stats")
    cost = tracing_cost(traced, dict.fromkeys(("no_call", "python_call", "c_call"), 0.0), CALLS)
    assert cost.python.callee_s == pytest.approx(traced.own_s["empty"] / CALLS)
    assert cost.python.caller_s == pytest.approx(traced.own_s["python_call"] / CALLS)
    assert cost.c.callee_s + cost.c.caller_s == pytest.approx(traced.own_with_c()["c_call"] / CALLS)
