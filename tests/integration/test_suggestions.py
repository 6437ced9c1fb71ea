"""Suggestions about real programs: each rule finds its pattern on the line that has it, and finds nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from integration import support
from oracle.support import marked

pytestmark = pytest.mark.native

FOUND = support.PROGRAMS / "suggestions" / "found.py"

MORE = (
    ("apply_elements", "object_column"),
    ("list_front", "iso_date", "log_not_shown", "other_date"),
    ("blocked_loop",),
    ("pickled",),
)
"""The same, of rules that unit tests show as well."""

GROUPS = (
    ("apply_rows", "iterrows", "chained_indexing", "frame_grown"),
    ("array_grown", "mixed_precision", "converted"),
    ("element_by_element", "text_grown", "cut_from_front"),
    ("bytes_grown", "in_list"),
    ("pattern_in_loop", "pattern_compiled_again", "bytes_of_slice"),
    ("collector",),
    ("python_threads",),
    ("held_lock",),
    *[pytest.param(functions, marks=pytest.mark.slow) for functions in MORE],
)
"""Functions of the program that run in one process: so few that each has enough of its time, imports included.

And enough of its copies: where other programs use the memory, one copies a fraction of what it copies alone.
"""

RULES = {
    "apply_rows": "apply-rows",
    "iterrows": "iterrows",
    "chained_indexing": "chained-indexing",
    "frame_grown": "array-grown-in-loop",
    "element_by_element": "element-by-element",
    "array_grown": "array-grown-in-loop",
    "mixed_precision": "mixed-precision",
    "converted": "converted-in-loop",
    "text_grown": "text-grown-in-loop",
    "bytes_grown": "text-grown-in-loop",
    "in_list": "in-list",
    "cut_from_front": "cut-from-front",
    "pattern_in_loop": "pattern-in-loop",
    "pattern_compiled_again": "pattern-compiled-again",
    "bytes_of_slice": "bytes-of-slice",
    "collector": "garbage-collector",
    "python_threads": "python-threads",
    "held_lock": "held-lock",
    "apply_elements": "apply-elements",
    "object_column": "object-column",
    "list_front": "list-front",
    "iso_date": "iso-date",
    "other_date": "slower-form",
    "log_not_shown": "log-not-shown",
    "blocked_loop": "blocked-loop",
    "pickled": "pickled",
}
WHOLE_PROGRAM = ("collector", "pickled")
"""Functions whose suggestion is about no line."""


NEED_NAMES = ("in_list", "list_front")
"""Told by names of functions that only the interpreter itself uses: one whose names were stripped does not tell it."""


@pytest.mark.parametrize("functions", GROUPS, ids=lambda functions: str(functions[0]))
def test_each_rule_finds_its_pattern_and_nothing_else(tmp_path: Path, functions: tuple[str, ...]) -> None:
    pytest.importorskip("pandas")
    run = support.record([FOUND, *functions], tmp_path, "--interval", "2")
    assert run.status == 0, run.stderr
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    told = [name for name in functions if support.interpreter_has_names() or name not in NEED_NAMES]
    expected = {(RULES[name], None if name in WHOLE_PROGRAM else marked(FOUND, name).pop()) for name in told}
    # Threads of OpenBLAS that another program keeps from their processor spin for long: that is true of the run alone.
    found = {(each["rule"], each["line"]) for each in report["suggestions"] if each["rule"] != "spinning-threads"}
    assert found == expected


INNOCENT = support.PROGRAMS / "suggestions" / "innocent.py"
INNOCENTS = re.findall(r"^def (\w+)\(\) -> None:$", INNOCENT.read_text(encoding="utf-8"), re.MULTILINE)


def test_there_are_thirty_of_them() -> None:
    assert len(INNOCENTS) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", INNOCENTS)
def test_what_is_right_as_it_is_is_left_in_peace(tmp_path: Path, name: str) -> None:
    """All of them take longer than 30 seconds; tests/unit/report asks the rules about their source alone."""
    pytest.importorskip("pandas")
    run = support.record([INNOCENT, name], tmp_path, "--interval", "2")
    assert run.status == 0, run.stderr
    found = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["suggestions"]
    assert [(each["rule"], each["function"], each["line"]) for each in found] == []
