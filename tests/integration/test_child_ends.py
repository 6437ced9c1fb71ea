"""The end of every process of a recording is known, whatever ended it: how, when, and what it had used."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

KILLED, WAITS = support.PROGRAMS / "killed_children.py", support.PROGRAMS / "waits.py"
NAMES = [
    "by_waitpid",
    "by_wait",
    "by_wait3",
    "by_wait4",
    "by_waitid",
    "by_polling",
    "aborts",
    "with_children",
    "large",
    "in_process",
    "started",
    "below_a_shell",
    "below_a_subshell",
    "in_thread",
    "sleep",
    "itself",
]


@dataclass(frozen=True)
class Killed:
    """A recording of a program whose children are killed, and which is killed itself."""

    recording: Path
    outcome: support.Outcome

    @cached_property
    def said(self) -> dict[str, dict[str, Any]]:
        """What the program says of each child, by its name."""
        return {line["name"]: line for line in map(json.loads, self.outcome.stdout.splitlines())}

    @cached_property
    def rows(self) -> dict[int, dict[str, Any]]:
        """The processes by their process id; each has one."""
        return {row["pid"]: row for row in support.rows(self.recording, "processes")}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("killed")
    return Killed(folder / "run.tacho", support.record([KILLED], folder))


def test_all_were_killed(killed: Killed) -> None:
    assert killed.outcome.status == 128 + 9
    assert [*killed.said] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_how_it_ended(killed: Killed, name: str) -> None:
    said = killed.said[name]
    assert killed.rows[said["pid"]]["exit_status"] == said["status"] < 0


@pytest.mark.parametrize("name", NAMES)
def test_when_it_ended(killed: Killed, name: str) -> None:
    """Not before the kill, and not after the parent was told; a shell between them does not report the time."""
    said = killed.said[name]
    end_ns = killed.rows[said["pid"]]["end_ns"]
    assert said["killed_ns"] <= end_ns
    assert end_ns <= said["told_ns"] or name in ("aborts", "below_a_shell", "below_a_subshell", "itself")
    assert end_ns <= said["told_ns"] + 1e9


@pytest.mark.parametrize("name", NAMES)
def test_what_it_used(killed: Killed, name: str) -> None:
    """All of its CPU time, and nothing of its own children's."""
    said = killed.said[name]
    row = killed.rows[said["pid"]]
    used_ns = row["user_ns"] + row["system_ns"]
    assert said["cpu_ns"] <= used_ns <= said["cpu_ns"] + 0.2e9


def test_what_it_held(killed: Killed) -> None:
    """A child with more memory than its parent ever had: that is its own."""
    row = killed.rows[killed.said["large"]["pid"]]
    assert 200 << 20 <= row["max_resident_bytes"] <= 300 << 20
    # Of one with children of its own, and of a smaller one, the kernel's figure may be another process's.
    assert killed.rows[killed.said["with_children"]["pid"]]["max_resident_bytes"] is None
    assert killed.rows[killed.said["sleep"]["pid"]]["max_resident_bytes"] is None


def test_it_is_shown(killed: Killed) -> None:
    shown = support.tachograph("analyze", killed.recording, "--processes", cwd=killed.recording.parent).stdout
    lines = [line for line in shown.splitlines() if " id=" in line]
    signals = {-6: "SIGABRT", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}
    for name in NAMES:
        said = killed.said[name]
        for line in lines:  # of many forks some are put together
            assert "?" not in line
            assert f" {said['pid']} id=" not in line or signals[said["status"]] in line
    report = support.analyze(killed.recording, cwd=killed.recording.parent)
    told = {row["pid"]: row["exit_status"] for row in report["processes"]}
    assert [told[killed.said[name]["pid"]] for name in NAMES] == [killed.said[name]["status"] for name in NAMES]


def test_waits_are_as_without_us(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:  # both wait most of the time
        beside = threads.submit(support.bare, [WAITS], tmp_path)
        recorded = support.record([WAITS], tmp_path)
    plain = beside.result()
    assert plain.status == 0, plain.stderr
    assert (recorded.stdout, recorded.stderr, recorded.status) == (plain.stdout, plain.stderr, plain.status)
    assert "cancelled -1\n" in plain.stdout
    losses = support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
    assert "child_ends_dropped" not in losses
