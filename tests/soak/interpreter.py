"""The interpreter's own test suite, bare and recorded: the same tests pass, fail and are skipped.

A test that differs is run again with its module alone, several times in both ways. What is left are those whose results
bare and recorded have nothing in common.
"""

import os
import resource
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration import support

ARMS = ("bare", "recorded")
ABSENT = "absent"
MODULE_S = 1200
"""After so long regrtest ends a test module itself."""

MOST_MEMORY = 8 << 30
"""Bytes of address space of a process: some of CPython's tests take all that there is, and others are killed for it."""

Results = Mapping[str, str]


@dataclass(frozen=True)
class Difference:
    """A test with the results that it had in each way."""

    test: str
    bare: frozenset[str]
    recorded: frozenset[str]

    def __str__(self) -> str:
        return f"{self.test}: {' or '.join(sorted(self.bare))} bare, {' or '.join(sorted(self.recorded))} recorded"


def compare(
    folder: Path, modules: Sequence[str], ignored: Sequence[str] = (), again: int = 3
) -> tuple[int, list[Difference]]:
    """How many tests there are in the modules (none named: in all), and those that differ.

    Those that match a pattern of ``ignored`` are not run.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # In the background of a shell it is ignored, and there some tests never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    first = {arm: outcomes(folder, arm, modules, ignored) for arm in ARMS}
    everything = first["bare"].keys() | first["recorded"].keys()
    suspects = sorted(test for test in everything if first["bare"].get(test) != first["recorded"].get(test))
    seen = {test: {arm: {first[arm].get(test, ABSENT)} for arm in ARMS} for test in suspects}
    for module in sorted({module_of(test) for test in suspects}):
        for _ in range(again):
            for arm in ARMS:
                found = outcomes(folder, arm, [module], ignored)
                for test in suspects:
                    if module_of(test) == module:
                        seen[test][arm].add(found.get(test, ABSENT))
    differences = (Difference(test, *(frozenset(seen[test][arm]) for arm in ARMS)) for test in suspects)
    return len(everything), [each for each in differences if not each.bare & each.recorded]


def outcomes(folder: Path, arm: str, modules: Sequence[str], ignored: Sequence[str]) -> Results:
    """Runs the modules; "passed", "skipped" or "failed" by test. A module that was ended has none."""
    report = folder / f"{arm}.xml"
    report.unlink(missing_ok=True)
    target = ["-m", "test", f"-j{os.cpu_count()}", f"--timeout={MODULE_S}", f"--junit-xml={report}"]
    target += [*(f"--ignore={pattern}" for pattern in ignored), *modules]
    command = [sys.executable, *target]
    if arm == "recorded":
        command = [*support.COMMAND, "record", "-q", "--force", "-o", str(folder / "run.tacho"), *target]
    with (folder / f"{arm}.txt").open("w", encoding="utf-8") as output:
        subprocess.run(command, cwd=folder, env=support.environment(), stdout=output, stderr=output, check=False)
    if not report.exists():
        raise SystemExit(f"the test suite did not run {arm}: {(folder / f'{arm}.txt').read_text('utf-8')[-2000:]}")
    tests = ET.parse(report).getroot().iter("testcase")
    return {test.attrib["name"]: result(test) for test in tests if "name" in test.attrib}


def result(test: ET.Element) -> str:
    """What became of a test."""
    kinds = {child.tag for child in test}
    if "skipped" in kinds:
        return "skipped"
    return "failed" if kinds & {"failure", "error"} else "passed"


def module_of(test: str) -> str:
    """``test_os`` of ``test.test_os.FileTests.test_access``; modules in packages run with their package."""
    return test.removeprefix("test.").partition(".")[0]
