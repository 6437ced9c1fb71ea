"""Outcomes of test suites, bare and recorded: the same tests pass, fail and are skipped.

Where one differs, its suite is run again, several times in both ways. What is left are tests whose results bare and
recorded have nothing in common.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ARMS = ("bare", "recorded")
ABSENT = "absent"

Results = Mapping[str, str]
RunSuites = Callable[[str, Sequence[str]], Results]
"""Runs suites "bare" or "recorded"; "passed", "skipped" or "failed" by test."""


@dataclass(frozen=True)
class Difference:
    """A test with the results that it had in each way."""

    test: str
    bare: frozenset[str]
    recorded: frozenset[str]

    def __str__(self) -> str:
        return f"{self.test}: {' or '.join(sorted(self.bare))} bare, {' or '.join(sorted(self.recorded))} recorded"


def compare(
    run: RunSuites, suites: Sequence[str], suite_of: Callable[[str], str], again: int = 3
) -> tuple[int, list[Difference]]:
    """How many tests there are in the suites (none named: in all), and those that differ."""
    first = {arm: run(arm, suites) for arm in ARMS}
    everything = first["bare"].keys() | first["recorded"].keys()
    suspects = sorted(test for test in everything if first["bare"].get(test) != first["recorded"].get(test))
    seen = {test: {arm: {first[arm].get(test, ABSENT)} for arm in ARMS} for test in suspects}
    for suite in sorted({suite_of(test) for test in suspects}):
        for _ in range(again):
            for arm in ARMS:
                found = run(arm, [suite])
                for test in suspects:
                    if suite_of(test) == suite:
                        seen[test][arm].add(found.get(test, ABSENT))
    differences = (Difference(test, *(frozenset(seen[test][arm]) for arm in ARMS)) for test in suspects)
    return len(everything), [each for each in differences if not each.bare & each.recorded]


def read_junit(report: Path, prefix: str = "") -> dict[str, str]:
    """Results by test of a report in JUnit's XML; a test is named by its class and its own name."""
    found = {}
    for test in ET.parse(report).getroot().iter("testcase"):
        if "name" in test.attrib:
            name = ".".join(filter(None, (prefix, test.attrib.get("classname"), test.attrib["name"])))
            found[name] = _result(test)
    return found


def _result(test: ET.Element) -> str:
    """What became of a test."""
    kinds = {child.tag for child in test}
    if "skipped" in kinds:
        return "skipped"
    return "failed" if kinds & {"failure", "error"} else "passed"
