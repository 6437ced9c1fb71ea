"""Recording needs what the package depends on, and nothing that an extra brings."""

import json
import sys
import sysconfig
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

OF_EXTRAS = ("numpy", "pandas", "matplotlib", "jinja2", "rich", "dask", "duckdb", "fsspec", "mcp", "pygls")

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
    code = "import glob, time\nwhile len(glob.glob('run*.tacho')) < 2: time.sleep(0.002); sum(range(10_000))"
    done = support.record(["-c", code], tmp_path, "--rotate", "1s", env=plain)
    assert done == support.Outcome(0, "", "")
    windows = sorted(tmp_path.glob("run*.tacho"))
    assert len(windows) > 1
    for window in windows:
        check_complete(window)


def test_a_program_that_records_itself(tmp_path: Path, plain: dict[str, str]) -> None:
    assert support.run([sys.executable, "-c", WITHIN], tmp_path, env=plain) == support.Outcome(0, "", "")
    check_complete(tmp_path / "run.tacho")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        pytest.param(name, command, marks=[pytest.mark.slow] if number % 2 == (command == "script") else [])
        for number, name in enumerate(("json", "queue", "struct", "socket", "typing"))
        for command in ("script", "module")
    ],
)
def test_modules_of_the_program_may_have_names_of_the_standard_library(tmp_path: Path, name: str, command: str) -> None:
    """The command imports its own. The program's are those that it has without being recorded."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / f"{name}.py").write_text("WHO = 'mine'\n", encoding="utf-8")
    program = f"import {name}, sys; print({name}.WHO, sum(range(400_000)), sys.path[1])"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    env = support.environment() | {"PYTHONPATH": str(tmp_path / "modules")}
    bare = support.run([sys.executable, "program.py"], tmp_path, env=env)
    script = Path(sysconfig.get_path("scripts")) / "tachograph"
    line = [str(script)] if command == "script" else [sys.executable, "-m", "tachograph"]
    recorded = support.run([*line, "record", "-q", "-o", "run.tacho", "program.py"], tmp_path, env=env)
    assert recorded == bare
    assert len(support.rows(tmp_path / "run.tacho", "processes")) == 1


@pytest.mark.parametrize("command", ["script", "module"])
def test_no_command_imports_a_module_from_the_path_of_the_program(tmp_path: Path, command: str) -> None:
    """All names of the standard library that ``python -m`` does not need itself."""
    needed = support.run([sys.executable, "-c", "import runpy, sys; print(*sys.modules)"], tmp_path).stdout.split()
    (tmp_path / "modules").mkdir()
    for path in Path(json.__file__).parents[1].glob("[a-z]*"):
        if path.stem not in needed and path.stem.isidentifier() and path.stem not in ("importlib", "ntpath"):
            text = f"import os\nos.write(2, b'{path.stem} ')\n"
            (tmp_path / "modules" / f"{path.stem}.py").write_text(text, encoding="utf-8")
    script = Path(sysconfig.get_path("scripts")) / "tachograph"
    line = [str(script)] if command == "script" else [sys.executable, "-m", "tachograph"]
    env = support.environment() | {"PYTHONPATH": str(tmp_path / "modules")}
    (tmp_path / "program.py").write_text("print(sum(range(400_000)))\n", encoding="utf-8")
    for arguments in (
        ["record", "-q", "-o", "run.tacho", "program.py"],
        ["standby", "program.py"],
        ["analyze", "run.tacho"],
        ["ps"],
    ):
        done = support.run([*line, *arguments], tmp_path, env=env)
        assert (done.status, done.stderr) == (0, ""), arguments
