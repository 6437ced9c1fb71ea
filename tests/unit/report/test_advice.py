"""Advice is given where a rule is sure, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tachograph.analyzer.report_data.advice.rules import advise
from tachograph.analyzer.report_data.report_data import ReportData
from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder

LOOP = """import numpy as np

def smooth(a, b):
    for i in range(1, a.shape[0]):
        b[i] = a[i] + b[i - 1]
    return np.sum(b)
"""


def hot(builder: Builder, source: str, line: int, **values: Any) -> None:
    f = builder.code(builder.file("/srv/a.py", source), "smooth")
    for number in range(300):
        builder.cpu(builder.stack((f, line - 1)), time_ns=START + (number + 1) * 10 * MS, **values)


def kinds(picture: ReportData) -> list[tuple[str, int | None]]:
    return [(each["kind"], each["line"]) for each in advise(picture.profile)]


def test_a_loop_over_an_array(builder: Builder, picture: Callable[..., ReportData]) -> None:
    hot(builder, LOOP, 5)
    assert kinds(picture()) == [("loop", 5)]


@pytest.mark.parametrize(
    ("source", "line", "native"),
    [
        (LOOP, 5, True),  # the time is not Python's
        (LOOP, 6, False),  # not in the loop
        (LOOP.replace("import numpy as np", ""), 5, False),  # no arrays in sight
        (LOOP.replace("a.shape[0]", "len(a)"), 5, False),  # may be a list
        (LOOP.replace("def", "de f"), 5, False),  # cannot be parsed
        ("import numpy\n" + "(" * 5_000 + "\n" * 5, 5, False),
    ],
)
def test_no_advice_where_it_is_not_sure(
    builder: Builder, picture: Callable[..., ReportData], source: str, line: int, native: bool
) -> None:
    hot(builder, source, line, **({"native_frame": NATIVE_FRAME} if native else {}))
    assert kinds(picture()) == []


NESTED = """import numpy as np

def smooth(image, out):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = np.hypot(image[y, x], 1)
"""


@pytest.mark.parametrize(("source", "found"), [(NESTED, [("loop", 6)]), (NESTED.replace("y, x]", "y, :]"), [])])
def test_single_elements_are_slow_in_native_code_too(
    builder: Builder, picture: Callable[..., ReportData], source: str, found: list[Any]
) -> None:
    hot(builder, source, 6, native_frame=NATIVE_FRAME)
    assert kinds(picture()) == found


@pytest.mark.parametrize(("source", "said"), [(LOOP, "Numba"), (LOOP.replace("b[i - 1]", "a[i - 1]"), "An expression")])
def test_what_needs_the_element_before_cannot_be_an_expression(
    builder: Builder, picture: Callable[..., ReportData], source: str, said: str
) -> None:
    hot(builder, source, 5)
    (advice,) = advise(picture().profile)
    assert said in advice["text"]


def test_the_time_of_a_loop_is_that_of_all_its_lines(builder: Builder, picture: Callable[..., ReportData]) -> None:
    body = "".join(f"            out[y, x] += image[y, x] * {number}\n" for number in range(15))
    f = builder.code(builder.file("/srv/a.py", NESTED + body), "smooth")
    for number in range(300):
        builder.cpu(builder.stack((f, 6 + number % 15)), time_ns=START + (number + 1) * 10 * MS)
    (advice,) = advise(picture().profile)
    assert "lines 4 to 21" in advice["text"]
    assert advice["text"].startswith("100 % of the CPU time")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("lines = lines + piece + end", "“lines” is copied whole each time something is added"),
        ("self.log = self.log[4:]", "The rest of “self.log” is copied each time a piece is cut off"),
        ("a = np.concatenate([a, b])", "“a” is copied whole each time something is joined to it"),
        ("a = np.append(a, b)", "“a” is copied whole each time something is joined to it"),
        ("lines = piece.encode() + lines", "encode copies 1 GB every second"),
        ("lines = other[4:]", None),
        ("head = log[:4]", None),
    ],
)
def test_what_is_copied_whole_again_and_again(
    builder: Builder, picture: Callable[..., ReportData], statement: str, said: str | None
) -> None:
    f = builder.code(builder.file("/srv/a.py", f"for piece in pieces:\n    {statement}\n"), "collect")
    for number in range(100):
        builder.copy(builder.stack((f, 1)), 100_000_000, 100 + number * 50)
    assert [each["title"] for each in advise(picture().profile)] == ([said] if said else [])


@pytest.mark.parametrize(("text", "advised"), [("y = x.astype(float)", True), ("y = work(x)", False)])
def test_a_conversion_that_copies(
    builder: Builder, picture: Callable[..., ReportData], text: str, advised: bool
) -> None:
    f = builder.code(builder.file("/srv/a.py", f"{text}\n" * 3), "convert")
    for number in range(50):
        builder.copy(builder.stack((f, 0)), 100_000_000, 100 + number * 100)
    assert kinds(picture()) == ([("copies", 1)] if advised else [])
