"""What children do while their parent waits, against programs in which both clock it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.support import marked

pytestmark = pytest.mark.native

ENDS = 0.03
"""Of a share: what a child does between its clock and the parent's, such as sending the result."""


def row_of(run: support.Run, name: str) -> dict[str, Any] | None:
    lines = marked(run.program, name)
    found = [row for row in run.report["parent_waits"] if row["line"] in lines]
    assert len(found) <= 1
    return found[0] if found else None


slow = pytest.mark.slow


def library(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"no {name}")


@pytest.mark.parametrize(
    "how",
    [
        *("pool", "pipes", "programs", pytest.param("executor", marks=slow), pytest.param("queues", marks=slow)),
        pytest.param("jobs", marks=(slow, library("joblib"))),
    ],
)
def test_the_parent_waits_for_what_its_children_do(how: str, recorded: Recorder) -> None:
    run = recorded("parent_waits.py", how)
    check(run, how, children=2)


def check(run: support.Run, how: str, children: int) -> None:
    row, truth = row_of(run, how), run.truth
    assert row is not None
    assert row["child_function"] == "transform"
    assert row["children"] == children
    assert row["wait_s"] == pytest.approx(truth["wait_s"], rel=0.1)
    assert row["share_low"] - ENDS < truth["share"] < row["share_high"] + ENDS
    assert row["share_low"] < row["share"] < row["share_high"]


def test_it_is_silent_where_the_parent_waits_for_something_else(recorded: Recorder) -> None:
    run = recorded("parent_waits.py", "unclear")
    for name in ("sleeps", "socket"):
        assert row_of(run, name) is None, name
    row = row_of(run, "thread")
    assert row is None or row["share"] is None


uvloop = library("uvloop")


@pytest.mark.parametrize(
    ("how", "loop"),
    [
        *(("executor", "asyncio"), ("programs", "asyncio"), pytest.param("tasks", "asyncio", marks=slow)),
        pytest.param("lines", "asyncio", marks=slow),
        *(pytest.param(how, "uvloop", marks=(slow, uvloop)) for how in ("executor", "tasks", "programs", "lines")),
    ],
)
def test_an_event_loop_waits_for_what_its_tasks_await(how: str, loop: str, recorded: Recorder) -> None:
    check(recorded("parent_waits_loop.py", how, loop), how, children=2)


@pytest.mark.parametrize("loop", ["asyncio", pytest.param("uvloop", marks=(slow, uvloop))])
def test_it_is_silent_where_the_loop_awaits_something_else(loop: str, recorded: Recorder) -> None:
    run = recorded("parent_waits_loop.py", "unclear", loop)
    for name in ("ticking", "sleeps", "socket", "future", "thread", "sleeping-thread"):
        assert row_of(run, name) is None, name
