"""Children that native code forks are recorded, or what they used is in the ledger."""

from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = support.PROGRAMS / "native_forks.py"
BUSY_NS = 0.4e9


def recorded(case: str, folder: Path, *options: str) -> tuple[support.Outcome, list[dict[str, object]], dict[str, int]]:
    """What the program did, the rows of its processes, and the losses; it does the same without a recording."""
    outcome = support.record([PROGRAM, case], folder, *options)
    plain = support.bare([PROGRAM, case], folder)
    assert (outcome.stdout, outcome.stderr, outcome.status) == (plain.stdout, plain.stderr, plain.status)
    report = support.analyze(folder / "run.tacho", cwd=folder)
    return outcome, support.rows(folder / "run.tacho", "processes"), support.losses(report)


def sampled_ns(folder: Path, process: object) -> int:
    """CPU time of the samples of one process."""
    threads = [row["thread"] for row in support.rows(folder / "run.tacho", "threads") if row["process"] == process]
    return sum(row["cpu_ns"] for row in support.rows(folder / "run.tacho", "cpu") if row["thread"] in threads)


@pytest.mark.parametrize("case", ["released", "held", "told", "threads"])
def test_a_child_that_runs_python_is_recorded(case: str, tmp_path: Path) -> None:
    _, rows, losses = recorded(case, tmp_path)
    parent, child = rows
    assert (child["parent"], child["origin"], child["exit_status"]) == (parent["process"], "fork", 3)
    busy_ns = 2 * BUSY_NS if case == "threads" else BUSY_NS
    assert 0.7 * busy_ns < sampled_ns(tmp_path, child["process"]) < 2 * busy_ns
    assert "children_unlisted_ms" not in losses


def test_without_memory(tmp_path: Path) -> None:
    _, rows, _ = recorded("held", tmp_path, "--cpu-only")
    assert sampled_ns(tmp_path, rows[1]["process"]) > 0.7 * BUSY_NS


@pytest.mark.parametrize("case", ["nested", "python"])
def test_the_last_of_two_that_runs_python_is_recorded(case: str, tmp_path: Path) -> None:
    _, rows, losses = recorded(case, tmp_path)
    assert [row["parent"] for row in rows] == [None, *range(len(rows) - 1)]
    assert sampled_ns(tmp_path, rows[-1]["process"]) > 0.7 * BUSY_NS
    assert "children_unlisted_ms" not in losses


def test_a_child_that_becomes_another_program_at_once_is_left_alone(tmp_path: Path) -> None:
    outcome, rows, losses = recorded("exec", tmp_path)
    assert outcome.stdout == "started\n"
    assert [row["parent"] for row in rows] == [None, 0]
    assert "children_unlisted_ms" not in losses


def test_what_the_others_used_is_in_the_ledger(tmp_path: Path) -> None:
    """Forked beside the main thread: no thread of the child's makes the interpreter's pending calls."""
    _, rows, losses = recorded("beside", tmp_path)
    assert len(rows) == 1
    assert 0.9 * BUSY_NS < losses["children_unlisted_ms"] * 1e6 < 3 * BUSY_NS
    shown = support.tachograph("analyze", tmp_path / "run.tacho", "--notes", cwd=tmp_path).stdout
    assert "nothing was lost" not in shown
    assert "child processes" in shown
