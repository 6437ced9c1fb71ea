"""The recording command as a subprocess, whether tachograph is installed here or only lies on the path."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tachograph
import tachograph.recorder
from support.warm_command import run_command

PTH = Path(tachograph.recorder.__file__).parent / "tachograph.pth"
ARMED = "import sys; sys.exit('tachograph.recorder.inprocess.arm' not in sys.modules)"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which ``python -m tachograph`` works and Python processes arm themselves."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TACHOGRAPH_", "COV_"))}
    trial = {**plain, "TACHOGRAPH_SPOOL": str(tmp_path_factory.mktemp("none") / "missing")}
    folder = tmp_path_factory.mktemp("elsewhere")
    installed = subprocess.run([sys.executable, "-c", ARMED], env=trial, cwd=folder, check=False, capture_output=True)
    if installed.returncode == 0:
        return plain
    site = tmp_path_factory.mktemp("site")
    (site / "tachograph.pth").write_text(PTH.read_text(), encoding="utf-8")
    (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n", encoding="utf-8")
    paths = [str(site), str(Path(tachograph.__file__).parent.parent), plain.get("PYTHONPATH", "")]
    return {**plain, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture
def tachograph_command() -> list[str]:
    """The command."""
    return [sys.executable, "-m", "tachograph"]


@pytest.fixture
def run(environment: dict[str, str], tachograph_command: list[str], tmp_path: Path) -> Run:
    """Runs ``tachograph ARGS...`` in ``tmp_path``."""

    def run_it(*args: str | Path, timeout: float = 60, **options: object) -> subprocess.CompletedProcess[str]:
        if not options:
            return run_command([*map(str, args)], tmp_path, environment, timeout)
        command = [*tachograph_command, *map(str, args)]
        settings = {"env": environment, "cwd": tmp_path, "text": True, "capture_output": True, **options}
        return subprocess.run(command, timeout=timeout, check=False, **settings)  # type: ignore[call-overload,no-any-return]

    return run_it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests here that start the recording command, each of which takes seconds."""
    for item in items:
        if {"environment", "tachograph_command"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.recording)
