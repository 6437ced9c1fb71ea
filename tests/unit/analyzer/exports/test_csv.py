"""The table of lines, read by pandas."""

from __future__ import annotations

import io

import pandas as pd

from tachograph.analyzer.exports.text_tables import safe
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export


def test_pandas_reads_what_was_recorded(export: Export) -> None:
    table = pd.read_csv(io.BytesIO(export("csv")), dtype={"line": "Int64"})
    assert table.groupby("function")["self"].sum().loc[lambda sums: sums > 0].to_dict() == program.CPU.own
    rows = table.set_index(["function", "line"])
    assert rows.loc[("work", 11), ["self", "total", "samples"]].tolist() == [25 * program.MS, 25 * program.MS, 2]
    assert rows.loc[("work", 12), "self"] == 10 * program.MS
    # Once for the stack in which the line is twice.
    assert rows.loc[("fib", 31), ["self", "total"]].tolist() == [0, 40 * program.MS]
    assert rows.loc[("<module>", 4), "total"] == 60 * program.MS
    assert abs(table["self_share"].sum() - 1) < 1e-5


def test_a_spreadsheet_takes_nothing_for_a_formula() -> None:
    assert [safe(text) for text in ("=1+1", "@f", "-x", "work", "")] == ["'=1+1", "'@f", "'-x", "work", ""]
