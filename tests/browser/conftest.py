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
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


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
    """One browser for all tests; each page has a context of its own, which shares nothing with others."""
    executable = chromium.find()
    if executable is None:
        (pytest.fail if chromium.needed() else pytest.skip)(chromium.MISSING)
    started = playwright.chromium.launch(executable_path=executable, args=FLAGS, headless=True)
    yield started
    started.close()


class Seen:
    """What a page said and asked for."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []


@pytest.fixture
def open_url(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens an address and waits until the page is drawn; afterwards there were no errors, nor requests elsewhere."""
    contexts: list[Any] = []
    seen = Seen()
    allowed = ["file:", "data:", "blob:"]

    def open_page(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        if url.startswith("http://127.0.0.1:"):
            allowed.append("/".join(url.split("/")[:3]) + "/")
        page.goto(url)
        page.wait_for_selector("html[data-ready='yes']", state="attached")
        return page

    open_page.contexts = contexts  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert [error for error in seen.errors if "409 (Conflict)" not in error] == []
    assert [url for url in seen.requests if not url.startswith(tuple(allowed))] == []


@pytest.fixture
def visit(open_url: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page that is a file; ``at`` is what follows its path in the address."""

    def open_page(path: Path, at: str = "", **options: Any) -> Any:
        return open_url(f"{path.as_uri()}{at}", **options)

    open_page.contexts = open_url.contexts  # type: ignore[attr-defined]
    return open_page
