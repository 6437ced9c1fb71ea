"""A real browser, driven by Playwright. Without one these tests are skipped and say why; in CI they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import chromium, story
from tachograph.analyzer import Question, Recording

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--renderer-process-limit=1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


VIEWPORT = {"width": 1400, "height": 900}


def write_page(recording: Path, page: Path, **question: Any) -> Path:
    """The report of a recording."""
    from tachograph.analyzer.render.html.report_page import write_report
    from tachograph.analyzer.report_data.report_data import build_report_data, build_views

    with Recording.open(recording) as opened:
        asked = Question(**question)
        data = build_report_data(opened, asked)
        write_report(data, page, build_views(opened, asked, data))
    return page


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of the story, as it is and with hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    return {
        name: write_page(story.build(folder / f"{name}.tacho", evil=name == "evil"), folder / f"{name}.html")
        for name in ("story", "evil")
    }


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    try:
        from playwright import sync_api as api
    except ImportError:
        (pytest.fail if chromium.needed() else pytest.skip)(f"{chromium.MISSING}; playwright is missing too")
    with api.sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Any) -> Iterator[Any]:
    """One browser for all tests."""
    executable = chromium.find()
    if executable is None:
        (pytest.fail if chromium.needed() else pytest.skip)(chromium.MISSING)
    started = playwright.chromium.launch(executable_path=executable, args=FLAGS, headless=True)
    yield started
    started.close()


@pytest.fixture(scope="session")
def context(browser: Any) -> Any:
    """One context for all tests, and a page that stays: without them each test waits for processes of the browser."""
    made = browser.new_context(viewport=VIEWPORT)
    made.new_page()
    return made


class Seen:
    """What a page said and asked for."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []


@pytest.fixture
def empty_page(context: Any) -> Iterator[Any]:
    """A page of nothing, which has no policy either."""
    page = context.new_page()
    yield page
    page.close()


@pytest.fixture
def open_url(context: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address and waits until the page is drawn; afterwards there were no errors, nor requests elsewhere.

    What a page keeps in the browser is gone after its test.
    """
    before = list(context.pages)
    seen = Seen()
    allowed = ["file:", "data:", "blob:"]

    def open_page(url: str, *, viewport: dict[str, int] = VIEWPORT, color_scheme: str = "light") -> Any:
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme)
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        if url.startswith("http://127.0.0.1:"):
            allowed.append("/".join(url.split("/")[:3]) + "/")
        page.goto(url)
        page.wait_for_selector("html[data-ready='yes']", state="attached")
        return page

    yield open_page
    for page in context.pages:
        if page not in before:
            if page.url.startswith(("file:", "http:")):
                page.evaluate("localStorage.clear()")
            page.close()
    context.clear_cookies()
    assert [error for error in seen.errors if "409 (Conflict)" not in error] == []
    assert [url for url in seen.requests if not url.startswith(tuple(allowed))] == []


@pytest.fixture
def visit(open_url: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page that is a file; ``at`` is what follows its path in the address."""

    return lambda path, at="", **options: open_url(f"{path.as_uri()}{at}", **options)
