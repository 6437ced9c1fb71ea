"""Adds what tests cost, and which are over their limits, to the JUnit file that pytest has written.

The plugin gives each test a property with its id (``ID_PROPERTY``), by which it is found here.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from tachograph.testing.plugin import ID_PROPERTY


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
