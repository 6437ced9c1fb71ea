"""Every descendant is recorded, whatever way it came, and none of them can tell.

Each program is run once, bare and recorded; the tests look at what it says and at the recording.
"""

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

FORKS, STARTS = support.PROGRAMS / "forks.py", support.PROGRAMS / "starts.py"
PID = re.compile(r"pid=\d+")  # in CPython's warnings of a fork beside threads
WHOLE, NONE = 0, 1
"""Places in the format's enumeration ``stack_state``."""


@dataclass(frozen=True)
class Tree:
    """A recording of a program whose processes say who they are (programs/work.py)."""

    recording: Path
    bare: support.Outcome
    recorded: support.Outcome

    @cached_property
    def processes(self) -> list[dict[str, Any]]:
        return support.rows(self.recording, "processes")

    @cached_property
    def functions(self) -> dict[int, Counter[str]]:
        """CPU rows with a function somewhere on their stack, by process."""
        codes = {row["code"]: row["qualname"] for row in support.rows(self.recording, "codes")}
        stacks = support.rows(self.recording, "stacks")
        threads = {row["thread"]: row["process"] for row in support.rows(self.recording, "threads")}
        found: dict[int, Counter[str]] = defaultdict(Counter)
        for row in support.rows(self.recording, "cpu"):
            node, names = row["stack"], set()
            while node is not None:
                names.add(codes.get(stacks[node]["code"]))
                node = stacks[node]["parent"]
            found[threads[row["thread"]]].update(name for name in names if name)
        return found

    def workers(self, name: str) -> list[dict[str, Any]]:
        """What the processes that worked in function ``name`` said of themselves."""
        return [line for line in said(self.recorded) if line["name"] == name]

    def row(self, name: str) -> dict[str, Any]:
        """The row of the one process that worked in ``name``; it has samples of it."""
        (worker,) = self.workers(name)
        rows = [row for row in self.processes if row["pid"] == worker["pid"] and self.functions[row["process"]][name]]
        assert len(rows) == 1, f"{name}: {[row for row in self.processes if row['pid'] == worker['pid']]}"
        assert rows[0]["recorded"] == "python"
        assert rows[0]["python_version"]
        return rows[0]

    def parent(self, row: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.processes[row["parent"]]
        return found


def said(outcome: support.Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def names_and_environments(outcome: support.Outcome) -> list[tuple[str, dict[str, str]]]:
    """What does not differ from run to run, in an order that does not either."""
    return sorted(((line["name"], line["environment"]) for line in said(outcome)), key=str)


def make_tree(folder: Path, target: Sequence[str | Path]) -> Tree:
    plain = support.bare(target, folder)
    recorded = support.record(target, folder, "--interval", "2")
    return Tree(folder / "run.tacho", plain, recorded)


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return make_tree(tmp_path_factory.mktemp("forks"), [FORKS])


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return make_tree(tmp_path_factory.mktemp("starts"), [STARTS])


@pytest.mark.parametrize("name", ["forks", "starts"])
def test_as_without_us(name: str, request: pytest.FixtureRequest) -> None:
    """Exit status, errors, every process's environment with LD_PRELOAD: all is what it is in the bare run."""
    tree: Tree = request.getfixturevalue(name)
    assert tree.bare.status == 0, tree.bare.stderr
    assert tree.recorded.status == tree.bare.status
    assert PID.sub("pid", tree.recorded.stderr) == PID.sub("pid", tree.bare.stderr)
    assert names_and_environments(tree.recorded) == names_and_environments(tree.bare)


@pytest.mark.parametrize(
    "name", ["in_fork", "in_fork_of_thread", "in_fork_beside_threads", "in_process", "in_fork_that_returns"]
)
def test_forked(forks: Tree, name: str) -> None:
    row = forks.row(name)
    assert row["origin"] == "fork"
    assert forks.parent(row)["origin"] == "first"
    assert row["start_ns"] < row["end_ns"]
    assert row["user_ns"] + row["system_ns"] > 0


def test_forked_by_a_forked_child(forks: Tree) -> None:
    first, second = forks.row("in_fork_of_fork_1"), forks.row("in_fork_of_fork_2")
    assert second["parent"] == first["process"]
    assert second["parent_pid"] == first["pid"]


@pytest.mark.parametrize(("name", "tasks"), [("in_pool", 4), ("in_executor", 3)])
def test_forked_workers(forks: Tree, name: str, tasks: int) -> None:
    """They end with os._exit: what they did until then is there."""
    assert len(forks.workers(name)) == tasks
    for pid in {worker["pid"] for worker in forks.workers(name)}:
        (row,) = [row for row in forks.processes if row["pid"] == pid]
        assert forks.functions[row["process"]][name] > 0
        assert row["end_ns"] is not None


def test_a_daemon(forks: Tree) -> None:
    """Its parent has gone; what is known of that one is kept."""
    row = forks.row("in_daemon")
    assert row["origin"] == "fork"
    assert forks.parent(forks.parent(row))["origin"] == "first"


def test_the_counters_of_forked_children(forks: Tree) -> None:
    """A child's footprint begins with what its parent held, and its own rows say how it goes on."""
    row = forks.row("in_fork")
    memory = [line for line in support.rows(forks.recording, "memory") if line["process"] == row["process"]]
    flows = ("native", "mapped", "raw", "mem", "obj")
    first = memory[0]
    assert first["event"] == 0
    assert first["footprint_bytes"] > 1 << 20
    assert sum(first[f"{flow}_allocated_bytes"] for flow in flows) == first["footprint_bytes"]
    for before, after in itertools.pairwise(memory):
        net = sum(after[f"{flow}_allocated_bytes"] - after[f"{flow}_freed_bytes"] for flow in flows)
        assert after["footprint_bytes"] == before["footprint_bytes"] + net
    assert memory[-1]["event"] == 3


@pytest.mark.parametrize("name", ["forks", "starts"])
def test_nothing_is_lost(name: str, request: pytest.FixtureRequest) -> None:
    tree: Tree = request.getfixturevalue(name)
    losses = support.losses(support.analyze(tree.recording, cwd=tree.recording.parent))
    assert not losses.keys() & {"forks_unrecorded", "execs", "records_torn", "segments_missing", "processes_unarmed"}
    cpu = support.rows(tree.recording, "cpu")
    # An interpreter has no frames where it starts and ends, which is much of the time of one that does little else.
    with_frames = [row for row in cpu if row["stack_state"] != NONE]
    assert len(with_frames) > len(cpu) // 2
    assert sum(row["stack_state"] == WHOLE for row in with_frames) > 0.9 * len(with_frames)


@pytest.mark.parametrize(
    "name",
    [
        "in_posix_spawn",
        "in_posix_spawnp",
        "in_run",
        "in_shell",
        "in_system",
        "in_popen",
        "in_c_system",
        "in_c_popen",
        "in_empty_environment",
        "in_exec_of_shell",
        "in_session",
        "with_isolated",
        "with_no_environment",
        "with_another_path",
        "with_no_variables",
        "with_a_preload",
        "with_an_empty_preload",
        "with_preexec",
        "with_an_executable",
        "with_sitecustomize",
        "by_execv",
        "by_execve",
        "by_execvp",
        "by_execvpe",
        "by_fexecve",
        "in_spawn",
        "in_place_of_main",
    ],
)
def test_started(starts: Tree, name: str) -> None:
    row = starts.row(name)
    assert row["origin"] == ("first" if row["parent"] is None else "exec")
    assert name in row["command"] or name == "in_spawn"
    assert row["end_ns"] is not None


def test_started_by_a_fork_server(starts: Tree) -> None:
    """The server is a program of its own, the workers are its forks."""
    row = starts.row("in_forkserver")
    assert row["origin"] == "fork"
    assert starts.parent(row)["origin"] == "exec"
    assert "forkserver" in starts.parent(row)["command"]


def test_spawned_workers(starts: Tree) -> None:
    (pid,) = {worker["pid"] for worker in starts.workers("in_executor")}
    (row,) = [row for row in starts.processes if row["pid"] == pid]
    assert starts.functions[row["process"]]["in_executor"] > 0


def test_a_program_in_place_of_another(starts: Tree) -> None:
    """Two rows of one process: the first ends where the second begins, and has what it did until then."""
    later = starts.row("by_execv")
    earlier = starts.parent(later)
    assert earlier["pid"] == later["pid"]
    assert earlier["origin"] == "fork"
    assert earlier["end_ns"] <= later["start_ns"]
    assert starts.functions[earlier["process"]]["before_by_execv"] > 0


def test_what_is_no_python_is_listed(starts: Tree) -> None:
    """Shells and their like: who started them, how long they took, how they ended; and nothing that was recorded."""
    listed = [row for row in starts.processes if row["recorded"] == "listed"]
    names = Counter(Path(row["executable"]).name for row in listed)
    assert names["setsid"] == 1
    assert names["env"] == 1
    threads = {row["process"] for row in support.rows(starts.recording, "threads")}
    for row in listed:
        assert row["sampler"] is row["python_version"] is None
        assert row["process"] not in threads
    shell = starts.parent(starts.row("in_c_system"))
    assert shell["recorded"] == "listed"
    assert shell["command"].startswith("sh -c")
    assert shell["exit_status"] == 3
    assert shell["end_ns"] > starts.row("in_c_system")["end_ns"]
    assert shell["max_resident_bytes"] > 0


def test_the_parents_are_the_programs_that_started_them(starts: Tree) -> None:
    for name in ("in_run", "in_posix_spawn", "with_isolated"):
        assert starts.row(name)["parent"] == 0
    for row in starts.processes[1:]:
        assert row["parent"] is not None, row
        assert row["parent"] < row["process"]
