"""The page of a diff, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer.diff import diff
from tachograph.analyzer.render.figures.charts import write_diff_figures
from tachograph.analyzer.render.html.diff_page import write
from unit.analyzer.recordings import MS, START, Builder

EVIL = "</script><script>window.stolen = 1</script>"
SOURCE = "def slow():\n    work()\n\ndef other():\n    work()\n\ndef gone():\n    work()\n"


def build(path: Path, slow: int, other: int, gone: int, name: str = "other") -> Path:
    """``slow``, ``other`` and ``gone`` have so many samples of 10 ms."""
    builder = Builder(path)
    file = builder.file("/srv/app/main.py", SOURCE + (f"# {EVIL}\n" if EVIL in name else ""))
    root = (builder.code(file, "<module>"), 8)
    at = 0
    for function, line, samples in (("slow", 1, slow), (name, 4, other), ("gone", 7, gone)):
        code = builder.code(file, function, line)
        for _ in range(samples):
            at += 10
            builder.cpu(builder.stack(root, (code, 1)), time_ns=START + at * MS)
    return builder.write()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    result = diff([build(folder / "a.tacho", 100, 200, 100)], [build(folder / "b.tacho", 400, 200, 0)], spread=0.01)
    assert write(result, str(folder / "diff.html")) < 200_000
    assert {path.name for path in write_diff_figures(result, folder / "figures")} == {"diff-cpu.png", "diff-cpu.svg"}
    return folder / "diff.html"


def test_what_became_slower_comes_first(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    rows = shown.locator("#functions tbody tr").all_inner_texts()
    assert rows[0].split()[:4] == ["+3.00", "s", "1.00", "s"]
    assert "slower" in rows[0]
    assert "slow" in rows[0]
    assert "faster" in rows[1]
    assert "gone" in rows[1]
    total = shown.locator("#totals tbody tr", has_text="CPU").first.inner_text()
    assert total.split()[:6] == ["CPU", "4.00", "s", "6.00", "s", "+50.0"]


def test_runs_that_cannot_tell_are_shown_all_the_same(tmp_path: Path, visit: Callable[..., Any]) -> None:
    """One run a side gives no verdicts; the page had no lines, functions and flame graph then."""
    result = diff([build(tmp_path / "a.tacho", 100, 200, 100)], [build(tmp_path / "b.tacho", 400, 200, 0)])
    assert result.unjudged is not None
    write(result, str(tmp_path / "diff.html"))
    shown = visit(tmp_path / "diff.html")
    for table, name in (("lines", "main.py:2"), ("functions", "slow")):
        row = shown.locator(f"#{table} tbody tr").first.inner_text()
        assert row.split()[:4] == ["+3.00", "s", "1.00", "s"]
        assert name in row
        assert "not judged" in row
    assert "6.00 s" in shown.locator("#flame").inner_text()


def test_a_table_without_rows_speaks_of_no_window(tmp_path: Path, visit: Callable[..., Any]) -> None:
    result = diff([build(tmp_path / "a.tacho", 100, 200, 0)], [build(tmp_path / "b.tacho", 100, 200, 0)], spread=0.01)
    write(result, str(tmp_path / "diff.html"))
    shown = visit(tmp_path / "diff.html")
    shown.keyboard.press("/")
    shown.keyboard.type("nowhere")
    shown.wait_for_selector("text=Nothing matches “nowhere”.")
    assert "window" not in shown.locator("#lines").inner_text()


def test_bars_of_a_table_have_one_scale(page: Path, visit: Callable[..., Any]) -> None:
    """``slow`` needs 3 s more and ``gone`` 1 s less: a bar is three times as long as the other."""
    shown = visit(page)
    width = "row => Number(row.querySelector('svg.range rect').getAttribute('width'))"
    slow, gone = (
        shown.locator("#functions tbody tr", has_text=name).first.evaluate(width) for name in ("slow", "gone")
    )
    assert slow == pytest.approx(3 * gone, rel=0.02)
    assert 10 < slow <= 50


def test_the_flame_graph_shows_either_side(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    names = [name for name in shown.locator("#flame .box").all_inner_texts() if name]
    assert names == ["<module>", "slow", "other"]
    assert "more" in shown.locator("#flame .box", has_text="slow").get_attribute("class")
    shown.click("#flame button[data-value='base']")
    assert shown.locator("#flame .box", has_text="gone").count() == 1
    assert "less gone" in shown.locator("#flame .box", has_text="gone").get_attribute("class")
    shown.locator("#flame .box", has_text="gone").click()
    assert shown.locator("#flame .crumb").inner_text().startswith("1.00 s CPU in gone")
    shown.keyboard.press("Escape")
    shown.locator("#flame .box", has_text="other").hover()
    assert "no evidence" in shown.locator("#tip").inner_text()


def test_search_and_sorting(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    shown.click("#functions th[data-id='base'] button")
    assert "other" in shown.locator("#functions tbody tr").first.inner_text()
    shown.keyboard.press("/")
    shown.keyboard.type("gone")
    shown.wait_for_selector("#functions tbody tr:nth-child(2)", state="detached")
    assert "gone" in shown.locator("#functions tbody tr").inner_text()


def test_hostile_names_stay_text(tmp_path: Path, visit: Callable[..., Any]) -> None:
    result = diff(
        [build(tmp_path / "a.tacho", 100, 200, 0, EVIL)], [build(tmp_path / "b.tacho", 100, 400, 0, EVIL)], spread=0.01
    )
    write(result, str(tmp_path / "diff.html"))
    shown = visit(tmp_path / "diff.html")
    shown.locator("#flame .box").nth(1).hover()
    assert shown.evaluate("window.stolen") is None
    assert EVIL in shown.locator("#functions").inner_text()
