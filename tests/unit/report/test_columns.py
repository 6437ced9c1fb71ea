"""The table of measures agrees with the profile, with ``--sort``, and with the width that its heads need."""

from __future__ import annotations

import pytest

from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.terminal.line_columns import BESIDE, BESIDE_ORDER, BY_SIZE, CURVE
from tachograph.analyzer.report_data.columns import BY_NAME, LINE_MEASURES, Column
from tachograph.analyzer.report_data.line_selection import COLUMNS

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
