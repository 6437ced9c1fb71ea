"""Packages built without the native parts: no compiler is needed, and they are quick to make."""

import sys
from pathlib import Path

import pytest

from installation.support import ROOT, WITHOUT_NATIVE, environment, pip, run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel without the native parts."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", *WITHOUT_NATIVE, "--wheel-dir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("tachograph-*.whl")
    return wheel


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment in which that wheel is installed."""
    folder = environment(tmp_path_factory.mktemp("installed") / "venv")
    pip(wheel, cwd=folder, python=folder / "python")
    return folder
