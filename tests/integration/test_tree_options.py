"""Which processes of a tree are recorded, and trees as people have them: pools, test runs, many short commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

BURN = """
import subprocess, sys, time
def {name}():
    end = time.process_time() + 0.15
    while time.process_time() < end:
        for _ in range(200_000): pass
{name}()
for program in sys.argv[1:]: subprocess.run([sys.executable, program], check=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``boss.py`` runs what it is told; ``worker.py`` runs ``helper.py``."""
    for name in ("boss", "worker", "helper"):
        (tmp_path / f"{name}.py").write_text(BURN.format(name=name), encoding="utf-8")
    with (tmp_path / "worker.py").open("a", encoding="utf-8") as file:
        file.write("subprocess.run([sys.executable, 'helper.py'], check=True)\n")
    return tmp_path


def processes(folder: Path) -> list[dict[str, Any]]:
    return support.rows(folder / "run.tacho", "processes")


def recorded(folder: Path) -> set[str]:
    """The functions that have samples."""
    report = support.analyze(folder / "run.tacho", cwd=folder)
    return {row["function"] for row in report["functions"]} & {"boss", "worker", "helper"}


@pytest.mark.parametrize(
    ("options", "functions"),
    [
        ([], {"boss", "worker", "helper"}),
        (["--exclude", "worker"], {"boss", "helper"}),
        (["--exclude", "worker.py", "--exclude", "boss*"], {"helper"}),
        (["--include", "work*"], {"worker"}),
        (["--include", "*er.py", "--exclude", "helper"], {"worker"}),
        (["--no-children"], {"boss"}),
    ],
)
def test_which_processes_are_recorded(folder: Path, options: list[str], functions: set[str]) -> None:
    """What is left out is listed all the same, but with --no-children, and its children are reached through it."""
    done = support.record(["boss.py", "worker.py"], folder, *options)
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    assert recorded(folder) == functions
    rows = processes(folder)
    assert len(rows) == (1 if "--no-children" in options else 3)
    assert sum(row["recorded"] == "python" for row in rows) == len(functions)
    assert [row["parent"] for row in rows] == [None, 0, 1][: len(rows)]
    manifest = json.loads((folder / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"]["children"] == ("--no-children" not in options)
    assert not [loss for loss in manifest["quality"] if loss["loss"] == "processes_unarmed"]


POOL = """
import concurrent.futures, multiprocessing, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(200_000): pass  # reading such a clock may cost the processor
    return 1
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        print(sum(pool.map(work, [0.1] * 6)))
"""


def test_a_pool_under_spawn(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL, encoding="utf-8")
    recorded = support.record(["pool.py"], tmp_path)
    assert (recorded.status, recorded.stdout, recorded.stderr) == (0, "6\n", "")
    workers = [row for row in processes(tmp_path) if "spawn_main" in (row["command"] or "")]
    assert 1 <= len(workers) <= 2
    assert {(row["recorded"], row["parent"]) for row in workers} == {("python", 0)}
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    (work,) = [row for row in report["functions"] if row["function"] == "work"]
    assert work["cpu_s"] == pytest.approx(0.6, rel=0.15)


TESTS = """
import time, pytest
def burn():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        for _ in range(200_000): pass
@pytest.mark.parametrize("number", range(4))
def test_it(number):
    burn()
    assert number != 2
"""


def test_pytest_with_workers(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    options = ["-q", "-p", "xdist.plugin", "-n", "2", "-p", "no:cacheprovider", "--no-header"]
    # All plugins that are installed take longer to load than the tests do.
    env = support.environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    recorded = support.record(["-m", "pytest", *options, "test_it.py"], tmp_path, env=env)
    assert recorded.status == 1
    assert "1 failed, 3 passed" in recorded.stdout
    assert recorded.stderr == ""
    rows = processes(tmp_path)
    assert [row["recorded"] for row in rows if row["parent"] == 0].count("python") == 2
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    (burn,) = [row for row in report["functions"] if row["function"] == "burn"]
    assert burn["cpu_s"] == pytest.approx(0.4, rel=0.2)


def test_many_short_commands(tmp_path: Path) -> None:
    """As in a build: all are listed with their ends, and nothing is left behind."""
    script = f"i=0; while [ $i -lt 150 ]; do /bin/true; i=$((i+1)); done; {sys.executable} -c pass; exit 9"
    done = support.record(["sh", "-c", script], tmp_path)
    assert (done.status, done.stdout, done.stderr) == (9, "", "")
    rows = processes(tmp_path)
    short = [row for row in rows if row["command"] == "/bin/true"]
    assert len(short) == 150
    assert all(row["parent"] == 0 and row["exit_status"] == 0 for row in short)
    assert all(row["start_ns"] <= row["end_ns"] and row["user_ns"] is not None for row in short)
    assert len(rows) == 152
    assert not (tmp_path / "run.tacho" / "spool").exists()
    assert {path.suffix for path in (tmp_path / "run.tacho").iterdir()} == {".json", ".parquet"}


def test_a_recording_within_a_recording(tmp_path: Path) -> None:
    """The inner program belongs to the inner one."""
    inner = [*support.COMMAND, "record", "-q", "-o", "inner.tacho", "-c", BURN.format(name="helper")]
    done = support.record(inner, tmp_path)
    assert (done.status, done.stderr) == (0, "")
    report = support.analyze(tmp_path / "inner.tacho", cwd=tmp_path)
    assert "helper" in {row["function"] for row in report["functions"]}
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert "helper" not in {row["function"] for row in report["functions"]}
