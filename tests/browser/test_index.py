"""The index of several recordings that ``tachograph view`` serves, in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer.commands.page_server import Page, PageServer
from tachograph.analyzer.commands.pages import Pages
from tachograph.analyzer.commands.shelf import Shelf
from tachograph.analyzer.profile.question import Question
from unit.analyzer.test_view import write

EVIL = "</script><script>window.stolen = 1</script>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder = tmp_path_factory.mktemp("index")
    write(folder / "before.tacho", 50, version="1", note=EVIL)
    write(folder / "after.tacho", 100, version="2")
    write(folder / "day" / "other.tacho", 20, "other.py")
    (folder / "broken.tacho").mkdir()
    (folder / "broken.tacho" / "manifest.json").write_text("{")
    pages = Pages(Shelf([folder]), Question())
    with PageServer(pages, 0) as server:
        pages.begin()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        pages.end()
        thread.join()


def row(page: Any, name: str) -> Any:
    return page.locator("#lines tbody tr", has_text=name)


def test_totals_come_by_themselves_and_names_lead_to_reports(server: PageServer, open_url: Callable[..., Any]) -> None:
    page = open_url(server.one_time_url())
    row(page, "after").locator("td", has_text="1.00 s").wait_for()
    row(page, "before").locator("td", has_text="0.50 s").wait_for()
    assert row(page, "before").inner_text().split("\t")[1:5] == ["before", "0.50 s", "10.0 s", "0 s"]
    assert "version=2" in row(page, "after").inner_text()
    assert "broken.tacho" in row(page, "broken").inner_text()
    assert row(page, "broken").locator("button").count() == 0
    assert page.evaluate("window.stolen") is None
    row(page, "after").locator("a").click()
    page.wait_for_selector("html[data-ready='yes'] #functions h2")
    assert page.title() == "shop.py · tachograph"
    assert page.url == f"{server.url}report/after"


class Held:
    """Pages, of which the server gives a report once the index has shown a bar: how fast it is made does not matter."""

    def __init__(self, pages: Pages) -> None:
        self.pages, self.shown = pages, threading.Event()

    def page(self, names: tuple[str, ...], options: Mapping[str, str]) -> Page | None:
        if names == ("shown",):
            self.shown.set()
            return Page("")
        if names[0] == "report":
            self.shown.wait(30)
        return self.pages.page(names, options)


TELLS_OF_BAR = """new MutationObserver((changes) => {
    const text = changes[0].target.textContent;
    if (text.includes("The page of one is being made")) fetch("shown");
}).observe(document.querySelector("#lines [role=status]"), { childList: true })"""
"""Nothing can be asked of a page whose link was clicked."""


def test_what_takes_long_has_a_bar(tmp_path: Path, open_url: Callable[..., Any]) -> None:
    """First that recordings are added up, then that a page is made."""
    write(tmp_path / "one.tacho", 50)
    pages = Pages(Shelf([tmp_path]), Question())
    held = Held(pages)
    with PageServer(held, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            page = open_url(server.url)
            page.wait_for_selector("#lines progress[max='1']")  # nothing is added up yet
            pages.begin()
            page.locator("#lines [role=status]").wait_for(state="hidden")
            assert "0.50 s" in row(page, "one").inner_text()
            page.evaluate(TELLS_OF_BAR)
            row(page, "one").locator("a").click(no_wait_after=True)
            assert held.shown.wait(15)
            page.wait_for_selector("html[data-ready='yes'] #functions h2")
            page.go_back()
            page.wait_for_selector("html[data-ready='yes'] #lines h2")
            assert not page.locator("#lines [role=status]").is_visible()
        finally:
            held.shown.set()
            server.shutdown()
            pages.end()
            thread.join()


def test_two_clicks_lead_to_a_diff(server: PageServer, open_url: Callable[..., Any]) -> None:
    page = open_url(server.url)
    row(page, "before").locator("button").click()
    assert row(page, "before").locator("button").inner_text() == "base"
    assert "The base is before" in page.inner_text("#lines .hint")
    row(page, "before").locator("button").click()
    assert row(page, "before").locator("button").inner_text() == "compare"
    row(page, "before").locator("button").click()
    row(page, "after").locator("button").click()
    page.wait_for_selector("html[data-ready='yes'] #totals h2")
    assert page.inner_text("h1") == "before.tacho → after.tacho"
    page.go_back()
    page.wait_for_selector("html[data-ready='yes'] #lines h2")
    assert row(page, "before").count() == 1


def test_recordings_of_other_programs_are_compared_if_it_is_wanted(
    server: PageServer, open_url: Callable[..., Any]
) -> None:
    page = open_url(server.url)
    row(page, "before").locator("button").click()
    row(page, "day/other").locator("button").click()
    page.wait_for_selector("h1")
    assert page.inner_text("h1") == "This cannot be shown"
    assert "other.py" in page.inner_text(".sentence")
    page.click("text=Compare them anyway")
    page.wait_for_selector("html[data-ready='yes'] #totals h2")
    assert page.inner_text("h1") == "before.tacho → other.tacho"


def test_search(server: PageServer, open_url: Callable[..., Any]) -> None:
    page = open_url(server.url)
    page.fill("#search", "version=2")
    row(page, "before").wait_for(state="detached")
    assert page.locator("#lines tbody tr").count() == 1
    page.fill("#search", "nothing at all")
    page.locator("#lines .more", has_text="Nothing matches “nothing at all”").wait_for()
