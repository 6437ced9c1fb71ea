"""Reports the costs of the tests in a recording: tables in the terminal, Markdown, and properties in the JUnit file.

The plugin gives each test in the JUnit file a property with its id (``ID_PROPERTY``), by which it is found here.
"""

from __future__ import annotations

import math
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph.analyzer.api import open as open_recording
from tachograph.analyzer.profile.tests import CALL, PHASES, Tests, read_tests
from tachograph.analyzer.render.markdown.diff_summary import summary_of_tests as summary
from tachograph.analyzer.render.markdown.document import write
from tachograph.analyzer.render.terminal.lines_of_tests import test_lines
from tachograph.analyzer.report_data.limit_verdicts import excess, judge, place_text
from tachograph.format import FormatError
from tachograph.recorder.problems import one_line
from tachograph.testing.plugin import ID_PROPERTY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.analyzer.diff.changed_tests import Change, Comparison
    from tachograph.analyzer.report_data.limit_verdicts import Verdict


COSTS = ("duration_s", "cpu_s", "wait_s", "peak_bytes", "copied_bytes")
"""Of the call, as properties in a JUnit file."""


def report(settings: dict[str, Any], path: Path, status: int) -> int:
    """Show what the tests of a recording cost, and write the files that were asked for; the exit status."""
    folder = str(Path.cwd())
    try:
        with open_recording(path) as recording:
            tests = read_tests(recording)
            verdicts = list(judge(tests))
            for line in test_lines(tests, verdicts, settings["top"], folder):
                print(line)
            compared = compare(settings, path)
            changes = [] if compared is None else list(compared.lines())
            for line in changes:
                print(line)
            if settings["markdown"]:
                write(summary(tests, verdicts, settings["top"], folder, changes), settings["markdown"])
        worse = [] if compared is None else [each for each in compared.changes if each.worse]
        if settings["junit"]:
            amend(Path(settings["junit"]), costs_of(tests), failures_of(verdicts, worse, folder))
    except (FormatError, OSError, ET.ParseError) as error:
        print(f"tachograph: the tests cannot be shown: {one_line(str(error))}", file=sys.stderr)
        return status or 1
    return 1 if status == 0 and (worse or any(verdict.over for verdict in verdicts)) else status


def compare(settings: dict[str, Any], path: Path) -> Comparison | None:
    """The comparison of the tests with the base; None if there is no base."""
    if not settings["compare"]:
        return None
    from tachograph.analyzer.diff.changed_tests import compare_tests

    return compare_tests([Path(each) for each in settings["compare"]], path, anyway=settings["anyway"])


def costs_of(tests: Tests) -> dict[str, dict[str, float]]:
    """The costs of the call of each test."""
    rows = (row for row in tests.frame.rows() if row["phase"] == PHASES[CALL])
    return {row["test"]: {name: row[name] for name in COSTS} for row in rows}


def failures_of(verdicts: Sequence[Verdict], worse: Sequence[Change], folder: str) -> dict[str, list[str]]:
    """The messages of each test that is over a limit, or needs more than before."""
    failures: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.over:
            place = "" if verdict.place is None else f"\n  {place_text(verdict.place, folder)}"
            failures.setdefault(verdict.test, []).append(f"{excess(verdict)}{place}")
    for each in worse:
        from tachograph.analyzer.diff.changed_tests import about

        failures.setdefault(each.test, []).append(f"{each.verdict}: {about(each)}")
    return failures


def amend(path: Path, costs: Mapping[str, Mapping[str, float]], failures: Mapping[str, Sequence[str]]) -> None:
    """Writes ``costs`` (numbers by test and name) as properties, and ``failures`` (messages by test) as failures.

    Errors:
        OSError: the file cannot be read or written.
        ET.ParseError: it is no XML.
    """
    tree = ET.parse(path)
    for suite in tree.iter("testsuite"):
        failed = 0
        for case in suite.iter("testcase"):
            properties = case.find("properties")
            test = None if properties is None else _id(properties)
            if properties is None or test is None:
                continue
            for name, value in costs.get(test, {}).items():
                if not math.isnan(value):
                    ET.SubElement(properties, "property", name=f"tachograph.{name}", value=f"{value:.6g}")
            if test in failures and case.find("failure") is None and case.find("error") is None:
                failed += 1
                text = "\n".join(failures[test])
                ET.SubElement(case, "failure", message=failures[test][0]).text = text
        if failed:
            suite.set("failures", str(int(suite.get("failures", "0")) + failed))
    made = path.with_name(f".{path.name}.tmp")
    tree.write(made, encoding="utf-8", xml_declaration=True)
    made.replace(path)


def _id(properties: ET.Element) -> str | None:
    for each in properties.iter("property"):
        if each.get("name") == ID_PROPERTY:
            return each.get("value")
    return None
