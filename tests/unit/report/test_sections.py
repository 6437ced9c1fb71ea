"""The description of sections agrees with the profile's frames, and is all that a page says of them."""

from __future__ import annotations

import pytest

from tachograph.analyzer.render.html.page import asset
from tachograph.analyzer.report_data.line_selection import COLUMNS
from tachograph.analyzer.report_data.sections import SECTIONS, Section, exit_text, process_remarks

EACH = pytest.mark.parametrize("name", SECTIONS)


@EACH
def test_its_columns_are_those_of_the_frame(name: str) -> None:
    """But for the source of a line, which a renderer may look up."""
    assert {column.name for column in SECTIONS[name].columns} - {"source"} <= set(COLUMNS.get(name, ()))


@EACH
def test_a_page_finds_each_column_by_one_key(name: str) -> None:
    keys = [column.key or column.name for column in SECTIONS[name].columns]
    assert len(set(keys)) == len(keys)


@EACH
def test_heads_in_a_terminal_are_apart(name: str) -> None:
    assert all(len(column.head) < column.width for column in SECTIONS[name].in_terminal)


@EACH
def test_the_page_has_no_words_of_its_own_for_it(name: str) -> None:
    """The title of leaks is that of their table: their section on a page is of all memory."""
    script = asset("sections.js")
    section = SECTIONS[name]
    assert f"state.data.sections.{name}" in script.replace("\n", " ")
    words = [section.title, section.page_hint, *(column.hint for column in section.columns)]
    assert [word for word in words if word and f'"{word}"' in script] == []


def test_a_page_has_sentences() -> None:
    section = Section("Title", "of one; of another", nothing="none above what is usual")
    assert (section.page_hint, section.page_nothing) == ("Of one; of another.", "None above what is usual.")
    assert Section("Title", "of one", page="").page_hint == ""


def test_how_a_process_ended() -> None:
    assert [exit_text(status) for status in (None, 0, 3, -9, -64)] == ["?", "0", "3", "SIGKILL", "signal 64"]


def test_what_is_not_ordinary_about_a_process() -> None:
    assert process_remarks({"origin": "exec", "recorded": "python"}) == []
    assert process_remarks({"origin": "fork", "recorded": "listed"}) == ["fork", "not recorded"]
    assert process_remarks({"origin": None, "recorded": "native"}) == ["without Python stacks"]
