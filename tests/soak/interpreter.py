"""The interpreter's own test suite, bare and recorded."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from integration import support
from soak import outcomes

MODULE_S = 1200
"""After so long regrtest ends a test module itself."""

ENDLESS = ("*VSOCK*",)
"""Tests that are not run: in a virtual machine whose host connects to nothing they wait for ever, bare as well."""

ASK_FOR_ALLOCATORS = frozenset(
    {
        "test.test_cmd_line.CmdLineTest.test_pythonmalloc",
        "test.test_cmd_line.CmdLineTest.test_xdev",
        "test.test_sys.SysModuleTest.test_debugmallocstats",
    }
)
"""Tests that fail where Python's allocators are wrapped: docs/explanation/what-recording-changes.md says so."""

MOST_MEMORY = 8 << 30
"""Bytes of address space of a process: some of CPython's tests take all that there is, and others are killed for it."""


def compare(folder: Path, modules: Sequence[str], ignored: Sequence[str] = ()) -> tuple[int, list[outcomes.Difference]]:
    """How many tests there are in the modules (none named: in all), and those that differ.

    Those that match a pattern of ``ignored`` are not run.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # In the background of a shell it is ignored, and there some tests never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return outcomes.compare(lambda arm, some: _run(folder, arm, some, ignored), modules, module_of)


def _run(folder: Path, arm: str, modules: Sequence[str], ignored: Sequence[str]) -> outcomes.Results:
    """Runs the modules. One that was ended has no results."""
    report = folder / f"{arm}.xml"
    report.unlink(missing_ok=True)
    target = ["-m", "test", f"-j{os.cpu_count()}", f"--timeout={MODULE_S}", f"--junit-xml={report}"]
    target += [*(f"--ignore={pattern}" for pattern in (*ENDLESS, *ignored)), *modules]
    command = [sys.executable, *target]
    if arm == "recorded":
        command = [*support.COMMAND, "record", "-q", "--force", "-o", str(folder / "run.tacho"), *target]
    with (folder / f"{arm}.txt").open("w", encoding="utf-8") as output:
        subprocess.run(command, cwd=folder, env=support.environment(), stdout=output, stderr=output, check=False)
    if not report.exists():
        raise SystemExit(f"the test suite did not run {arm}: {(folder / f'{arm}.txt').read_text('utf-8')[-2000:]}")
    return outcomes.read_junit(report)


def module_of(test: str) -> str:
    """``test_os`` of ``test.test_os.FileTests.test_access``; modules in packages run with their package."""
    return test.removeprefix("test.").partition(".")[0]
