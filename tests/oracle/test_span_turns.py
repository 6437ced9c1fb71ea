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

HOW = ("asyncio", "uvloop", "trio", "anyio", "gevent", "eventlet", "threads")
LOOPS = ("asyncio", "uvloop", "trio", "anyio")


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


def of_share(share: float, samples: float) -> float:
    """Three standard deviations of the estimate of a ``share`` from so many samples, as a part of it.

    The share of n samples has the variance ``share * (1 - share) / n``.
    """
    return Z * math.sqrt((1 - share) / share / samples)


def test_each_has_the_cpu_time_that_it_took(run: support.Run) -> None:
    """3 %, and three standard deviations of a share of so many samples.

    Their number is that of samples with equal weights, ``(sum of w)^2 / sum of w^2`` (Kish 1965). It is not CPU time by
    interval: the kernel fires timers of CPU time on its ticks, which are 4 ms apart where it has 250 a second.
    """
    found, spent = spans_of(run), run.truth["spent"]
    weights = [row["cpu_ns"] / 1e9 for row in rows(run.recording, "cpu")]
    samples = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    for name, ns in spent.items():
        spread = of_share(ns / sum(spent.values()), samples)
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
    """5 %, as by line, and three standard deviations: each census finds a task suspended, or does not."""
    if how not in LOOPS:
        pytest.skip("nothing awaits there")
    found, wall_s = spans_of(run), run.report["totals"]["wall_s"]
    censuses = len({row["time_ns"] for row in rows(run.recording, "awaits")})
    for name in ("heavy", "middle", "child"):
        awaited = run.truth["facts"]["await_s"][name]
        assert found[name]["await_s"] == pytest.approx(awaited, rel=0.05 + of_share(awaited / wall_s, censuses)), name


def test_each_has_the_memory_that_it_allocated(run: support.Run) -> None:
    """Three standard deviations of the sampling of its blocks, and 0.5 % for what the loop allocates itself.

    Blocks of a megabyte are all sampled. Once a second some of those that died become rows, which stand for the others
    of their place and lifetime, in order of their spans: of each such group a span has what is its own, give or take a
    part of a row. Rounded at random that has a variance of at most ``row^2 / 4``.
    """
    found, truth = spans_of(run), run.truth["facts"]["allocated"]
    large = [row for row in rows(run.recording, "allocations") if row["size_bytes"] >= 1_000_000]
    groups = run.report["totals"]["wall_s"] * len({lifetime(row) for row in large})
    error = Z * max(row["weight_bytes"] for row in large) / 2 * math.sqrt(groups)
    for name, allocated in truth.items():
        assert found[name]["allocated_bytes"] == pytest.approx(allocated, abs=error + 0.005 * allocated), name


def lifetime(row: dict[str, Any]) -> int:
    """The class of a block's lifetime in which it may stand for others: a power of 16 nanoseconds."""
    return int(row["freed_ns"] - row["time_ns"]).bit_length() // 4 if row["freed_ns"] else -1


def test_one_alone_has_its_own(run: support.Run) -> None:
    found = spans_of(run)
    report = support.analyze(run.recording, "--span", "middle", cwd=run.recording.parent)
    assert report["totals"]["cpu_s"] == pytest.approx(found["middle"]["total_cpu_s"], rel=1e-6)
