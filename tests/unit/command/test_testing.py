"""Marks and options of ``pytest --tachograph``, and the costs and failures that it adds to the JUnit file."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tachograph.recorder.problems import Refused
from tachograph.testing.__main__ import options_of
from tachograph.testing.costs_report import amend
from tachograph.testing.marks import MARKS, read_mark, read_size, read_time
from tachograph.testing.rerun import Command, arguments_and_path, started_as


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(2, 2.0), (0.5, 0.5), ("500 ms", 0.5), ("1.5s", 1.5), (" 2 min ", 120.0), ("3", 3.0), ("2h", 7200.0)],
)
def test_times(value: object, seconds: float) -> None:
    assert read_time(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("value", "size"), [(10, 10), ("24 MB", 24e6), ("24MiB", 24 << 20), ("1.5 KB", 1500), ("0", 0), ("2 TiB", 2 << 40)]
)
def test_sizes(value: object, size: float) -> None:
    assert read_size(value) == size


@pytest.mark.parametrize(
    "value",
    [-1, float("nan"), float("inf"), True, None, "", "MB", "1 mb", "1e9", "1" * 400, "١ MB", "1 MB 2", b"1", []],
)
def test_what_is_no_size_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a number of bytes") as caught:
        read_size(value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("limit_cpu", (2,), {}, 2.0),
        ("limit_memory", (), {"size": "1 KB"}, 1000.0),
        ("no_leaks", (), {}, MARKS["no_leaks"].default),
        ("no_leaks", (), {"above": 5}, 5.0),
    ],
)
def test_marks(name: str, args: tuple[object, ...], kwargs: dict[str, object], value: float) -> None:
    assert read_mark(name, args, kwargs) == value


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("limit_cpu", (), {}),
        ("limit_cpu", (1, 2), {}),
        ("limit_cpu", (), {"size": 1}),
        ("no_leaks", (1,), {"above": 1}),
    ],
)
def test_marks_that_are_written_wrongly(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="it takes one argument"):
        read_mark(name, args, kwargs)


@pytest.mark.parametrize(
    ("arguments", "value", "found"),
    [
        (["--tachograph"], "", (("--tachograph",), "")),
        (["--tachograph", "a.tacho", "tests"], "a.tacho", (("--tachograph", "a.tacho", "tests"), "a.tacho")),
        (["--tachograph=out/a"], "out/a", (("--tachograph=out/a",), "out/a")),
        # The parser takes the folder of the tests for the path.
        (["--tachograph", "tests", "-v"], "tests", (("--tachograph=", "--tachograph=", "tests", "-v"), "")),
        # The option is in a file of settings, and took the first argument.
        (["tests"], "tests", (("--tachograph=", "tests"), "")),
    ],
)
def test_an_argument_that_is_no_path_is_pytests_own(
    arguments: list[str], value: str, found: tuple[tuple[str, ...], str]
) -> None:
    assert arguments_and_path(arguments, value) == found


@pytest.mark.parametrize(
    ("head", "command"),
    [
        (["/venv/bin/pytest"], Command((), ("--", "/venv/bin/pytest", "-x"))),
        (["-m", "pytest"], Command((), ("-m", "pytest", "-x"))),
        (["-Xdev", "-W", "error", "-m", "pytest"], Command(("-Xdev", "-W", "error"), ("-m", "pytest", "-x"))),
        (["-Im", "pytest"], Command(("-I",), ("-m", "pytest", "-x"))),
        (["-mpytest"], Command((), ("-m", "pytest", "-x"))),
        (["-X", "dev", "run", "-m", "pytest"], Command(("-X", "dev"), ("--", "run", "-m", "pytest", "-x"))),
        (["-c", "import pytest; pytest.main()"], None),
        (["-"], None),
        ([], None),
    ],
)  # fmt: skip
def test_pytest_is_started_as_it_was(head: list[str], command: Command | None) -> None:
    assert started_as(["python", *head, "-q"], ["-q"], ["-x"]) == command


def test_a_pytest_that_was_given_other_arguments_was_started_by_a_program() -> None:
    assert started_as(["python", "program.py", "-v"], ["-q"], ["-x"]) is None
    assert started_as(["python", "program.py"], [], []) == Command((), ("--", "program.py"))


def test_options_of_record_are_given_in_one_text() -> None:
    typed = "--force --label 'what=a test'"
    assert options_of({"options": typed, "path": ""}) == ["--force", "--label", "what=a test"]
    assert options_of({"options": "", "path": "a.tacho"}) == ["--output", "a.tacho"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("other.py", "takes options of 'tachograph record', and nothing else"),
        ("-m other", "takes options of 'tachograph record', and nothing else"),
        ("--force --", "takes options of 'tachograph record', and nothing else"),
        ("--help", "takes options of 'tachograph record', and nothing else"),
        ("--label '", "No closing quotation"),
        ("--nonsense", "no such option: --nonsense"),
    ],
)
def test_other_options_are_refused(options: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        options_of({"options": options, "path": ""})


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
