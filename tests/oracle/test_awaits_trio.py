"""Time that tasks of trio await, and of anyio above it, against programs that clock each of their awaits."""

from __future__ import annotations

import importlib.util

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.test_awaits import awaited, deviation

pytestmark = [
    pytest.mark.native,
    pytest.mark.slow,
    pytest.mark.skipif(not (importlib.util.find_spec("trio") and importlib.util.find_spec("anyio")), reason="no trio"),
]

STEADY = ("sleep", "lock", "held", "channel", "event", "socket", "write", "main")
"""Places where as many tasks stand at nearly any time: a census is off by little."""
CHANGING = ("produce", "part", "parts", "body")


@pytest.fixture(scope="module", params=("trio", "anyio"))
def how(request: pytest.FixtureRequest) -> str:
    how: str = request.param
    return how


@pytest.fixture(scope="module")
def run(how: str, recorded: Recorder) -> support.Run:
    return recorded("awaiting_trio.py", "6", how)


@pytest.mark.parametrize("name", STEADY + CHANGING)
def test_each_await_has_its_time(run: support.Run, name: str) -> None:
    """5 %, and where the numbers change three standard deviations of the interval that is given."""
    truth, row = run.truth[name], awaited(run, name)
    assert row["await_low_s"] <= row["await_s"] <= row["await_high_s"]
    assert row["await_s"] == pytest.approx(truth, abs=0.05 * truth + (0.0 if name in STEADY else 3 * deviation(row)))


def test_the_group_awaits_its_tasks_at_its_end(run: support.Run) -> None:
    tasks = {row["function"]: row["awaited_by"] for row in run.report["tasks"] if row["await_s"]}
    assert tasks["part"] == "parts"
    assert {tasks[name] for name in ("sleeper", "locked", "parts")} == {"main"}
    assert tasks["main"] is None


def test_names_are_those_that_the_program_gave(run: support.Run) -> None:
    """Both libraries name each task, by module and function."""
    named = {row["task"] for row in run.report["tasks"] if row["task"] is not None and row["await_s"]}
    assert named == {f"sleeper {number}" for number in range(3)}


def test_tasks_of_the_library_itself_are_left_out(run: support.Run) -> None:
    mine = {"main", "sleeper", "locked", "consumer", "producer", "waiting", "part", "parts", "reader"}
    assert {row["function"] for row in run.report["tasks"] if row["await_s"]} == mine


def test_the_tree_has_each_task_below_its_awaiter(how: str, run: support.Run) -> None:
    document = support.analyze(run.recording, "--tasks", "--tree", cwd=run.recording.parent)
    path: list[str] = []
    parents: dict[tuple[str, str | None], set[str | None]] = {}
    for row in document["tasks"]:
        del path[row["depth"] :]
        if row["await_s"] > 0.02 * sum(run.truth.values()) / len(run.truth):
            parents.setdefault((row["function"], row["calls"]), set()).add(path[-1] if path else None)
        path.append(row["function"])
    assert parents["part", "sleep"] >= {"parts"}
    assert "main" in parents["locked", "Lock.acquire" if how == "anyio" else "_LockImpl.acquire"]
    assert ("waiting", "Event.wait") in parents
    assert ("reader", "SocketStream.receive_some") in parents


def test_a_library_that_is_not_as_expected_is_counted(recorded: Recorder) -> None:
    assert recorded("other_trio.py").loss("task_libraries_unread") == 1
