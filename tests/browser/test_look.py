"""How the page looks: what has room, what is coloured, what is said where there is nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import write_page
from browser.test_report import Pages
from unit.analyzer.recordings import MS, START, Builder

LONG = "answer = transform(first_argument, second_argument, third=1)  # ends here"
SOURCE = f'''def work(text):
    """Says
    what it does."""
    {LONG}
    return "a # b" + f'{{text}}' if None else 12.5
'''


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads in two processes, with CPU time, waiting, memory and copies on long lines."""
    folder = tmp_path_factory.mktemp("look")
    builder = Builder(folder / "full.tacho")
    file = builder.file("/srv/app/some_module_with_a_long_name.py", SOURCE)
    stack = builder.stack((builder.code(file, "work"), 3))
    last = builder.stack((builder.code(file, "work"), 4))
    for number in range(300):
        builder.cpu(stack, time_ns=START + (number + 1) * 10 * MS)
        builder.cpu(last, 1, time_ns=START + (number + 1) * 10 * MS)
    worker = builder.thread("a-worker-of-the-pool-12")
    builder.wait(stack, 500, 9_500, thread=worker, syscall=202)
    builder.memory("start", 0, 0, resident_bytes=1_000_000)
    for number in range(50):
        builder.block(stack, 1_000_000, 100 + number * 50, freed_ms=9_000)
    builder.block(last, 1_000_000, 100, freed_ms=9_000)
    builder.memory("tick", 5_000, 50_000_000, obj_allocated_bytes=50_000_000, resident_bytes=60_000_000)
    builder.memory("end", 10_000, 0, peak_bytes=50_000_000, obj_freed_bytes=50_000_000)
    builder.copy(stack, 10_000_000, 500)
    _, child = builder.process(200, 100, 9_900)
    builder.cpu(builder.stack((builder.code(file, "rare", 6), 0)), thread=child, time_ns=START + 9_000 * MS)
    return write_page(builder.write(), folder / "full.html")


def test_the_source_has_the_most_room(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full, viewport={"width": 1280, "height": 900})
    cells = page.locator("#lines tr.row").first.locator("td")
    widths = [box["width"] for box in (cell.bounding_box() for cell in cells.all()) if box]
    source = page.locator("#lines tr.row").first.locator("td.grow").bounding_box()["width"]
    assert source == max(widths)
    assert source > 340
    # And nothing of the table is out of sight.
    assert page.evaluate("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('#lines .scroll'))")


def test_the_parts_of_a_full_report_are_one_row_on_a_laptop(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full, viewport={"width": 1280, "height": 900})
    tops = page.locator("#nav a").evaluate_all("links => links.map((link) => link.getBoundingClientRect().top)")
    assert len(tops) >= 8
    assert len(set(tops)) == 1


def test_functions_with_long_names_and_libraries_fit_a_laptop(tmp_path: Path, visit: Callable[..., Any]) -> None:
    builder = Builder(tmp_path / "run.tacho")
    file = builder.file("/srv/app/some_module_with_a_long_name_that_goes_on.py", SOURCE)
    library = builder.native_frame(builder.module("/usr/lib/lib.cpython-311-x86_64-linux-gnu_and_more.so"), None)
    stack = builder.stack((builder.code(file, "A_class_with_a_long_name.a_method_with_a_longer_name_than_most"), 3))
    for number in range(300):
        builder.cpu(stack, native_frame=library if number % 2 else 0, collecting=not number % 4)
    builder.wait(stack, 500, 9_500, syscall=202)
    builder.memory("start", 0, 0, resident_bytes=1_000_000)
    for number in range(50):
        builder.block(stack, 1_000_000, 100 + number * 50, freed_ms=9_000)
    builder.memory("tick", 5_000, 50_000_000, obj_allocated_bytes=50_000_000, resident_bytes=60_000_000)
    builder.memory("end", 10_000, 0, peak_bytes=50_000_000, obj_freed_bytes=50_000_000)
    builder.copy(stack, 10_000_000, 500)
    page = visit(write_page(builder.write(), tmp_path / "run.html"), viewport={"width": 1280, "height": 900})
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every((box) => box.scrollWidth <= box.clientWidth)")
    assert "copied" in page.locator("#functions th:visible").all_inner_texts()


@pytest.mark.parametrize("width", [1360, 1400])
def test_columns_of_the_second_rank_go_where_there_is_no_room(
    full: Path, visit: Callable[..., Any], width: int
) -> None:
    page = visit(full, viewport={"width": width, "height": 900})
    inside = "[...document.querySelectorAll('.scroll')].every((box) => box.scrollWidth <= box.clientWidth)"
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert page.evaluate(inside)
    heads = page.locator("#lines th:visible").all_inner_texts()
    assert "copied" in heads
    assert "held over time" not in heads


