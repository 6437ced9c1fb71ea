"""The sentence on what the line with most of the time spends it on, where no rule applies."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.report_data.hot_spot import hot_spot
from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, hot, library

SOURCE = "import re\n\n\ndef work(text):\n    return clean(text)\n"


def said(answer: Answer) -> str | None:
    spot = hot_spot(answer())
    return None if spot is None else spot.text


@pytest.mark.parametrize(
    ("path", "name", "where"),
    [
        (f"{SITE}/cleaning/text.py", "Cleaner.clean", "Cleaner.clean() of cleaning"),
        (f"{SITE}/cleaning.py", "clean", "clean() of cleaning"),
        ("/usr/lib/python3.13/re/__init__.py", "sub", "sub() of re"),
        ("/usr/lib/python3.13/textwrap.py", "fill", "fill() of textwrap"),
        ("<frozen importlib._bootstrap>", "_find_and_load", "imports"),
    ],
)
def test_the_function_that_has_the_time_is_named(
    builder: Builder, answer: Answer, path: str, name: str, where: str
) -> None:
    hot(builder, SOURCE, 5, library(builder, path, name))
    assert said(answer) == f"100 % of the CPU time (3.00 s) is in work() at line 5, all of that in {where}."


def test_a_part_of_the_line_and_its_caller(builder: Builder, answer: Answer) -> None:
    """Of 300 samples 200 are below the line, 180 of them in one function; itself is no caller."""
    file = builder.file("/srv/a.py", SOURCE)
    main, work = builder.code(file, "main", 20), builder.code(file, "work")
    clean, other = (library(builder, f"{SITE}/cleaning/text.py", each) for each in ("clean", "other"))
    for callee, line, samples in ((clean, 4, 180), (other, 4, 20), (other, 2, 100)):
        stack = builder.stack((main, 3), (work, 1), (work, line), (callee, 0))
        for _ in range(samples):
            builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    assert said(answer) == (
        "66.7 % of the CPU time (2.00 s) is in work() at line 5, 90.0 % of that in clean() of cleaning; work() is"
        " called from main() at line 23."
    )


def test_many_lines_with_little_are_none(builder: Builder, answer: Answer) -> None:
    for line in range(1, 41):
        hot(builder, SOURCE, line, samples=8)
    assert said(answer) is None


def test_the_report_shows_it_where_no_rule_applies(builder: Builder, answer: Answer) -> None:
    hot(builder, SOURCE, 5, library(builder, f"{SITE}/cleaning.py", "clean"))
    console = Console(width=100, file=StringIO())
    lines = [each.plain for each in report_lines(answer(), console)]
    title = next(n for n, each in enumerate(lines) if each.startswith(" Suggestions"))
    assert lines[title] == " Suggestions   no rule applies"
    assert lines[title + 1].strip().startswith("100 % of the CPU time (3.00 s) is in work() at line 5")


def test_rules_come_first(builder: Builder, answer: Answer) -> None:
    source = "import pandas as pd\ndef work(table):\n    for row in table.iterrows():\n        pass\n"
    hot(builder, source, 3, library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.iterrows"))
    lines = [each.plain for each in report_lines(answer(), Console(width=100, file=StringIO()))]
    assert not any("no rule applies" in each for each in lines)
    assert any("iterrows() makes a Series" in each for each in lines)


@pytest.mark.parametrize(("decorator", "named"), [("@njit", True), ("@plain", False)])
def test_what_numba_compiled_is_named_by_the_call(
    builder: Builder, answer: Answer, decorator: str, named: bool
) -> None:
    """Native stacks have no name for it; the line says which function of the file it is."""
    source = (
        f"from numba import njit\n\n{decorator}\ndef energy(x):\n    return x\n\ndef work(x):\n    return energy(x)\n"
    )
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 7))
    frame = builder.native_frame(builder.module("[anonymous]"), None)
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=frame, native_stack=path, native_path=1)
    text = said(answer)
    assert text is not None
    assert ("all of that in energy(), compiled by numba" in text) == named


def test_a_main_thread_that_waits_for_the_work_of_others_is_not_the_hot_spot(builder: Builder, answer: Answer) -> None:
    """As that of a server with a thread for each request, and that of a notebook's server."""
    hot(builder, SOURCE, 5, thread=builder.thread("worker"))
    code = builder.code(builder.file("/srv/server.py", "def serve():\n    accept()\n"), "serve")
    builder.wait(builder.stack((code, 1)), 0, 9_000, target=2, syscall=7)
    text = said(answer)
    assert text is not None
    assert text.startswith("100 % of the CPU time (3.00 s) is in work() at line 5")


def test_a_main_thread_that_waits_on_no_line_of_the_project(builder: Builder, answer: Answer) -> None:
    hot(builder, SOURCE, 5)
    builder.wait(builder.stack((library(builder, "/usr/lib/python3.13/selectors.py", "select"), 0)), 0, 9_000, target=2)
    text = said(answer)
    assert text is not None
    assert text.startswith("100 % of the CPU time (3.00 s) is in work() at line 5")
