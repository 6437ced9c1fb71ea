"""Programs of PieProf's table 2 are found, with their kind; their faster forms are not, nor are innocent ones."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = [pytest.mark.native, pytest.mark.slow]

REPETITIONS = support.PROGRAMS / "repetitions.py"
INNOCENT = support.PROGRAMS / "innocent_calls.py"
SECONDS = (8, 24, 72)
"""CPU time of a program; more where the finding is not beyond doubt by then: where traps are dear they are few."""


@dataclass(frozen=True)
class Found:
    """What is found in a program, the largest first, and how often it went through its work meanwhile."""

    rows: list[dict[str, Any]]
    rounds: int

    def per_round(self, categories: set[str]) -> float:
        """CPU time of repetitions of these kinds in one round, in seconds."""
        return sum(float(each["quantity_s"]) for each in self.rows if each["category"] in categories) / self.rounds


def findings(folder: Path, program: Path, name: str, seconds: int) -> Found:
    """What is found in a program."""
    shutil.rmtree(folder / "run.tacho", ignore_errors=True)
    done = support.record([program, name, str(seconds)], folder, "--redundancy", "--interval", "4", timeout=1200)
    assert done.status == 0, done.stderr
    report = support.analyze(folder / "run.tacho", cwd=folder)
    if "watchpoints_refused" in support.losses(report):
        pytest.skip("this machine gives no watchpoints")
    return Found(report["redundancies"], int(done.stdout))


@pytest.fixture(autouse=True)
def native_recorder() -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")


@pytest.mark.parametrize(
    ("name", "categories"),
    [
        ("cec_4", {"slice-underutilization", "api-misuse"}),  # the paper has it under both
        ("cec_9", {"api-misuse"}),
        ("cec_power", {"loop-invariant"}),
        ("adx", {"slice-underutilization"}),
        ("cholesky", {"slice-underutilization"}),
        ("iris", {"slice-underutilization"}),
        ("conv", {"slice-underutilization"}),
        ("rotate", {"repeated-call-same-arguments"}),
        ("regression", {"repeated-call-same-arguments"}),
        ("lars_path", {"inefficient-algorithm"}),
        ("product", {"loop-invariant"}),
        # PyTorch's and TensorFlow's, in NumPy.
        ("adam", {"loop-invariant"}),
        ("ggnn", {"loop-invariant"}),
        ("normalize", {"slice-underutilization"}),
        ("learning", {"loop-invariant"}),
    ],
)
def test_programs_of_the_paper(tmp_path: Path, name: str, categories: set[str]) -> None:
    for seconds in SECONDS:
        found = findings(tmp_path, REPETITIONS, name, seconds)
        if any(each["category"] in categories for each in found.rows[:3]):
            break
    else:
        pytest.fail(f"not among the first three: {found}")
    # The same work in the faster form, of which a fifth at most may be repeated in the same way.
    after = findings(tmp_path, REPETITIONS, f"{name}_mended", seconds)
    assert after.per_round(categories) <= found.per_round(categories) / 5, (found, after)


@pytest.mark.parametrize(
    "name",
    [
        *("vectorised", "scaled", "matrices", "iteration", "python", "sorting", "text", "compressing", "files"),
        *("spinning", "turning", "rolling", "steps"),
    ],
)
def test_programs_that_repeat_nothing(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, INNOCENT, name, SECONDS[1]).rows == []
