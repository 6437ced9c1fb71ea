"""pause and resume from inside the program: what happens between them is not in the recording."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from integration import support

SPIN = """
import time
def spin(s):
    end = time.process_time() + s
    while time.process_time() < end: sum(range(100_000))  # reading such a clock may cost the processor
"""
SWITCH = (
    SPIN
    + """
def before(): spin(0.4)
def hidden(): spin(0.4)
def after(): spin(0.4)
before()
pause()
hidden()
resume()
after()
pause()
hidden()
"""
)
IMPORT = "from tachograph.recorder import pause, resume\n"


def totals(folder: Path) -> dict[str, float]:
    """CPU seconds by the function above `spin`, from the recording itself."""
    recording = folder / "run.tacho"
    stacks, codes = support.rows(recording, "stacks"), support.rows(recording, "codes")
    found: dict[str, float] = {}
    for row in support.rows(recording, "cpu"):
        stack = row["stack"]
        while stack is not None:
            name = codes[stacks[stack]["code"]]["qualname"]
            if name in ("before", "hidden", "after"):
                found[name] = found.get(name, 0.0) + row["cpu_ns"] / 1e9
            stack = stacks[stack]["parent"]
    return found


def run(folder: Path, sampler: str, *options: str) -> Path:
    done = support.record(["-c", IMPORT + SWITCH], folder, "--interval", "10", "--sampler", sampler, *options)
    assert done == support.Outcome(0, "", "")
    return folder


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``switched(sampler)``: the folder of its recording of ``SWITCH``, which is made once."""
    return cache(lambda sampler: run(tmp_path_factory.mktemp(sampler), sampler))


def test_paused_time_is_left_out(switched: Callable[[str], Path], sampler: str) -> None:
    found = totals(switched(sampler))
    assert found.get("hidden", 0.0) < 0.03
    assert found["before"] == pytest.approx(0.4, abs=0.04)
    assert found["after"] == pytest.approx(0.4, abs=0.04)


def test_start_paused(tmp_path: Path, sampler: str) -> None:
    found = totals(run(tmp_path, sampler, "--start-paused"))
    assert set(found) <= {"after", "hidden"}
    assert found.get("hidden", 0.0) < 0.03
    assert found["after"] == pytest.approx(0.4, abs=0.04)


def test_paused_to_the_end_is_an_empty_recording(tmp_path: Path, sampler: str) -> None:
    done = support.record(["-c", SPIN + "spin(0.2)"], tmp_path, "--sampler", sampler, "--start-paused")
    assert done == support.Outcome(0, "", "")
    assert support.rows(tmp_path / "run.tacho", "cpu") == []
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert [row for row in report["lines"] if row["file"]] == []  # what memory did meanwhile is known, but not where
    assert report["totals"]["samples"] == 0


@pytest.mark.native
def test_paused_waiting_is_left_out(tmp_path: Path) -> None:
    code = IMPORT + (
        "import time\npause()\ntime.sleep(0.6)\nresume()\n"
        "begin = time.monotonic()\ntime.sleep(0.3)\nprint(time.monotonic() - begin)\n"
    )
    done = support.record(["-c", code], tmp_path)
    assert done.status == 0
    waited = sum(row["off_cpu_ns"] for row in support.rows(tmp_path / "run.tacho", "waits")) / 1e9
    assert 0.24 < waited < float(done.stdout) + 0.1


@pytest.mark.native
def test_thread_cpu_leaves_paused_time_out(switched: Callable[[str], Path]) -> None:
    main = [row for row in support.rows(switched("native") / "run.tacho", "threads") if row["main"]]
    assert main[0]["cpu_ns"] / 1e9 == pytest.approx(0.8, abs=0.12)


def test_outside_a_recording_they_do_nothing(tmp_path: Path) -> None:
    code = (
        IMPORT + "import sys\npause(); resume(); resume(); pause()\nprint('tachograph.recorder._native' in sys.modules)"
    )
    assert support.bare(["-c", code], tmp_path) == support.Outcome(0, "False\n", "")
