"""Suggestions are made where a rule is certain, and nowhere else: on recordings whose every number is known."""

from __future__ import annotations

import ast
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tachograph.analyzer.render.terminal.section_lines import suggestion_lines
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.advice import program
from tachograph.analyzer.report_data.advice.program import PAGE, Suggestion
from tachograph.analyzer.report_data.advice.table import RULES, Advice, suggestions
from tachograph.analyzer.source_code.source import Module, parse
from unit.analyzer.recordings import MS, NATIVE_FRAME, PYTHON_FRAME, START, Builder
from unit.report.suggested import APPLY, SITE, Answer, found, hot, library, likely, rules


def test_the_same_whatever_the_scope(builder: Builder, answer: Answer) -> None:
    hot(builder, APPLY, 3, library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply_standard"))
    assert found(answer) == found(answer, scope="all") != []


def test_a_text_is_parsed_once_for_all_answers_and_an_answer_looked_at_once(
    builder: Builder, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def noted(text: str) -> Module | None:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(program, "parse", noted)
    hot(builder, APPLY, 3, library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply_standard"))
    advice, one, other = Advice(), answer(), answer(scope="all")
    assert advice.about(one) is advice.about(one)
    assert advice.about(other) == advice.about(one) == suggestions(one)
    assert parsed == [APPLY] * 2  # for Advice, and for the call on its own


def test_what_most_of_the_time_is_about_comes_first(builder: Builder, answer: Answer) -> None:
    source = APPLY + "def rows(table):\n    for i, row in table.iterrows():\n        print(row)\n"
    hot(builder, source, 5, library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.iterrows"), samples=200)
    hot(builder, source, 3, library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply"), samples=100)
    assert rules(answer) == [("iterrows", 5), ("apply-rows", 3)]


def test_less_than_a_twentieth_is_not_worth_an_edit(builder: Builder, answer: Answer) -> None:
    hot(builder, APPLY + "x = 1\n", 4, samples=285)
    hot(builder, APPLY + "x = 1\n", 3, library(builder, f"{SITE}/pandas/core/apply.py", "apply"), samples=15)
    assert rules(answer) == []


def test_a_source_that_is_not_in_the_recording_is_silence(builder: Builder, answer: Answer) -> None:
    apply = library(builder, f"{SITE}/pandas/core/apply.py", "apply")
    f = builder.code(builder.file("/srv/b.py"), "work")
    for number in range(300):
        builder.cpu(builder.stack((f, 2), (apply, 0)), time_ns=START + number * MS)
    assert rules(answer) == []


INNOCENT = Path(__file__).resolve().parents[2] / "integration" / "programs" / "suggestions" / "innocent.py"
INNOCENTS = [each for each in ast.parse(INNOCENT.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef)]


@pytest.mark.broad
@pytest.mark.parametrize("function", INNOCENTS[1:], ids=lambda function: function.name)
def test_the_source_of_innocent_programs_alone_makes_no_rule_speak(
    builder: Builder, answer: Answer, function: ast.FunctionDef
) -> None:
    """Where every line of them is busy, in Python and in native code; tests/integration records them, too."""
    code = builder.code(builder.file("/srv/a.py", INNOCENT.read_text(encoding="utf-8")), function.name, function.lineno)
    for line in range(function.lineno, (function.end_lineno or 0) + 1):
        at = builder.stack((code, line - function.lineno))
        for number in range(20):
            frame = NATIVE_FRAME if number % 2 else PYTHON_FRAME
            builder.cpu(at, time_ns=START + len(builder.rows["cpu"]) * MS, native_frame=frame)
    assert rules(answer) == []
    assert likely(answer) == []


def test_the_terminal_shows_five_and_says_that_there_are_more() -> None:
    """Each with its place, its figure, what to write instead and the link; text is text, never markup."""
    console = Console(width=100, file=StringIO())
    made = [
        Suggestion(
            "iterrows", f"/srv/{n}.py", n, "[bold]f", "20 % of it", f"[red]text {n}.", "write", f"{PAGE}#iterrows"
        )
        for n in range(1, 8)
    ]
    lines = [line.plain for line in suggestion_lines(made, Style.of(console), 100)]
    assert lines[0] == " Suggestions   by rule; “perhaps” where only the kind of work is known"
    assert [line for line in lines if "→" in line or "->" in line] == [lines[n] for n in (1, 3, 5, 7, 9)]
    assert "/srv/1.py:1  20 % of it" in lines[1]
    assert lines[2].strip() == "[red]text 1. Instead: write. iterrows: tachograph help suggestions"
    assert lines[11:] == ["   and 2 more (--json has them all)", ""]
    assert list(suggestion_lines([], Style.of(console), 100)) == []


def test_every_rule_has_its_heading_and_its_reasons() -> None:
    """The page shows each of them, under its id."""
    page = Path(__file__).resolve().parents[3] / PAGE
    headings = re.findall(r"^#+ ([a-z-]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(rule.id for rule in RULES)
    assert all(rule.needs and rule.threshold for rule in RULES)
