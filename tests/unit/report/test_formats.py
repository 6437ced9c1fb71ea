"""The formats of Python have the texts of the table; ``tests/browser/test_report.py`` holds a page's to the same."""

from __future__ import annotations

import pytest

from support.formats import FORMATS, Format
from tachograph.analyzer.report_data import numbers

CASES = [(each, arguments) for each in FORMATS for arguments in each.cases]


@pytest.mark.parametrize(("tried", "arguments"), CASES, ids=lambda each: getattr(each, "name", str(each)))
def test_a_value_reads_as_the_table_has_it(tried: Format, arguments: tuple[float, ...]) -> None:
    assert getattr(numbers, tried.name)(*arguments) == tried.cases[arguments]
