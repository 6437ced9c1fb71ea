"""Advice is given where a rule is sure, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tachograph.analyzer.pictures.picture import Picture
from tachograph.analyzer.render.html.advice import advise
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


def kinds(picture: Picture) -> list[tuple[str, int | None]]:
    return [(each["kind"], each["line"]) for each in advise(picture.profile)]


def test_a_loop_over_an_array(builder: Builder, picture: Callable[..., Picture]) -> None:
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
    builder: Builder, picture: Callable[..., Picture], source: str, line: int, native: bool
) -> None:
    hot(builder, source, line, **({"native_frame": NATIVE_FRAME} if native else {}))
    assert kinds(picture()) == []


@pytest.mark.parametrize(("text", "advised"), [("y = x.astype(float)", True), ("y = work(x)", False)])
def test_a_conversion_that_copies(builder: Builder, picture: Callable[..., Picture], text: str, advised: bool) -> None:
    f = builder.code(builder.file("/srv/a.py", f"{text}\n" * 3), "convert")
    for number in range(50):
        builder.copy(builder.stack((f, 0)), 100_000_000, 100 + number * 100)
    assert kinds(picture()) == ([("copies", 1)] if advised else [])
