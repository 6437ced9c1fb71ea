"""``make test``: what fails once beside other tests may pass alone, and is named; what fails for good fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import run_tests

FAILS_ONCE = """
from pathlib import Path

def test_{name}():
    seen = Path("{name}-ran")
    ran = seen.exists()
    seen.touch()
    assert ran

def test_passes():
    pass
"""
PASSES = "import pytest\n\n@pytest.mark.quiet\ndef test_passes():\n    pass\n"
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin"}
"""To load all that are installed takes these runs as long as all else."""
INI = "[pytest]\nmarkers =\n    slow: x\n    quiet: x\n"


pytestmark = pytest.mark.recording


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("tests/oracle", "tests/integration", "tests/unit"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "tests" / "oracle" / "test_alone.py").write_text(PASSES)
    return tmp_path


def make_test(suite: Path, *beside: str) -> tuple[int, str]:
    command = [sys.executable, run_tests.__file__, *beside]
    env = {**os.environ, **PLUGINS}
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("quiet", ["", "import pytest\npytestmark = pytest.mark.quiet\n"])
def test_what_passes_at_last_is_named(suite: Path, quiet: str) -> None:
    (suite / "tests" / "unit" / "test_good.py").write_text("def test_good():\n    pass\n")
    (suite / "tests" / "integration" / "test_late.py").write_text(quiet + FAILS_ONCE.format(name="late"))
    status, said = make_test(suite)
    assert status == 0, said
    assert said.endswith(f"{run_tests.PASSED_AGAIN}\ntests/integration/test_late.py::test_late\n")
    if not quiet:
        assert run_tests.PASSED_AGAIN not in make_test(suite)[1]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tests/unit/test_late.py", FAILS_ONCE.format(name="late")),
        ("tests/oracle/test_alone.py", PASSES.replace("pass", "assert False")),
    ],
)
def test_what_fails_fails_the_run(suite: Path, file: str, text: str) -> None:
    (suite / "tests" / "unit" / "test_good.py").write_text("def test_good():\n    pass\n")
    (suite / file).write_text(text)
    status, said = make_test(suite)
    assert status == 1, said
    assert run_tests.PASSED_AGAIN not in said


def test_what_runs_beside_fails_the_run_as_well(suite: Path) -> None:
    (suite / "tests" / "unit" / "test_good.py").write_text("def test_good():\n    pass\n")
    status, said = make_test(suite, "sh", "-c", "echo types are wrong; exit 3")
    assert status == 3
    assert "types are wrong\n" in said
    assert "1 passed" in said


def test_many_failures_are_no_accident() -> None:
    failed = [f"tests/integration/test_x.py::test_{number}" for number in range(run_tests.MOST_AGAIN + 1)]
    assert run_tests.may_run_again((1, 0), failed[1:])
    assert run_tests.may_run_again((1, 0), ["tests/browser/test_x.py::test_y"])
    assert not run_tests.may_run_again((1, 0), [*failed[2:], "tests/unit/test_x.py::test_y"])
    assert not run_tests.may_run_again((1, 0), failed)
    assert not run_tests.may_run_again((2, 0), failed[1:])
    assert not run_tests.may_run_again((1, 0), [])
