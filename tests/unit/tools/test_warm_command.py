"""Commands of the tests that read recordings are as if they had been started alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.warm_command import WarmCommand
from unit.analyzer.recordings import Builder

pytestmark = pytest.mark.recording


@pytest.fixture(scope="module")
def warm() -> WarmCommand:
    """One server for all."""
    return WarmCommand()


def alone(arguments: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "tachograph", *arguments]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
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
    done = warm.run(arguments, tmp_path, env, 60)
    assert (done.returncode, done.stdout, done.stderr) == alone(arguments, tmp_path, env)


def test_folder_and_environment_are_the_command_s_alone(warm: WarmCommand, tmp_path: Path) -> None:
    Builder(tmp_path / "run.tacho").write()
    for columns in ("60", "100"):
        env = {**os.environ, "COLUMNS": columns}
        done = warm.run(["analyze"], tmp_path, env, 60)
        assert (done.returncode, done.stdout) == alone(["analyze"], tmp_path, env)[:2]
    assert warm.run(["analyze"], tmp_path.parent, dict(os.environ), 60).returncode == 2


def test_one_that_takes_too_long_is_ended(warm: WarmCommand, tmp_path: Path) -> None:
    Builder(tmp_path / "run.tacho").write()
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["analyze", "run.tacho"], tmp_path, dict(os.environ), 0.001)
    assert warm.run(["info", "run.tacho"], tmp_path, dict(os.environ), 60).returncode == 0
