"""Programs of PieProf's table 2 are found, with their kind; their faster forms are not, nor are innocent ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = [pytest.mark.native, pytest.mark.slow]

REPETITIONS = support.PROGRAMS / "repetitions.py"
INNOCENT = support.PROGRAMS / "innocent_calls.py"
SECONDS = 4
"""CPU time of a program; one whose finding is not beyond doubt by then gets more."""


def findings(folder: Path, program: Path, name: str, seconds: int) -> list[dict[str, Any]]:
    """What is found in a program."""
    shutil.rmtree(folder / "run.tacho", ignore_errors=True)
    done = support.record([program, name, str(seconds)], folder, "--redundancy", "--interval", "4", timeout=600)
    assert done.status == 0, done.stderr
    report = support.analyze(folder / "run.tacho", cwd=folder)
    if "watchpoints_refused" in support.losses(report):
        pytest.skip("this machine gives no watchpoints")
    found: list[dict[str, Any]] = report["redundancies"]
    return found


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
    ],
)
def test_programs_of_the_paper(tmp_path: Path, name: str, categories: set[str]) -> None:
    quantities: list[float] = []
    seconds = SECONDS
    while not quantities and seconds <= 8 * SECONDS:
        found = findings(tmp_path, REPETITIONS, name, seconds)
        quantities = [each["quantity_s"] for each in found[:3] if each["category"] in categories]
        seconds *= 2
    assert quantities, found
    # As much CPU time, of which a fifth at most may be repeated in the same way.
    after = findings(tmp_path, REPETITIONS, f"{name}_mended", seconds // 2)
    assert sum(each["quantity_s"] for each in after if each["category"] in categories) <= max(quantities) / 5, after


@pytest.mark.parametrize(
    "name",
    ["vectorised", "scaled", "matrices", "iteration", "python", "sorting", "text", "compressing", "files", "spinning"],
)
def test_programs_that_repeat_nothing(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, INNOCENT, name, 2 * SECONDS) == []
