"""Times are the kernel's, whatever replaces the C library's clock or is forbidden to the program."""

import sys
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import is_complete, running

pytestmark = pytest.mark.native

SPAN = """
import time
from tachograph.recorder import span
with span("work"):
    end = time.process_time() + 0.3
    while time.process_time() < end: sum(range(1000))
"""
CHILD = f"""
import os, subprocess, sys
child = subprocess.run([sys.executable, "-c", {SPAN!r}], env=dict(os.environ, LD_PRELOAD=sys.argv[1]))
"""
NO_TIME_STAMPS = """
import ctypes, os
assert ctypes.CDLL(None).prctl(26, 2, 0, 0, 0) == 0  # PR_SET_TSC, PR_TSC_SIGSEGV
x = 0
for i in range(10_000_000): x += i
os.write(1, b"done")
os._exit(0)
"""
WORKS = """
print("ready", flush=True)
while True: sum(range(1000))
"""
WAITS = """
import subprocess
from tachograph.recorder.collect.child_process import ChildProcess
print(ChildProcess(["sleep", "0.1"]).wait(timeout=30), end=" ")
lasting = ChildProcess(["sleep", "60"], stdout=subprocess.PIPE)
try: lasting.communicate(timeout=0.1)
except subprocess.TimeoutExpired: print("late")
lasting.kill()
lasting.wait()
"""


@pytest.fixture(scope="module")
def other_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parent / "native" / "other_clock.c"
    built = support.compile_library(source, tmp_path_factory.mktemp("clock"))
    if built is None:
        pytest.skip("no C compiler")
    return built


def lies_within(folder: Path, processes: int) -> None:
    """All times of the recording are of one clock, and there are samples."""
    report = support.analyze(folder / "run.tacho", cwd=folder)
    assert report["totals"]["wall_s"] < 60
    assert report["totals"]["samples"] > 10
    assert len(support.rows(folder / "run.tacho", "processes")) == processes
    for span in support.rows(folder / "run.tacho", "spans"):
        assert 0.2e9 < span["end_ns"] - span["start_ns"] < 30e9
    assert "children_unlisted_ms" not in support.losses(report)


def test_of_a_child(tmp_path: Path, other_clock: Path) -> None:
    outcome = support.record(["-c", CHILD, other_clock], tmp_path)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    lies_within(tmp_path, 2)


@pytest.mark.parametrize("sampler", ["native", "signal"])
def test_of_all(tmp_path: Path, other_clock: Path, sampler: str) -> None:
    env = support.environment(LD_PRELOAD=str(other_clock))
    outcome = support.record(["-c", SPAN], tmp_path, "--sampler", sampler, env=env)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    lies_within(tmp_path, 1)


def test_of_a_child_that_is_not_recorded(tmp_path: Path, other_clock: Path) -> None:
    (tmp_path / "excluded.py").touch()
    program = SPAN + CHILD.replace(f'"-c", {SPAN!r}', '"excluded.py"')
    outcome = support.record(["-c", program, other_clock], tmp_path, "--exclude", "*excluded.py")
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    assert len(support.rows(tmp_path / "run.tacho", "threads")) == 1
    lies_within(tmp_path, 2)


def test_without_time_stamps(tmp_path: Path) -> None:
    outcome = support.record(["-c", NO_TIME_STAMPS], tmp_path)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("done", "", 0)
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 10


@pytest.mark.recording
def test_of_the_command_that_asks_a_process(tmp_path: Path, other_clock: Path) -> None:
    env = support.environment(LD_PRELOAD=str(other_clock))
    with running([sys.executable, "-c", WORKS], tmp_path) as process:
        for line in (["dump"], ["attach", "--duration", "100ms", "--quiet", "-o", "run.tacho"]):
            done = support.run([*support.COMMAND, *line, str(process.pid)], tmp_path, env=env)
            assert (done.stderr, done.status) == ("", 0)
    assert is_complete(tmp_path / "run.tacho")


def test_of_a_command_that_waits_for_a_child(tmp_path: Path, other_clock: Path) -> None:
    done = support.run([sys.executable, "-c", WAITS], tmp_path, env=support.environment(LD_PRELOAD=str(other_clock)))
    assert (done.stdout, done.stderr, done.status) == ("0 late\n", "", 0)


@pytest.mark.recording
def test_what_is_done_beside_the_program(tmp_path: Path, other_clock: Path) -> None:
    """Windows are closed and records copied while it runs: all of it rests by the kernel's clock."""
    env = support.environment(LD_PRELOAD=str(other_clock))
    with support.start(["-c", WORKS], tmp_path, "--rotate", "1s", env=env) as command:
        support.wait_for((tmp_path / "run.0001.tacho" / "manifest.json").exists, "a window")
        support.wait_for(lambda: any((tmp_path / "run.tacho" / "spool").glob("*.ctl")), "a copy")
        support.kill_quietly(command.pid, group=True)
