"""Commands of the tests that a server forks for are as if they had been started alone."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.warm_command import WarmCommand, run_alone
from unit.analyzer.recordings import Builder

pytestmark = pytest.mark.recording


@pytest.fixture(scope="module")
def warm() -> WarmCommand:
    """One server for all that read."""
    return WarmCommand("read")


@pytest.fixture(scope="module")
def recorder() -> WarmCommand:
    """One server for all that record."""
    return WarmCommand("record")


def outcome(done: "subprocess.CompletedProcess[str]") -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["analyze", "run.tacho"], ["info", "run.tacho", "--json", "-"], ["analyze", "no.tacho"], ["analyze", "--json"]],
    ids=" ".join,
)
def test_output_and_status_are_those_of_a_command_of_its_own(
    warm: WarmCommand, tmp_path: Path, arguments: list[str]
) -> None:
    Builder(tmp_path / "run.tacho").write()
    env = {**os.environ, "COLUMNS": "70"}
    assert outcome(warm.run(arguments, tmp_path, env, 60)) == outcome(run_alone(arguments, tmp_path, env, 60))


def test_folder_and_environment_are_the_command_s_alone(warm: WarmCommand, tmp_path: Path) -> None:
    Builder(tmp_path / "run.tacho").write()
    env = {**os.environ, "COLUMNS": "60"}
    done = warm.run(["analyze"], tmp_path, env, 60)
    assert outcome(done)[:2] == outcome(run_alone(["analyze"], tmp_path, env, 60))[:2]
    assert outcome(warm.run(["analyze"], tmp_path, {**env, "COLUMNS": "100"}, 60))[:2] != outcome(done)[:2]
    assert warm.run(["analyze"], tmp_path.parent, dict(os.environ), 60).returncode == 2


def test_one_that_takes_too_long_is_ended(warm: WarmCommand, tmp_path: Path) -> None:
    Builder(tmp_path / "run.tacho").write()
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["analyze", "run.tacho"], tmp_path, dict(os.environ), 0.001)
    assert warm.run(["info", "run.tacho"], tmp_path, dict(os.environ), 60).returncode == 0


SEEN = """
import json, os, signal, stat, sys
modes = [stat.S_IFMT(os.fstat(number).st_mode) for number in range(3)]
signals = [(number, signal.getsignal(number)) for number in sorted(signal.valid_signals())]
signals = [(number, getattr(what, "__qualname__", repr(what))) for number, what in signals]
print(json.dumps([sys.argv, sys.path, sys.flags, modes, sorted(os.listdir("/proc/self/fd")), sys.stdin.read()]))
print(json.dumps([dict(os.environ), signals, os.getcwd(), sys.orig_argv, os.getsid(0), os.getpgid(0)]))
print("told", file=sys.stderr)
sys.exit(7)
"""


def test_a_recorded_program_sees_what_it_would_see(recorder: WarmCommand, tmp_path: Path) -> None:
    (tmp_path / "seen.py").write_text(SEEN, encoding="utf-8")
    line = ["record", "--sampler", "signal", "-q", "-f", "-o", "run.tacho", "seen.py", "x"]
    env = {**os.environ, "SOME": "thing"}
    done = recorder.run(line, tmp_path, env, 60, "typed")
    assert outcome(done) == outcome(run_alone(line, tmp_path, env, 60, "typed"))
    assert (done.returncode, done.stderr) == (7, "told\n")


def test_what_a_command_left_running_still_writes_is_read(recorder: WarmCommand, tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sh', '-c', 'sleep 0.5; echo late'])"
    done = recorder.run(["record", "--sampler", "signal", "-q", "-c", code], tmp_path, dict(os.environ), 60)
    assert (done.returncode, done.stdout) == (0, "late\n")


def test_two_at_once_do_not_wait_for_each_other(recorder: WarmCommand, tmp_path: Path) -> None:
    """The first ends when the second has made a file."""
    waits = "import os, time\nwhile not os.path.exists('made'): time.sleep(0.01)"
    line = ["record", "--sampler", "signal", "-q", "-o"]
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(recorder.run, [*line, "a.tacho", "-c", waits], tmp_path, dict(os.environ), 60)
        second = recorder.run([*line, "b.tacho", "-c", "open('made', 'w')"], tmp_path, dict(os.environ), 60)
        assert (first.result().returncode, second.returncode) == (0, 0)
