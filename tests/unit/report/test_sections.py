"""The description of sections agrees with the profile's frames, and is all that a page says of them."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from math import nan
from typing import cast

import pytest
from rich.console import Console

from tachograph.analyzer.recording.frame import Row
from tachograph.analyzer.render.html.payload import table_row
from tachograph.analyzer.render.html.report_page import asset, report
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.report_data.columns import Column
from tachograph.analyzer.report_data.line_selection import COLUMNS
from tachograph.analyzer.report_data.report_data import ReportData
from tachograph.analyzer.report_data.section_rows import exit_text, process_remarks
from tachograph.analyzer.report_data.sections import SECTIONS, Section
from unit.analyzer.recordings import Builder
from unit.report.block import read_block

EACH = pytest.mark.parametrize("name", SECTIONS)


FRAMES = {"native_functions": "functions", "calls": "functions"}
"""Sections that are made of another one's frame."""
MADE = {"source", "by", "call_times", "allocated_bytes", "freed_bytes"}
"""Columns that are looked up for a section, or are the report's alone."""


@EACH
def test_its_columns_are_those_of_the_frame(name: str) -> None:
    assert {column.name for column in SECTIONS[name].columns} - MADE <= set(COLUMNS.get(FRAMES.get(name, name), ()))


@EACH
def test_an_interval_has_its_ends_in_the_frame(name: str) -> None:
    ends = {f"{column.name}_{end}" for column in SECTIONS[name].columns if column.interval for end in ("low", "high")}
    assert ends <= set(COLUMNS.get(FRAMES.get(name, name), ()))


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


def test_a_section_with_rows_needs_no_more_than_its_entry(
    builder: Builder, picture: Callable[..., ReportData], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the terminal, in Markdown and in the data of a page, which draws what it has no function for."""
    rows: list[Row] = [
        {"held_s": 1.25, "bytes": 48_250, "times": 3, "lock": "queue"},
        {"held_s": nan, "bytes": 0, "times": None, "lock": None},
    ]
    columns = (
        Column("held_s", "s", "held", head="held", main=True),
        Column("bytes", "bytes", "size", head="size", width=9),
        Column("times", "count", "times", head="times"),
        Column("lock", "text", "lock"),
    )
    section = Section("Locks", "that were held", columns=columns, rows=lambda _: rows)
    monkeypatch.setitem(cast("dict[str, Section]", SECTIONS), "locks", section)
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py", "work()\n"), "f"), 0)), 100)
    data = picture()

    lines = [line.plain for line in report_lines(data.profile, Console(width=80, file=StringIO()))]
    at = lines.index(" Locks   that were held")
    assert lines[at + 1 : at + 4] == [
        "    held     size   times  lock",
        "   1.25s    48.2K       3  queue",
        "       ?                ?",
    ]
    text = summary(data.profile, 5_000)
    assert "## Locks\n\nThat were held.\n" in text
    assert "held 1.25 s, size 48.2 KB, times 3 | queue" in text
    assert "held unknown, size 0 B, times unknown" in text

    document, _ = read_block(report(data))
    assert document["tables"]["locks"][0] == {"lock": "queue", "held_s": 1.25, "bytes": 48_250, "times": 3}
    assert document["sections"]["locks"]["hint"] == "That were held."


def test_a_table_of_a_page_has_its_columns_by_their_short_names() -> None:
    keys = {"cpu": "cpu_s", "owner": "process"}
    row = {"cpu_s": 1.5, "process": 7, "owner": "worker"}
    assert table_row(row, keys) == {"cpu_s": 1.5, "cpu": 1.5, "process": 7, "owner": "worker"}
