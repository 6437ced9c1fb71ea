"""Memory in the flame graph: at the peak, at the end, and at any moment picked on the timeline, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import write_page
from unit.analyzer.recordings import MS, START, Builder

SOURCE = "def load():\n    return bytes(203_000_000)\n\ndef keep():\n    return [0] * 1_000_000\n"
MB = 1_000_000


def build(path: Path) -> Path:
    """Line 5 keeps 20 MB from 1 s on, line 2 holds 203 MB from 2 s to 6 s; the shutdown from 9 s on takes all apart."""
    builder = Builder(path)
    file = builder.file("/srv/app.py", SOURCE)
    root = (builder.code(file, "<module>"), 0)
    load = builder.stack(root, (builder.code(file, "load", 1), 1))
    keep = builder.stack(root, (builder.code(file, "keep", 4), 1))
    builder.rows["processes"][0]["exiting_ns"] = START + 9_000 * MS
    for number in range(100):
        builder.cpu(load, time_ns=START + (number + 1) * 90 * MS)
    builder.memory("start", 0, 0)
    builder.block(keep, 20 * MB, 1_000, freed_ms=9_500)
    builder.memory("tick", 1_001, 20 * MB, obj_allocated_bytes=20 * MB)
    builder.block(load, 203 * MB, 2_000, freed_ms=6_000)
    builder.memory("tick", 2_001, 223 * MB, obj_allocated_bytes=203 * MB)
    builder.memory("tick", 6_001, 20 * MB, obj_freed_bytes=203 * MB)
    builder.memory("tick", 8_900, 20 * MB)
    builder.memory("end", 10_000, 0, peak_bytes=20 * MB, obj_freed_bytes=20 * MB)
    return builder.write()


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("held")
    return write_page(build(folder / "held.tacho"), folder / "held.html")


def boxes(page: Any) -> list[str]:
    return [name for name in page.locator("#flame .box").all_inner_texts() if name]


def pressed(page: Any) -> str:
    found: str = page.locator("#flame .when button[aria-pressed='true']").inner_text()
    return found


def test_what_is_held_is_shown_at_the_peak_first(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    assert not page.locator("#flame .when").is_visible()  # CPU time has no moment
    page.click("#flame button[data-value='live']")
    assert pressed(page) == "at peak"
    assert page.locator("#flame .crumb").inner_text() == "223 MB held at peak, after 2.00 s"
    assert boxes(page) == ["<module> app.py", "load", "keep"]
    page.locator("#flame .box", has_text="load").hover()
    assert "203 MB" in page.locator("#tip").inner_text()


def test_at_the_end_is_before_the_interpreter_takes_all_apart(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    page.click("#flame button[data-value='live']")
    page.click("#flame button[data-value='live_at_end_bytes']")
    assert page.locator("#flame .crumb").inner_text() == "20 MB held at end, after 9.00 s"
    assert boxes(page) == ["<module> app.py", "keep"]


def test_any_moment_is_picked_on_the_timeline(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    page.click("#flame button[data-value='live']")
    page.evaluate("scrollTo(0, 0)")
    brush = page.locator(".brush").bounding_box()

    def pick(part: float) -> None:
        page.mouse.click(brush["x"] + part * brush["width"], brush["y"] + brush["height"] / 2)

    pick(0.15)
    assert pressed(page) == "at a moment"
    assert page.locator("#flame .crumb").inner_text() == "20 MB held after 1.50 s"
    assert boxes(page) == ["<module> app.py", "keep"]
    assert page.locator(".moment").is_visible()
    pick(0.5)
    assert page.locator("#flame .crumb").inner_text() == "223 MB held after 5.00 s"
    # The table has a column for it.
    heads = page.locator("#lines thead th").evaluate_all("heads => heads.map((head) => head.dataset.id || '')")
    column = page.locator("#lines tr.row").first.locator("td").nth(heads.index("moment"))
    assert column.inner_text().strip() == "203 MB"
    page.locator("#flame input[type='range']").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#flame .crumb").inner_text() == "223 MB held after 5.08 s"
    page.keyboard.press("Home")
    assert page.locator("#flame .crumb").inner_text() == "Nothing here at this moment."
    page.click("#unpick")
    assert pressed(page) == "at peak"
    assert not page.locator(".moment").is_visible()
    assert not page.locator("#lines th[data-id='moment']").is_visible()


def test_a_drag_is_a_window_and_no_moment(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    brush = page.locator(".brush").bounding_box()
    y = brush["y"] + brush["height"] / 2
    page.mouse.move(brush["x"] + 0.3 * brush["width"], y)
    page.mouse.down()
    page.mouse.move(brush["x"] + 0.6 * brush["width"], y)
    page.mouse.up()
    assert not page.locator(".moment").is_visible()
    page.click("#flame button[data-value='live']")
    assert page.locator("#flame .crumb").inner_text() == "223 MB held at peak, after 2.00 s (of the whole time)"
