"""Costs and failures in the JUnit file that pytest has written."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tachograph.testing.junit import amend

FILE = """<?xml version="1.0"?><testsuites><testsuite tests="3" failures="1">
<testcase name="one"><properties><property name="tachograph.test" value="t.py::one"/></properties></testcase>
<testcase name="two"><properties><property name="tachograph.test" value="t.py::two"/></properties>
<failure message="own"/></testcase>
<testcase name="three"/></testsuite></testsuites>"""


def test_costs_and_failures_are_added(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(FILE)
    costs = {"t.py::one": {"cpu_s": 0.25, "peak_bytes": math.nan}, "t.py::other": {"cpu_s": 1.0}}
    amend(path, costs, {"t.py::one": ["first <&>", "second"], "t.py::two": ["not counted twice"]})
    suite = ET.parse(path).getroot()[0]
    assert suite.get("failures") == "2"
    one, two, three = suite.findall("testcase")
    properties = [(each.get("name"), each.get("value")) for each in one.iter("property")]
    assert properties == [("tachograph.test", "t.py::one"), ("tachograph.cpu_s", "0.25")]
    (failure,) = one.findall("failure")
    assert failure.get("message") == "first <&>"
    assert failure.text == "first <&>\nsecond"
    assert [each.get("message") for each in two.findall("failure")] == ["own"]
    assert not list(three)
    assert [each.name for each in tmp_path.iterdir()] == ["junit.xml"]


def test_what_is_no_xml_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text("<testsuites")
    with pytest.raises(ET.ParseError):
        amend(path, {}, {})
    assert path.read_text() == "<testsuites"
