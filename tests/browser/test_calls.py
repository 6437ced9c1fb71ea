"""Calls of functions in the table of functions, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import write_page
from unit.analyzer.recordings import MS, START, Builder
from unit.analyzer.test_calls import drawn, period, times


def build(path: Path) -> Path:
    """`slow` was called eight times and once for 3 s; `leaf` an estimated 1.2 million times, and was never sampled."""
    builder = Builder(path)
    file = builder.file("/srv/app.py", "def slow():\n    pass\n\ndef leaf():\n    pass\n\ndef other():\n    pass\n")
    slow, leaf = (builder.stack((builder.code(file, name, line), None)) for name, line in (("slow", 1), ("leaf", 4)))
    running = builder.stack((builder.code(file, "other", 7), 1))
    for number in range(100):
        builder.cpu(running, time_ns=START + (number + 1) * 90 * MS)
    row = period(builder, slow, 10, 10, calls=8, ended=8, total_ns=3_070 * MS, longest_ns=3_000 * MS)
    times(builder, row, {24: 7, 32: 1})
    seen = {"calls": 12_000, "ended": 12_000, "total_ns": 3_720_000, "longest_ns": 41_000, "watched_ns": 100 * MS}
    row = period(builder, leaf, 10, 10, **seen, **drawn([(118 + number % 5, 0.001) for number in range(100)]))
    times(builder, row, {8: 2_000, 9: 9_990, 16: 10})
    return builder.write()


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calls")
    return write_page(build(folder / "calls.tacho"), folder / "calls.html")


def test_calls_are_told_apart_from_long_calls(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    table = page.locator("#functions table.data")
    heads = [head.inner_text().strip() for head in table.locator("thead th").all()]
    cells = {
        row.locator("td.grow").inner_text(): dict(
            zip(heads, [cell.inner_text().strip() for cell in row.locator("td, th").all()], strict=True)
        )
        for row in table.locator("tbody tr").all()
    }
    slow, leaf = cells["slow"], cells["leaf"]
    assert (slow["calls"], slow["one call"]) == ("8", "384 ms")
    assert leaf["calls"].startswith("1.2M ±")
    assert leaf["one call"] == "310 ns"
    # What was called and never watched says nothing.
    assert cells["other"]["calls"] == ""
    bars = table.locator("tr", has_text="slow").locator("svg.times rect")
    assert bars.count() == 2
    assert table.locator("tr", has_text="leaf").locator("svg.times rect").count() == 3
    table.locator("tr", has_text="slow").locator("svg.times").hover()
    said = page.locator("#tip").inner_text()
    assert "exact" in said
    assert "3.00 s" in said


def test_the_table_is_sorted_by_calls(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    page.click("#functions th[data-id='calls'] button")
    names = page.locator("#functions tbody tr td.grow").all_inner_texts()
    assert names.index("leaf") < names.index("slow")
