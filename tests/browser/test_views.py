"""Waiting of all threads, and the choice of a scope, a thread or a process, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from browser.conftest import write_page
from browser.test_report import drag
from tachograph.analyzer.commands.analyze import analyze
from unit.analyzer.recordings import MS, START, Builder

APP = "/srv/app.py"
SOURCE = "def produce():\n    put()\n\ndef consume():\n    item = queue.get()\n    work(item)\n\nmain()\n"


def build(path: Path) -> Path:
    """The main thread works on line 8 for 2 s; the consumer waits on line 5 for 9 s and calls a library for 1 s.

    The library is called on line 6. A forked process works on line 2 for 3 s.
    """
    builder = Builder(path)
    file, library = builder.file(APP, SOURCE), builder.file("/usr/lib/python3.13/queue.py", "def get():\n    pass\n")
    consume = builder.code(file, "consume", 4)
    get = builder.code(library, "get", 1)
    consumer = builder.thread("consumer")
    for number in range(200):
        builder.cpu(builder.stack((builder.code(file, "<module>"), 7)), time_ns=START + (number + 1) * 10 * MS)
    waiting, calling = builder.stack((consume, 1)), builder.stack((consume, 2), (get, 1))
    builder.wait(waiting, 500, 8_500, thread=consumer, syscall=202)
    builder.wait(waiting, 8_500, 9_500, thread=consumer, syscall=0, target=2)
    for number in range(100):
        builder.cpu(calling, thread=consumer, time_ns=START + (4_000 + (number + 1) * 10) * MS)
    _, child = builder.process(200, 100, 9_900)
    produce = builder.stack((builder.code(file, "produce"), 1))
    for number in range(300):
        builder.cpu(produce, thread=child, time_ns=START + (5_000 + (number + 1) * 10) * MS)
    return builder.write()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("views") / "views.tacho")


@pytest.fixture(scope="module")
def page_path(recording: Path) -> Path:
    return write_page(recording, recording.with_suffix(".html"))


def cell(page: Any, place: str, column: str) -> str:
    heads = page.locator("#lines thead th").evaluate_all("heads => heads.map((head) => head.dataset.id || '')")
    row = page.locator(f"#lines tr.row:has(a[title='{place}'])")
    text: str = row.locator("td").nth(heads.index(column)).inner_text()
    return text.replace("\n", " ").strip()


def figures(page: Any) -> list[str]:
    found: list[str] = page.locator("#figures > div").all_inner_texts()
    return [" ".join(each.split()) for each in found]


def test_waiting_of_other_threads_is_in_lines_functions_and_source(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    assert cell(page, f"{APP}:5", "wait") == "9.00 s"
    row = page.locator("#functions tbody tr", has_text="consume")
    assert "9.00 s" in row.inner_text()
    page.locator(f"#lines tr.row:has(a[title='{APP}:5'])").click()
    assert "9.00s wait" in page.locator("#lines tr.detail tr.here").inner_text()
    detail = page.locator("#lines tr.detail").inner_text()
    assert "for: lock or GIL\t8.00 s" in detail
    assert "for: socket\t1.00 s" in detail
    assert cell(page, f"{APP}:5", "reason") == "lock or GIL 89 %"
    page.click("#lines th[data-id='wait'] button")
    assert page.locator("#lines tr.row").first.locator("td.bars i").get_attribute("class") == "back-wait"
    assert page.locator("#lines tr.row").first.locator(f"a[title='{APP}:5']").count() == 1


def test_a_page_of_one_thread_says_how_long_it_waited(recording: Path, visit: Callable[..., Any]) -> None:
    page = visit(write_page(recording, recording.with_name("consumer.html"), thread="consumer"))
    assert any(figure.startswith("thread waits 9.00 s 90.0 % of the time") for figure in figures(page))
    assert not any("main" in figure for figure in figures(page))
    # Waiting stands in the timeline as well: 108 of 120 spans.
    assert 105 <= page.locator("#timeline rect.fill-wait").count() <= 110


def test_threads_processes_and_scopes_can_be_chosen(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    options = page.locator("#view option").all_inner_texts()
    assert options[0] == "everything"
    assert "all code, libraries too" in options
    assert [option for option in options if option.startswith("consumer")]
    assert len([option for option in options if option.endswith(("(100)", "(200)"))]) == 4, "threads and processes"

    def choose(label: str) -> None:
        page.select_option("#view", label=next(option for option in options if option.startswith(label)))

    choose("consumer")
    places = page.locator("#lines tr.row a.code").all_inner_texts()
    assert sorted(places) == ["app.py:5", "app.py:6"]
    assert cell(page, f"{APP}:6", "cpu").startswith("100")
    assert any(figure.startswith("CPU 1.00 s") for figure in figures(page))
    assert any(figure.startswith("thread waits 9.00 s") for figure in figures(page))
    assert page.locator("#flame .crumb").inner_text() == "1.00 s CPU"

    choose("all code")
    assert page.locator("#lines tr.row a[title$='queue.py:2']").count() == 1
    assert page.locator("#flame .crumb").inner_text() == "6.00 s CPU"
    page.locator("#lines tr.row:has(a[title$='queue.py:2'])").click()
    assert "def get():" in page.locator("#lines tr.detail").inner_text()

    page.select_option("#view", index=len(options) - 1)  # the last process: the child, or the first
    texts = page.locator("#lines tr.row a.code").all_inner_texts()
    assert texts in (["app.py:2"], ["app.py:8", "app.py:6", "app.py:5"], ["app.py:8", "app.py:5", "app.py:6"])
    choose("everything")
    assert any(figure.startswith("CPU 6.00 s") for figure in figures(page))


def test_the_window_and_the_search_stay(page_path: Path, visit: Callable[..., Any]) -> None:
    page = visit(page_path)
    drag(page, 0.4, 0.5)
    page.select_option("#view", label="all code, libraries too")
    assert page.locator("#lines tr.row a.code").all_inner_texts() == ["queue.py:2", "app.py:6", "app.py:5"]
    assert page.locator("#reset").is_visible()
    page.fill("#search", "consume")
    page.wait_for_selector("#flame .box.found")
    page.select_option("#view", index=0)
    assert page.locator("#lines tr.row").count() == 2
    assert page.locator("#flame .box.found").count() == 1


def test_a_page_without_other_threads_has_only_scopes(tmp_path: Path, visit: Callable[..., Any]) -> None:
    builder = Builder(tmp_path / "one.tacho")
    builder.cpu(builder.stack((builder.code(builder.file(APP, SOURCE)), 0)))
    page = visit(write_page(builder.write(), tmp_path / "one.html"))
    assert page.locator("#view option").all_inner_texts() == ["everything", "all code, libraries too"]


def test_a_page_is_sorted_as_it_was_asked_for(recording: Path, visit: Callable[..., Any]) -> None:
    target = recording.with_name("sorted.html")
    result = CliRunner().invoke(analyze, [str(recording), "--sort", "wait", "--html", str(target)])
    assert result.exit_code == 0, result.output
    page = visit(target)
    assert page.locator("#lines th[aria-sort='descending']").get_attribute("data-id") == "wait"
    assert page.locator("#lines tr.row").first.locator(f"a[title='{APP}:5']").count() == 1


def test_a_library_s_function_is_no_dead_link(page_path: Path, visit: Callable[..., Any]) -> None:
    """Its lines are not in the table under this scope; with all code they are, and the link leads there."""
    page = visit(page_path)
    page.locator("#flame .box", has_text="get").first.click()
    crumb = page.locator("#flame .crumb")
    assert "queue.py:1" in crumb.inner_text()
    assert crumb.locator("a").count() == 0
    assert page.locator("#functions a", has_text="app.py:4").count() == 1
    page.select_option("#view", label="all code, libraries too")
    page.locator("#flame .box", has_text="get").first.click()
    crumb.locator("a", has_text="queue.py:1").click()
    # The address changes first, and the page follows.
    page.locator("#lines tr.open a", has_text="queue.py:2").wait_for()


def test_a_click_on_a_span_shows_it_alone(tmp_path: Path, visit: Callable[..., Any]) -> None:
    builder = Builder(tmp_path / "routes.tacho")
    handler = builder.code(builder.file(APP, SOURCE), "handler")
    for number in range(200):
        builder.cpu(builder.stack((handler, number // 50)), time_ns=START + (number * 10 + 5) * MS)
    builder.span("GET /items/{}", 0, 500)
    builder.span("POST /", 500, 1500)
    page = visit(write_page(builder.write(), tmp_path / "routes.html"))
    assert page.locator("#flame .crumb").inner_text() == "2.00 s CPU"
    page.click("#spans button.name:has-text('GET /items/{}')")
    assert page.locator("#lines tr.row a.code").all_inner_texts() == ["app.py:1"]
    assert page.locator("#flame .crumb").inner_text() == "0.50 s CPU"
    assert page.locator("#view option:checked").inner_text() == "GET /items/{}"
    page.click("#spans button.name:has-text('GET /items/{}')")
    assert page.locator("#flame .crumb").inner_text() == "2.00 s CPU"
