"""CPU time, awaiting and memory of spans that take turns, against programs that clock each of their steps."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import rows
from oracle.support import Z

pytestmark = [pytest.mark.native, pytest.mark.slow]

HOW = ("asyncio", "uvloop", "gevent", "eventlet", "threads")
LOOPS = ("asyncio", "uvloop")


@pytest.fixture(params=HOW)
def how(request: pytest.FixtureRequest) -> str:
    how: str = request.param
    if how not in ("asyncio", "threads") and importlib.util.find_spec(how) is None:
        pytest.skip(f"{how} is not installed")
    return how


@pytest.fixture
def run(how: str, recorded: Recorder) -> support.Run:
    return recorded("span_turns.py", "8", how, interval=1)


def spans_of(run: support.Run) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in run.report["spans"]}


def test_each_has_the_cpu_time_that_it_took(run: support.Run) -> None:
    """3 %, and three standard deviations of a share of so many samples."""
    found, spent = spans_of(run), run.truth["spent"]
    total, samples = sum(spent.values()), run.report["totals"]["cpu_s"] / 0.001
    for name, ns in spent.items():
        share = ns / total
        spread = Z * math.sqrt((1 - share) / share / samples)
        assert found[name]["cpu_s"] == pytest.approx(ns / 1e9, rel=0.03 + spread), name
    assert found["<no span>"]["cpu_s"] < 0.15 * run.report["totals"]["cpu_s"]
    assert not [note for note in run.report["quality"]["notes"] if "turns" in note]


def test_children_belong_to_the_span_that_they_began_in(how: str, run: support.Run) -> None:
    if how not in LOOPS:
        pytest.skip("it has no tasks")
    found = spans_of(run)
    light, child = found["light"], found["child"]
    assert light["total_cpu_s"] == pytest.approx(light["cpu_s"] + child["cpu_s"], rel=1e-6)
    assert light["total_allocated_bytes"] == pytest.approx(
        light["allocated_bytes"] + child["allocated_bytes"], rel=1e-6
    )


def test_each_has_the_time_that_it_awaited(how: str, run: support.Run) -> None:
    """5 %, as by line, and the spread of a mean of so many censuses."""
    if how not in LOOPS:
        pytest.skip("nothing awaits there")
    found = spans_of(run)
    for name in ("heavy", "middle"):
        assert found[name]["await_s"] == pytest.approx(run.truth["facts"]["await_s"][name], rel=0.1), name


def test_each_has_the_memory_that_it_allocated(run: support.Run) -> None:
    """10 %, as a clock's numbers are memory, too, and three standard deviations of a share of so many rows."""
    found, rounds, units = spans_of(run), int(8 / 0.024), {"heavy": 8, "middle": 3, "light": 1}
    blocks = sum(row["size_bytes"] >= 1_000_000 for row in rows(run.recording, "allocations"))
    for name in ("heavy", "middle"):
        share = units[name] / sum(units.values())
        spread = Z * math.sqrt((1 - share) / share / blocks)
        allocated = rounds * units[name] * 1_000_000
        assert found[name]["allocated_bytes"] == pytest.approx(allocated, rel=0.1 + spread), name


def test_one_alone_has_its_own(run: support.Run) -> None:
    found = spans_of(run)
    report = support.analyze(run.recording, "--span", "middle", cwd=run.recording.parent)
    assert report["totals"]["cpu_s"] == pytest.approx(found["middle"]["total_cpu_s"], rel=1e-6)
