"""How command templates become commands."""

import sys
from pathlib import Path

import pytest

from harness.arms import BARE, BARE_AGAIN, CPU_ONLY, FULL, Arm, arms
from harness.errors import BenchmarkError

PROGRAM = ["app.py", "{python}", "an argument"]


def test_the_program_goes_to_the_end_or_where_the_template_says() -> None:
    recording = Path("out")
    assert Arm("x", "{python}").command(PROGRAM, recording) == [sys.executable, *PROGRAM]
    assert Arm("x", "peer -o {recording} {program} --end").command(PROGRAM, recording) == [
        *["peer", "-o", "out"],
        *PROGRAM,
        "--end",
    ]


def test_script_and_arguments_can_stand_apart_and_places_can_be_parts_of_words() -> None:
    arm = Arm("x", "{bin}/peer --out={recording}/x {script} --- {arguments}", python="/venv/bin/python")
    assert arm.command(PROGRAM, Path("out")) == [
        *["/venv/bin/peer", "--out=out/x", "app.py", "---"],
        *PROGRAM[1:],
    ]


def test_bare_and_the_noise_floor_are_always_there() -> None:
    assert [arm.name for arm in arms([])] == [BARE, BARE_AGAIN, CPU_ONLY, FULL]
    assert [arm.name for arm in arms([], [Arm("other", "x", peer=True)])][-2:] == [FULL, "other"]
    assert [arm.name for arm in arms(["peer=peer run", "other=x"])] == [BARE, BARE_AGAIN, "peer", "other"]


@pytest.mark.parametrize("text", ["peer", "=command", "peer= ", "bare=python"])
def test_an_arm_needs_a_name_of_its_own_and_a_command(text: str) -> None:
    with pytest.raises(BenchmarkError, match="NAME=COMMAND"):
        arms([text])
