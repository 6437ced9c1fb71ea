"""Time that tasks await, by line, against programs that clock each of their awaits."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import rows
from oracle.support import marked

pytestmark = [pytest.mark.native, pytest.mark.slow]

STEADY = ("sleep", "lock", "held", "socket", "write", "main")
"""Places where as many tasks stand at nearly any time: a census is off by little."""
CHANGING = ("queue", "produce", "part", "gather")


LOOPS = (
    "asyncio",
    pytest.param("uvloop", marks=pytest.mark.skipif(not importlib.util.find_spec("uvloop"), reason="no uvloop")),
)


@pytest.fixture(scope="module", params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    loop: str = request.param
    return loop


@pytest.fixture(scope="module")
def run(loop: str, recorded: Recorder) -> support.Run:
    return recorded("awaiting.py", "6", loop)


def awaited(run: support.Run, name: str) -> dict[str, Any]:
    lines = [row for row in run.report["lines"] if row["file"] == str(run.program)]
    found = [row for row in lines if row["line"] in marked(run.program, name)]
    assert len(found) == 1, name
    return dict(found[0])


def deviation(row: dict[str, Any]) -> float:
    """The standard deviation of the interval that is told of a line's awaiting."""
    return float(row["await_high_s"] - row["await_low_s"]) / (2 * 1.96)


@pytest.mark.parametrize("name", STEADY + CHANGING)
def test_each_await_has_its_time(run: support.Run, name: str) -> None:
    """5 %, and where the numbers change three standard deviations of the interval that is told."""
    truth, row = run.truth[name], awaited(run, name)
    assert row["await_low_s"] <= row["await_s"] <= row["await_high_s"]
    assert row["await_s"] == pytest.approx(truth, abs=0.05 * truth + (0.0 if name in STEADY else 3 * deviation(row)))
    assert row["awaiting_mean"] == pytest.approx(row["await_s"] / run.report["totals"]["wall_s"], rel=1e-6)


def test_how_many_await_at_a_time(run: support.Run) -> None:
    most = {name: awaited(run, name)["awaiting_peak"] for name in ("sleep", "lock", "part", "gather")}
    # Now and then there are so many tasks that one or two are left out: then those are estimates.
    assert most["sleep"] == pytest.approx(3, abs=0.7)
    assert most["lock"] == pytest.approx(4, abs=1)
    assert most["part"] == pytest.approx(20, abs=4)
    assert most["gather"] == pytest.approx(1, abs=0.3)


def test_who_awaits_whom(run: support.Run) -> None:
    tasks = {row["function"]: row for row in run.report["tasks"] if row["kind"] == "task" and row["task"] is None}
    by = {name: row["awaited_by"] for name, row in tasks.items()}
    assert by["part"] == "gathering"
    assert {by[name] for name in ("locked", "consumer", "producer", "gathering", "reader", "writer")} == {"main"}
    assert by["main"] is None
    named = {row["task"]: row for row in run.report["tasks"] if row["task"] is not None}
    assert {f"sleeper {number}" for number in range(3)} == set(named)
    assert {row["awaited_by"] for row in named.values()} == {"main"}


def test_who_awaits_through_wait(loop: str, recorded: Recorder) -> None:
    run = recorded("awaiting_wait.py", loop)
    by = {row["task"]: row["awaited_by"] for row in run.report["tasks"] if row["task"] is not None}
    assert by == {"first": "waiting", "second": "waiting_as_in_3_14"}


def test_lines_add_up_to_the_total(run: support.Run) -> None:
    report = run.report
    assert sum(row["await_s"] for row in report["lines"]) == pytest.approx(report["totals"]["await_s"])
    assert sum(row["await_s"] or 0.0 for row in report["tasks"]) == pytest.approx(report["totals"]["await_s"])


def test_ten_thousand_tasks(loop: str, recorded: Recorder) -> None:
    """A census looks at few of them. Its cost stays within the budget, its sum within its own error."""
    run = recorded("awaiting_many.py", "10000", loop)
    looked_at = sum(row["tasks"] for row in rows(run.recording, "awaits"))
    assert min(row["chance"] for row in rows(run.recording, "awaits")) < 0.01
    for name in ("many", "few"):
        share = run.truth[name] / sum(run.truth.values())
        spread = 3 * math.sqrt((1 - share) / share / looked_at)
        assert awaited(run, name)["await_s"] == pytest.approx(run.truth[name], rel=0.05 + spread), name


def test_thousands_of_switches_a_second(loop: str, recorded: Recorder) -> None:
    run = recorded("awaiting_many.py", "100", loop, "storm")
    assert run.truth["switches"] > 1000  # 7,000 where the machine is free
    for name in ("often", "seldom"):
        row = awaited(run, name)
        assert deviation(row) < 0.03 * run.truth[name], name
        assert row["await_s"] == pytest.approx(run.truth[name], abs=0.05 * run.truth[name] + 3 * deviation(row)), name


def test_the_tree_has_each_task_below_its_awaiter(run: support.Run) -> None:
    """Times are those of the lines; 60 of 60 tasks stand below main, those of gather below their own awaiter."""
    document = support.analyze(run.recording, "--tasks", "--tree", cwd=run.recording.parent)
    path: list[str] = []
    parents: dict[tuple[str, str | None], set[str | None]] = {}
    time: dict[int, float] = {}
    for row in document["tasks"]:
        del path[row["depth"] :]
        if row["await_s"] > 0.02 * run.truth["main"]:
            parents.setdefault((row["function"], row["calls"]), set()).add(path[-1] if path else None)
        time[row["line"]] = time.get(row["line"], 0.0) + row["await_s"]
        path.append(row["function"])
    assert parents["main", None] == {None}
    assert parents["sleeper", "sleep"] == parents["locked", "Lock.acquire"] == {"main"}
    assert parents["reader", "StreamReader.read"] == parents["gathering", None] == {"main"}
    assert parents["part", "sleep"] == {"gathering"}
    for row in run.report["lines"]:
        if row["file"] == str(run.program) and row["await_s"]:
            assert time[row["line"]] == pytest.approx(row["await_s"], rel=1e-6), row["line"]
    assert sum(time.values()) == pytest.approx(document["totals"]["await_s"])