def test_columns_without_anything_are_folded_away(tmp_path: Path, visit: Callable[..., Any]) -> None:
    builder = Builder(tmp_path / "run.tacho")
    stack = builder.stack((builder.code(builder.file("/srv/a.py", SOURCE)), 3))
    builder.cpu(stack)
    builder.memory("start", 0, 0)
    builder.memory("end", 10_000, 0)
    page = visit(write_page(builder.write(), tmp_path / "run.html"))
    heads = [head for head in page.locator("#lines th:visible").all_inner_texts() if head]
    assert [head.split()[0] for head in heads] == ["CPU", "with", "line", "source"], heads
    assert not [cell for cell in page.locator("#lines td").all_inner_texts() if cell.strip() == "·"]


def test_source_is_coloured(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full)
    row = page.locator("#lines tr.row").first
    assert row.locator(".code-comment").inner_text() == "# ends here"
    row.click()
    page.click("text=Whole file")
    source = page.locator("#lines tr.detail .source")
    assert source.locator(".code-keyword").all_inner_texts() == ["def", "return", "if", "None", "else"]
    assert source.locator(".code-defined").inner_text() == "work"
    strings = ['"""Says', '    what it does."""', '"a # b"', "f'{text}'"]
    assert source.locator(".code-string").all_inner_texts() == strings
    assert source.locator(".code-numeral").all_inner_texts() == ["1", "12.5"]
    assert LONG in source.inner_text()
    colours = {
        kind: page.evaluate(f"getComputedStyle(document.querySelector('.source .code-{kind}')).color")
        for kind in ("comment", "keyword", "string", "numeral")
    }
    assert len(set(colours.values())) == 4


def test_a_search_without_a_match_says_so(pages: Pages, visit: Callable[..., Any]) -> None:
    page = visit(pages["story"])
    page.fill("#search", "no such thing")
    page.wait_for_selector("#lines .more:has-text('Nothing matches')")
    for part in ("lines", "functions", "files"):
        assert page.locator(f"#{part} .more").inner_text() == "Nothing matches “no such thing”."
    assert "nothing here matches “no such thing”" in page.locator("#flame .crumb").inner_text()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_names_of_threads_can_be_read_on_a_telephone(full: Path, visit: Callable[..., Any], scheme: str) -> None:
    page = visit(full, viewport={"width": 420, "height": 900}, color_scheme=scheme)
    name = page.locator("#threads td.named", has_text="a-worker-of-the-pool-12")
    assert name.evaluate("cell => cell.scrollWidth <= cell.clientWidth + 1")
    assert name.bounding_box()["x"] + name.bounding_box()["width"] <= 420
    assert name.bounding_box()["width"] >= 120
    assert page.evaluate("document.documentElement.scrollWidth") <= 420


@pytest.mark.parametrize("width", [420, 1280])
def test_bars_are_no_dots(full: Path, visit: Callable[..., Any], width: int) -> None:
    """A bar under an amount is long enough to be seen as one, or is left out; so is the strip of a box."""
    page = visit(full, viewport={"width": width, "height": 900})
    widths = "each => each.map(bar => bar.getBoundingClientRect().width).filter(width => width > 0)"
    assert all(found > 2.5 for found in page.eval_on_selector_all(".meter i", widths))
    narrow = (
        "each => each.filter(box => box.getBoundingClientRect().width < 6).map(box => box.querySelectorAll('i').length)"
    )
    assert page.eval_on_selector_all("#flame .box", narrow) == [0]
    assert page.locator("#flame .box i").count() > 0


@pytest.mark.parametrize("width", [420, 1280])
def test_rows_have_a_number_that_is_seen(tmp_path: Path, visit: Callable[..., Any], width: int) -> None:
    """A row whose numbers are all in columns that have no room goes with them: what was held before the recording."""
    builder = Builder(tmp_path / "run.tacho")
    stack = builder.stack((builder.code(builder.file("/srv/app.py", "work()\n"), "work"), 0))
    for _ in range(100):
        builder.cpu(stack)
    builder.memory("start", 0, 3_000_000)
    builder.memory("end", 10_000, 3_000_000, peak_bytes=3_000_000)
    page = visit(write_page(builder.write(), tmp_path / "run.html"), viewport={"width": width, "height": 900})
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#lines, #functions, #files")].map((part) =>
            [...part.querySelectorAll("tbody tr[data-row]")].filter((row) => row.offsetParent !== null).map((row) =>
                [...row.querySelectorAll("td:not(.text), th:not(.text)")].some((cell) =>
                    cell.offsetParent !== null && cell.textContent.trim())))"""
    )
    assert all(rows)
    assert all(all(part) for part in rows)


def test_the_column_that_sorts_functions_is_seen_on_a_telephone(full: Path, visit: Callable[..., Any]) -> None:
    page = visit(full, viewport={"width": 420, "height": 900})
    for part in ("lines", "functions", "threads"):
        assert page.locator(f"#{part} th[aria-sort='descending']").is_visible()
