"""The table of measures agrees with the profile, with ``--sort``, and with the width that its heads need."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.terminal import line_columns
from tachograph.analyzer.render.terminal.line_columns import BESIDE, BESIDE_ORDER, BY_SIZE, CURVE
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.columns import BY_NAME, LINE_MEASURES, Column
from tachograph.analyzer.report_data.line_selection import COLUMNS
from tachograph.analyzer.report_data.report_data import ReportData
from unit.analyzer.recordings import Builder

EACH = pytest.mark.parametrize("measure", LINE_MEASURES, ids=lambda measure: measure.name)


@EACH
def test_a_measure_is_a_column_of_lines_functions_and_files(measure: Column) -> None:
    for frame in ("lines", "functions", "files"):
        assert measure.name in COLUMNS[frame]


@EACH
def test_a_measure_in_a_sentence_has_an_interval(measure: Column) -> None:
    if measure.brief:
        assert {f"{measure.name}_low", f"{measure.name}_high"} <= set(COLUMNS["lines"])


@EACH
def test_a_key_is_the_name_of_the_order_by_the_same_measure(measure: Column) -> None:
    if measure.key in set(Sort) - {Sort.GPU}:  # lines are sorted by a GPU's seconds, and show its share
        assert Sort(measure.key).column == measure.name


@EACH
def test_a_head_has_a_space_before_it(measure: Column) -> None:
    assert len(measure.head) < measure.width or not measure.head


def test_a_measure_has_one_entry() -> None:
    assert len(BY_NAME) == len(LINE_MEASURES)


def test_the_terminal_chooses_among_them() -> None:
    assert {*BY_SIZE, *BESIDE} - {CURVE} <= set(BY_NAME)
    assert sorted(BESIDE) == sorted(BESIDE_ORDER)


def test_a_terminal_writes_a_column_by_its_unit(
    builder: Builder, picture: Callable[..., ReportData], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measure that is no amount of bytes needs no code of its own there."""
    made = {name: Column(name, unit, head="new", width=7) for name, unit in (("cpu_share", "share"), ("cpu_s", "s"))}
    monkeypatch.setattr(line_columns, "BY_NAME", {**BY_NAME, **made})
    monkeypatch.setattr(line_columns, "BY_SIZE", tuple(made))
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py", "work()\n"), "f"), 0)), 100)
    profile = picture().profile
    columns = line_columns.Columns(profile, Style(colour=False, unicode=True), 120, Sort.LIVE)
    row = next(profile.frames.lines.rows())
    assert columns.cells(row, dim=False).plain[-14:] == "    100  100ms"
