"""Names of asyncio's tasks: each coroutine's time is divided among its tasks as their own clocks say."""

import importlib.util
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from oracle import support
from oracle.conftest import Recorder

pytestmark = pytest.mark.native

PROGRAM = "asyncio_tasks.py"
LOOPS = (
    "asyncio",
    pytest.param(
        "uvloop",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(not importlib.util.find_spec("uvloop"), reason="no uvloop here"),
        ],
    ),
)


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest, recorded: Recorder) -> support.Run:
    return recorded(PROGRAM, "3", request.param, interval=2)


def by_name(run: support.Run) -> dict[str, support.Times]:
    """What is reported for each coroutine and name of a task."""
    rows = [row for row in run.report["tasks"] if row["kind"] == "task"]
    found = {f"{row['function']}|{row['task'] or ''}": support.times(row) for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_task_has_its_own_time(run: support.Run) -> None:
    found, whole = by_name(run), sum(run.spent.values())
    reported = sum((found.get(name, support.Times()) for name in run.spent), support.Times())
    wrong = []
    for name, spent in run.spent.items():
        share, allowed = spent / whole, support.tolerance(spent / whole, reported.samples)
        part = found.get(name, support.Times()).cpu_s / reported.cpu_s
        if abs(part - share) > allowed:
            wrong.append(f"{name}: {part:.4f} for {share:.4f} ± {allowed:.4f}")
    assert not wrong, f"of {reported.samples} samples: " + "; ".join(wrong)
    # Enough for names that are not there, or not told apart, to be seen above.
    assert min(run.spent["worker|heavy"], run.spent["worker|"]) > 5 * support.tolerance(0.05, reported.samples)


def test_no_name_is_made_up(run: support.Run) -> None:
    given = {name.partition("|")[2] for name in run.spent} | {"blocks", "hoards"}
    assert {row["task"] for row in run.report["tasks"] if row["task"]} <= given
    stacks = pq.read_table(run.recording / "stacks.parquet")["task"].to_pylist()
    assert set(stacks) - {None} <= given


def test_blocking_is_told_from_awaiting_by_name(run: support.Run) -> None:
    blocked = {row["task"]: row["blocked_s"] for row in run.report["tasks"] if row["kind"] == "task"}
    assert blocked["blocks"] > 0.25
    assert (blocked.get("awaits") or 0.0) < 0.1


def test_memory_by_name(run: support.Run) -> None:
    held = {row["task"]: row["allocated_bytes"] for row in run.report["tasks"] if row["kind"] == "task"}
    assert held["hoards"] == pytest.approx(80 << 20, rel=0.05)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no eager tasks")
def test_eager_tasks(run: support.Run) -> None:
    assert by_name(run)["eager|eager"].samples > 0


def test_tasks_that_come_and_go(recorded: Recorder) -> None:
    storm = recorded("task_storm.py", "2", interval=1)
    rows = [row for row in storm.report["tasks"] if row["task"] is not None]
    assert len({row["task"] for row in rows}) > 20
    assert not [(row["function"], row["task"]) for row in rows if row["task"].split()[0] != row["function"]]
    named = sum(row["cpu_s"] for row in rows)
    coroutines = [row for row in storm.report["tasks"] if row["function"] in ("alpha", "beta", "gamma")]
    assert named > 0.9 * sum(row["cpu_s"] for row in coroutines)


def test_asyncio_is_found_wherever_it_comes_from(recorded: Recorder) -> None:
    run = recorded("late_tasks.py")
    rows = [row for row in run.report["tasks"] if (row["function"] or "").endswith("work")]
    found = {row["task"]: row["cpu_s"] for row in rows}
    for name in run.truth["rounds"]:
        assert found[name] > 0.5 * run.truth["each_s"]
    assert found.get(None, 0.0) < 0.1 * sum(found.values())


def test_the_signal_sampler_gives_no_names(recorded: Recorder, tmp_path: Path) -> None:
    run = recorded(PROGRAM, "0.3", "asyncio", sampler="signal")
    assert {row["task"] for row in run.report["tasks"]} == {None}
    assert {row["function"] for row in run.report["tasks"]} >= {"worker"}


def test_more_names_than_are_kept(recorded: Recorder) -> None:
    run = recorded("many_tasks.py")
    rows = [row for row in run.report["tasks"] if row["function"] == "request"]
    named = [row for row in rows if row["task"] is not None]
    assert len({row["task"] for row in named}) == len(named) == 1024
    # The others are in the coroutine's row without a name, and the ledger says so.
    (nameless,) = [row for row in rows if row["task"] is None]
    unkept, blocked = run.truth["tasks"] - 1024, run.truth["blocked_s"]
    assert run.loss("task_names_unkept") >= unkept // 2
    assert nameless["blocked_s"] > 0.5 * blocked * unkept / run.truth["tasks"]
    assert sum(row["blocked_s"] for row in rows) > 0.7 * blocked
