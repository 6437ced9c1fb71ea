"""The check of the walls between the rooms of the Python code finds what it is there to find."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="it is one of the tools of [dev]")

ROOT = Path(__file__).resolve().parents[3]
ROOMS = {
    "command": (),
    "format-spec": (),
    "recorder": ("inprocess", "collect", "command", "fd_broker", "gpu", "labels", "problems", "rotation"),
    "analyzer": (
        "recording",
        "samples",
        "conclusions",
        "profile",
        "report_data",
        "render",
        "exports",
        "exports/scrub",
        "exports/extract",
        "exports/frames",
        "exports/rows",
        "diff",
        "api",
        "fleet",
        "commands",
    ),
}


def check(*arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "lint_walls.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """All rooms, empty, with this repository's contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package, rooms in ROOMS.items():
        for folder in (package, *(f"{package}/{room}" for room in rooms)):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "__init__.py").touch()
    return tmp_path


def test_this_repository() -> None:
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_empty_rooms(house: Path) -> None:
    done = check(house)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("analyzer/api/x.py", "import tachograph.recorder", "tachograph.analyzer is not allowed to import"),
        ("recorder/gpu/x.py", "import tachograph.analyzer", "tachograph.recorder is not allowed to import"),
        ("format-spec/x.py", "def f():\n    import tachograph.recorder", "tachograph.format is not allowed to import"),
        ("analyzer/samples/x.py", "from ..profile import x", "tachograph.analyzer.samples is not allowed to import"),
        ("analyzer/diff/x.py", "from ..render import x", "tachograph.analyzer.diff is not allowed to import"),
        ("analyzer/render/x.py", "from .. import diff", "tachograph.analyzer.render is not allowed to import"),
        ("analyzer/exports/scrub/x.py", "from ..frames import x", "exports.scrub is not allowed to import"),
        ("analyzer/render/x.py", "from ..conclusions import x", "tachograph.analyzer.render is not allowed to import"),
        ("analyzer/attic/__init__.py", "", "tachograph.analyzer.attic"),
        ("recorder/collect/x.py", "import pandas", "tachograph.recorder is not allowed to import pandas"),
        ("recorder/inprocess/x.py", "def f():\n    import click", "inprocess.x:2: imports click, but runs inside"),
        ("recorder/inprocess/x.py", "from .. import collect", "imports tachograph.recorder.collect, but runs inside"),
        ("recorder/__init__.py", "from numpy import array", "recorder:1: imports numpy.array, but runs inside"),
    ],
)
def test_what_is_wrong(house: Path, path: str, text: str, said: str) -> None:
    (house / path).parent.mkdir(exist_ok=True)
    (house / path).write_text(text + "\n", encoding="utf-8")
    done = check(house)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_what_the_profiled_program_may_import(house: Path) -> None:
    text = "import os\nfrom _json import encode_basestring_ascii\nfrom tachograph.recorder._native import arm\n"
    text += "from . import y\nfrom tachograph.recorder.inprocess import y\n"
    (house / "recorder/inprocess/x.py").write_text(text, "utf-8")
    (house / "recorder/inprocess/y.py").touch()
    done = check(house)
    assert done.returncode == 0, done.stdout + done.stderr
