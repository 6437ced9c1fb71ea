"""`make test-arm`: which interpreter builds, which files run, what is kept of each, and what is said in the end."""

from pathlib import Path

import pytest
from arm import install, run_tests
from arm.run_tests import Outcome

REPORT = """<testsuites><testsuite>
<testcase classname="tests.native.test_a" name="test_b[plain]"/>
<testcase classname="tests.native.test_a" name="test_c"><failure message="no"/></testcase>
<testcase classname="tests.native.test_a" name="test_d"><skipped message="qemu: no such call"/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    found = Outcome("tests/native/test_a.py", "digest")
    run_tests.read_report(report, found)
    return found


def test_what_is_kept_of_a_file(outcome: Outcome) -> None:
    assert (outcome.passed, outcome.failed) == (1, ["test_a::test_c"])
    assert outcome.skipped == [("test_a::test_d", "qemu: no such call")]
    assert not outcome.settled


def test_the_summary_has_failures_reasons_and_what_was_not_begun(outcome: Outcome) -> None:
    lines = run_tests.summary([outcome], ["tests/native/test_z.py"]).splitlines()
    assert lines[0] == "failed: tests/native/test_a.py test_a::test_c"
    assert lines[1].split() == ["skipped:", "1", "qemu:", "no", "such", "call"]
    assert lines[2] == "not begun: tests/native/test_z.py"
    assert lines[3].startswith("1 passed, 1 failed, 1 skipped in 1 files")


def test_each_file_once_and_in_the_order_of_the_places() -> None:
    files = run_tests.test_files(["tests/unit/tools/test_install.py", "tests/unit/tools"])
    assert files[0] == "tests/unit/tools/test_install.py"
    assert len(files) == len(set(files)) > 3


def _program(at: Path, *lines: str) -> str:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    at.chmod(0o755)
    return str(at)


def test_an_interpreter_that_does_not_run_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pyenv's stand-ins do for a version that is not chosen."""
    _program(tmp_path / "bin/python3.13", "echo 'pyenv: python3.13: command not found' >&2", "exit 127")
    _program(tmp_path / ".pyenv/versions/3.13.0/bin/python3", "echo 3.12")
    runs = _program(tmp_path / ".pyenv/versions/3.13.0rc1/bin/python3", "echo 3.13")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert install.interpreter("3.13") == runs
    assert install.interpreter("3.12") is None
