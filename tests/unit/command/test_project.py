"""A project's defaults, from the nearest pyproject.toml."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import tachograph
from support.warm_command import run_command
from tachograph import project
from tachograph.cli import main
from tachograph.recorder.problems import Refused

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs ``tachograph ARGS...`` in a folder below ``tmp_path``."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    paths = os.pathsep.join(filter(None, [str(Path(tachograph.__file__).parent.parent), os.environ.get("PYTHONPATH")]))

    def run_it(*args: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
        return run_command([*map(str, args)], folder, environment, 60)

    return run_it


def say(tmp_path: Path, table: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\n\n[tool.tachograph]\n{table}\n", encoding="utf-8")


def test_every_key_is_an_option_of_its_commands() -> None:
    for name, _, commands in project.KEYS.values():
        for command in commands:
            found = main.get_command(click.Context(main), command)
            assert found is not None
            assert name in {parameter.name for parameter in found.params}, (name, command)


def test_the_nearest_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    say(tmp_path, "top = 3")
    monkeypatch.chdir(inner)
    assert project.defaults(project.candidate()) == {"analyze": {"top": 3}, "diff": {"top": 3}}
    (inner / "pyproject.toml").write_text("[project]\nname = 'nothing of ours'\n", encoding="utf-8")
    assert project.candidate() is None
    (inner / "pyproject.toml").write_text("[tool.poetry.dependencies]\ntachograph = '*'\n", encoding="utf-8")
    assert project.defaults(project.candidate()) == {}


def test_no_file_no_folder_and_no_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    os.mkfifo(tmp_path / "pyproject.toml")
    assert project.candidate() is None  # and it does not wait for a writer
    folder.rmdir()
    assert project.candidate() is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("intervall = 5", "no key 'intervall'; there are: interval, "),
        ("interval = 'soon'", "interval must be a number, not 'soon'"),
        ("interval = true", "interval must be a number"),
        ("cpu-only = 1", "cpu-only must be true or false"),
        ("scope = 3", "scope must be a text"),
        ("fail-if = 'cpu>5%'", "fail-if must be a list of texts"),
        ("fail-if = [3]", "fail-if must be a list of texts"),
        ("top = ", "is not valid TOML"),
    ],
)
def test_bad_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, message: str) -> None:
    say(tmp_path, table)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match=message):
        project.defaults(project.candidate())


def test_no_table_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool]\ntachograph = 3\n", encoding="utf-8")
    with pytest.raises(Refused, match=r"tool\.tachograph is not a table"):
        project.defaults(project.candidate())


@pytest.mark.recording
def test_analyze_uses_them_and_the_command_line_wins(tmp_path: Path, run: Run) -> None:
    say(tmp_path, "scope = 'all'\ntop = 2\nsort = 'wait'\ninterval = 5")
    recording = VECTORS / "whole.tacho"
    found = json.loads(run("analyze", recording, "--json", "-").stdout)
    assert found["question"]["scope"] == "all"
    assert len(found["lines"]) == 2
    assert len(json.loads(run("analyze", recording, "--json", "-", "--top", "1").stdout)["lines"]) == 1


@pytest.mark.recording
@pytest.mark.parametrize(
    ("table", "command", "words"),
    [
        ("interval = 0", ["record", "-c", "pass"], ["0 ms is not between"]),
        ("sort = 'beauty'", ["analyze", "x"], ["--sort", "beauty"]),
        ("top = 0", ["analyze", "x"], ["--top"]),
        ("nonsense = 0", ["record", "-q", "-c", "pass"], ["nonsense"]),
    ],
)
def test_bad_values_get_one_line(tmp_path: Path, run: Run, table: str, command: list[str], words: list[str]) -> None:
    say(tmp_path, table)
    done = run(*command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    for word in [*words, str(tmp_path / "pyproject.toml"), "[tool.tachograph]"]:
        assert word in done.stderr


@pytest.mark.recording
def test_a_bad_table_does_not_stop_what_it_does_not_concern(tmp_path: Path, run: Run) -> None:
    say(tmp_path, "nonsense = 0")
    assert run("info", VECTORS / "whole.tacho").returncode == 0
    assert run("--help").returncode == 0


@pytest.mark.recording
def test_record_uses_them_and_the_command_line_wins(tmp_path: Path, run: Run) -> None:
    say(tmp_path, "interval = 2.5\nsampler = 'signal'\nsources = false\nmemory-threshold = '1M'\ncpu-only = true")
    for number, typed, expected in (
        (1, [], (2_500_000, False)),
        (2, ["--interval", "5", "--sources"], (5_000_000, True)),
    ):
        done = run("record", "-q", "-o", f"{number}.tacho", *typed, "-c", "pass")
        assert done.returncode == 0, done.stderr
        manifest = json.loads((tmp_path / "src" / "package" / f"{number}.tacho" / "manifest.json").read_text("utf-8"))
        parameters = manifest["parameters"]
        assert (parameters["interval_ns"], parameters["sources"]) == expected
        assert parameters["sampler"] == "signal"


@pytest.mark.recording
def test_no_toml_is_read_where_there_is_no_table(tmp_path: Path, run: Run) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    code = (
        "import sys\n"
        "from tachograph import project\n"
        "from tachograph.recorder.command import record\n"
        "record.run = lambda *_: (print('tomllib' in sys.modules, 'click' in sys.modules), sys.exit())\n"
        "sys.argv = ['tachograph', 'record', '-c', 'pass']\n"
        "from tachograph.start import run\n"
        "run()\n"
    )
    paths = os.pathsep.join(filter(None, [str(Path(tachograph.__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    for table, expected in (
        ("", "False False\n"),
        ("[tool.tachograph]\ntop = 3\n", "True False\n"),
        ("[tool.tachograph]\ninterval = 3\n", "True False\n"),
    ):
        (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\n{table}", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == expected
