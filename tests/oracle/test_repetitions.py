"""Programs that repeat work in forms that the paper has not: most are found, and no program without a repetition is."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.conftest import compiled
from programs.repetitions.innocent import INNOCENT
from programs.repetitions.of_elements import PAIRS as OF_ELEMENTS
from programs.repetitions.of_libraries import PAIRS as OF_LIBRARIES
from programs.repetitions.of_numpy import PAIRS as OF_NUMPY
from programs.repetitions.program import LIBRARY, marked, packages, script

pytestmark = [pytest.mark.native, pytest.mark.slow]

PAIRS = OF_NUMPY | OF_LIBRARIES | OF_ELEMENTS
SECONDS = ("8", "24")
"""CPU time; more where nothing was found by then: on a slow machine pairs are few."""
OUT_OF_REACH = {
    "pil": "nearly all of its time is in Python code, and in native code there are two pairs",
    "apply": "nearly all of its time is in Python code of pandas",
    "means": "less than two thirds of its native time is known as dispatch, and of the pairs one in five",
    "filter": "nearly all of its time is in Python code of SciPy",
}
"""Programs that are not found, and why."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(LIBRARY, tmp_path_factory)


def findings(text: str, seconds: str, folder: Path, library: Path) -> list[dict[str, Any]]:
    """What is reported of a program, the largest first."""
    lacking = [each for each in packages(text) if importlib.util.find_spec(each) is None]
    if lacking:
        pytest.skip(f"there is no {', '.join(lacking)}")
    program = folder / "program.py"
    program.write_text(script(text).replace('os.environ["LIBRARY"]', repr(str(library))), encoding="utf-8")
    recording = folder / f"{seconds}.tacho"
    done = support.tachograph(
        "record", "-q", "--redundancy", "-o", str(recording), program, seconds, cwd=folder, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] | None = support.analyze(recording, cwd=folder)["redundancies"]
    if found is None:
        pytest.skip("this machine gives no watchpoints")
    return found


@pytest.mark.parametrize("name", sorted(PAIRS.keys() - OUT_OF_REACH.keys()))
def test_repeated_work_is_found_on_its_line(name: str, tmp_path: Path, library: Path) -> None:
    pair = PAIRS[name]
    for seconds in SECONDS:
        found = findings(pair.text, seconds, tmp_path, library)
        if found:
            break
    assert found, name
    assert (found[0]["line"] in marked(pair.text), found[0]["category"]) == (True, pair.category), found[0]["why"]


@pytest.mark.parametrize("name", [*sorted(PAIRS), *sorted(INNOCENT)])
def test_programs_that_repeat_nothing_have_no_finding(name: str, tmp_path: Path, library: Path) -> None:
    text = PAIRS[name].mended if name in PAIRS else INNOCENT[name]
    found = findings(text, SECONDS[0], tmp_path, library)
    assert [(row["line"], row["category"], row["why"]) for row in found] == []
