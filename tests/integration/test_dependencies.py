"""Recording needs what the package depends on, and nothing that an extra brings."""

import json
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

OF_EXTRAS = ("numpy", "pandas", "matplotlib", "jinja2", "rich", "dask", "duckdb", "fsspec", "mcp")

WITHIN = """
import tachograph.recorder
with tachograph.recorder.record("run.tacho", memory=True):
    held = [bytes(5000) for _ in range(5000)]
"""


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, str]:
    """An environment in which what extras bring cannot be imported."""
    folder = tmp_path / "missing"
    folder.mkdir()
    for name in OF_EXTRAS:
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} is not installed here')\n", encoding="utf-8")
    return support.environment() | {"PYTHONPATH": str(folder)}


def check_complete(recording: Path) -> None:
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["state"], bool(manifest["tables"]["cpu"])) == ("complete", True)


def test_a_program(tmp_path: Path, plain: dict[str, str]) -> None:
    code = "import os; held = [bytes(5000) for _ in range(5000)]; os.fork() or os._exit(0); os.wait()"
    done = support.record(["-c", code], tmp_path, env=plain)
    assert done == support.Outcome(0, "", "")
    check_complete(tmp_path / "run.tacho")


def test_windows(tmp_path: Path, plain: dict[str, str]) -> None:
    # What writes the tables has a processor for itself.
    code = "import glob, time\nwhile len(glob.glob('run*.tacho')) < 3: time.sleep(0.002); sum(range(10_000))"
    done = support.record(["-c", code], tmp_path, "--rotate", "1s", env=plain)
    assert done == support.Outcome(0, "", "")
    windows = sorted(tmp_path.glob("run*.tacho"))
    assert len(windows) > 1
    for window in windows:
        check_complete(window)


def test_a_program_that_records_itself(tmp_path: Path, plain: dict[str, str]) -> None:
    assert support.run([sys.executable, "-c", WITHIN], tmp_path, env=plain) == support.Outcome(0, "", "")
    check_complete(tmp_path / "run.tacho")
