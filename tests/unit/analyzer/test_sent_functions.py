"""Functions that were sent by value name no file: they are those of the file that alone defines them."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from tachograph.analyzer import Profile
from unit.analyzer.recordings import Builder, table

SCRIPT = "/srv/app/jobs.py"
SOURCE = """\
import time

@time.cached
def spin(limit):
    while time.process_time() < limit:
        sum(range(500))
    return sorted([limit], key=lambda each: -each)

class Job:
    def run(self):
        def step():
            return spin(1)
        return step()
"""
NAMES = ("spin", 3, 5), ("Job.run", 10, 13), ("Job.run.<locals>.step", 11, 12)
KEY = ("spin.<locals>.<lambda>", 7, 7)

Code = tuple[str, int, int]
"""Qualified name, first line, and a line with a sample."""
Lines = Callable[[Sequence[Code], Mapping[str, str | None]], list[tuple[str, int]]]


@pytest.fixture
def lines(builder: Builder, profile: Callable[..., Profile]) -> Lines:
    """Files and lines with time, where such functions were sent, beside these texts."""

    def sampled(codes: Sequence[Code], texts: Mapping[str, str | None]) -> list[tuple[str, int]]:
        for path, text in texts.items():
            builder.file(path, text)
        file = builder.file("<dynamic-code>")
        for name, first, line in codes:
            builder.cpu(builder.stack((builder.code(file, name, first), line - first)))
        return sorted(table(profile(scope="all").lines, "file", "line"))

    return sampled


def test_they_are_the_files(lines: Lines) -> None:
    texts = {SCRIPT: SOURCE, "/srv/app/other.py": "\n\ndef spins(limit):\n    pass\n    spin\n"}
    assert lines([*NAMES, KEY], texts) == [(SCRIPT, line) for line in (5, 7, 12, 13)]


def test_they_are_the_functions_of_the_process_that_sent_them(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    for path in (SCRIPT, "<dynamic-code>"):
        file = builder.file(path, SOURCE if path == SCRIPT else None)
        builder.cpu(builder.stack((builder.code(file, "spin", 3), 2)))
    assert table(profile().functions, "function", "file") == [("spin", SCRIPT)]


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        (NAMES[0], {SCRIPT: None}),
        (NAMES[0], {SCRIPT: "\n" + SOURCE}),
        (NAMES[0], {SCRIPT: SOURCE, "/srv/copy/jobs.py": SOURCE}),
        (NAMES[0], {SCRIPT: f"text = '''{SOURCE}'''\n"}),
        (NAMES[0], {SCRIPT: SOURCE + "def ("}),
        (NAMES[0], {SCRIPT: "\n\ndef spin(limit): pass\n"}),
        (NAMES[0], {"<other>": SOURCE}),
        (NAMES[0], {"/venv/lib/python3.13/site-packages/jobs.py": SOURCE}),
        (("run", 10, 13), {SCRIPT: SOURCE}),
        (KEY, {SCRIPT: SOURCE}),
        (("<module>", 1, 1), {SCRIPT: SOURCE}),
    ],
    ids=[
        "unread",
        "moved",
        "two",
        "in a string",
        "no Python",
        "shorter",
        "no file",
        "installed",
        "name",
        "alone",
        "module",
    ],
)
def test_they_stay_where_none_or_several_files_may_be_theirs(
    lines: Lines, code: Code, texts: Mapping[str, str | None]
) -> None:
    assert lines([code], texts) == [("<dynamic-code>", code[2])]
