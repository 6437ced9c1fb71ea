"""Runs the tests of ``make test``: those that share the machine, two files at a time, then those that compare times.

A test of a recorded program races with all else that the machine does, and of thousands one may lose. So failed tests
of recorded programs, if they are few, run once more with the machine for themselves, as CPython's regrtest does with
``--rerun``. What passes then is named in the last lines: each is a defect to be found. A failed unit test is final.

The arguments are a command that runs beside the first tests, such as the check of types: its output comes when it is
done, and if it fails so does the run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

SHARED = ["-m", "not slow and not quiet", "-n", "2", "--dist", "loadfile"]
ALONE = ["-m", "not slow and quiet", "tests/oracle", "tests/integration"]
OF_PROGRAMS = ("tests/oracle/", "tests/integration/")
"""Where the tests of recorded programs are."""

MOST_AGAIN = 3
"""Failed tests that run once more. More than that is no accident."""

PASSED_ALONE = "failed beside other tests, and passed alone (a defect of the test, or of what it tests):"


class Failures:
    """A plugin of pytest that notes which tests failed."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test by its id, once."""
        if report.failed and report.nodeid not in self.tests:
            self.tests.append(report.nodeid)


def may_run_again(status: int, failed: Sequence[str]) -> bool:
    """Whether what failed in a run that ended with ``status`` may be settled by one more run of it."""
    few = 0 < len(failed) <= MOST_AGAIN
    return status == pytest.ExitCode.TESTS_FAILED and few and all(test.startswith(OF_PROGRAMS) for test in failed)


def main() -> int:
    """Run all; the exit status."""
    failures = Failures()
    with _beside(sys.argv[1:]) as beside:
        status = int(pytest.main(SHARED, plugins=[failures]))
    again: list[str] = []
    if may_run_again(status, failures.tests):
        again = failures.tests
        print("these failed beside other tests, and run once more, alone:", *again, sep="\n  ", flush=True)
        status = _pytest(again)
    alone = _pytest(ALONE)
    if again and not status:
        print(PASSED_ALONE, *again, sep="\n")
    return status or alone or beside.status


@dataclass
class _Ended:
    status: int = 0


@contextmanager
def _beside(command: Sequence[str]) -> Iterator[_Ended]:
    """Run a command while the block does, then show its output; what is given has its status at the end."""
    ended = _Ended()
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command or ["true"], stdout=output, stderr=subprocess.STDOUT) as process:
            yield ended
        ended.status = process.returncode
        output.seek(0)
        print(output.read().decode(errors="replace"), end="", flush=True)


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
