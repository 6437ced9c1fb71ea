"""Runs the tests of ``make test``: those that share the machine, two files at a time, then those that compare times.

A test of a recorded program, or of a page in a browser, races with all else that the machine does, and of thousands one
may lose. So those that failed, if they are few, run once more when all others are over, as CPython's regrtest does with
``--rerun``. What passes then is named in the last lines: each is a defect to be found. A failed unit test is final.

The arguments are a command that runs beside the first tests, such as the check of types: its output comes when it is
done, and if it fails so does the run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SLOWEST = ["--durations", "60", "--durations-min", "3"]
"""What takes long is printed, so that it is known when the whole has become too long."""

# Not three: on two processors that took as long (18:42 and 18:04), and more tests lost their race. It was tried thrice.
SHARED = ["-m", "not slow and not quiet", "-n", "2", "--dist", "loadfile", *SLOWEST]
ALONE = ["-m", "not slow and quiet", *SLOWEST]
WITH_QUIET_TESTS = ("tests/oracle", "tests/integration")
RACING = ("tests/oracle/", "tests/integration/", "tests/browser/", "tests/docs/")
"""Where the tests of other processes are: recorded programs, the browser, and the examples of the docs."""

MOST_AGAIN = 6
"""Failed tests that run once more, of some 1,500 that race. More than that is no accident."""

PASSED_AGAIN = "failed at first, and passed when run again (a defect of the test, or of what it tests):"


class Failures:
    """A plugin of pytest that notes which tests failed."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test by its id, once."""
        if report.failed and report.nodeid not in self.tests:
            self.tests.append(report.nodeid)


def may_run_again(statuses: Collection[int], failed: Sequence[str]) -> bool:
    """Whether what failed in runs that ended with ``statuses`` may be settled by one more run of it."""
    ended = all(status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) for status in statuses)
    return ended and 0 < len(failed) <= MOST_AGAIN and all(test.startswith(RACING) for test in failed)


def files_with_quiet_tests() -> list[str]:
    """Files of `WITH_QUIET_TESTS` that name the mark: the others need not be read for the second time."""
    files = [path for folder in WITH_QUIET_TESTS for path in sorted(Path(folder).glob("**/test_*.py"))]
    return [str(path) for path in files if "mark.quiet" in path.read_text(encoding="utf-8")]


def main() -> int:
    """Run all; the exit status."""
    failures = Failures()
    with _beside(sys.argv[1:]) as beside:
        shared = int(pytest.main(SHARED, plugins=[failures]))
    alone = int(pytest.main([*ALONE, *files_with_quiet_tests()], plugins=[failures]))
    status = shared or alone
    if may_run_again((shared, alone), failures.tests):
        print("these failed, and run once more, alone:", *failures.tests, sep="\n  ", flush=True)
        status = subprocess.run([sys.executable, "-m", "pytest", *failures.tests], check=False).returncode
        if status == 0:
            print(PASSED_AGAIN, *failures.tests, sep="\n")
    return status or beside.status


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


if __name__ == "__main__":
    sys.exit(main())
