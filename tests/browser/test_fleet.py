"""The page of a fleet, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tachograph.analyzer.fleet as fleets
from unit.analyzer.fleet.fleets import SOURCE, one

EVIL = "</script><script>window.stolen = 1</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six recordings of two versions, and one that cannot be read; line 3 has twice the time in version b."""
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(6):
        version = "a" if number < 3 else "b"
        labels = {"version": version, "note": EVIL}
        slow = 100 if version == "a" else 200
        one(folder / "shop", number, {2: 100, 3: slow, 4: 10}, labels=labels, waits={4: 50}, source=f"{SOURCE}# {EVIL}")
    (folder / "shop" / "gone.tacho").mkdir()
    (folder / "shop" / "gone.tacho" / "manifest.json").write_text("{")
    assert fleets.open(str(folder / "shop")).html(folder / "fleet.html", pages=2).bytes < 300_000
    return folder / "fleet.html"


def test_lines_functions_and_recordings(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    rows = shown.locator("#lines tbody tr").all_inner_texts()
    assert rows[0].split()[:2] == ["57.7", "%"]
    assert "query(request)" in rows[0]
    assert "6 of 6" in rows[0]
    assert shown.locator("#recordings tbody tr").count() == 6
    assert "gone.tacho" in shown.locator("#left-out").inner_text()
    assert "1 recording could not be read" in shown.locator(".remarks").inner_text()
    shown.click("#metrics button[data-value='wait']")
    assert "render(request)" in shown.locator("#lines tbody tr").first.inner_text()


def test_a_row_shows_its_versions_and_recordings(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    shown.locator("#lines tbody tr").first.click()
    detail = shown.locator("#lines .detail").inner_text()
    assert "by version" in detail
    assert [row.split()[:2] for row in detail.splitlines() if row.startswith(("a\t", "b\t"))] == [
        ["a", "47.6"],
        ["b", "64.5"],
    ]
    most = detail[detail.index("recordings with the most") :]
    assert "run-003.tacho" in most
    assert "fleet find" in detail
    shown.locator("#lines .detail a", has_text="run-003.tacho").click()
    shown.wait_for_selector("html[data-ready='yes'] #lines", state="attached")
    assert page.parent.as_uri() in shown.url
    assert "-recordings/" in shown.url
    assert "shop.py" in shown.inner_text("#lines")


def test_the_flame_graph(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    names = [name for name in shown.locator("#flame .box").all_inner_texts() if name]
    assert names == ["<module> shop.py", "handle"]
    assert shown.locator("#flame .crumb").inner_text() == "1.56 s CPU"
    shown.locator("#flame .box", has_text="handle").click()
    assert shown.locator("#flame .crumb").inner_text().startswith("1.56 s CPU in handle")
    shown.locator("#flame .box", has_text="handle").hover()
    assert "6" in shown.locator("#tip").inner_text()
    shown.keyboard.press("Escape")
    shown.click("#flame button[data-value='wait']")
    assert shown.locator("#flame .crumb").inner_text() == "0.30 s waiting, all threads"


def test_search_and_hostile_texts(page: Path, visit: Callable[..., Any]) -> None:
    shown = visit(page)
    shown.keyboard.press("/")
    shown.keyboard.type("run-004")
    shown.wait_for_selector("#recordings tbody tr:nth-child(2)", state="detached")
    assert "run-004" in shown.locator("#recordings tbody tr").inner_text()
    assert EVIL in shown.locator("#recordings tbody tr").inner_text()
    assert shown.evaluate("window.stolen") is None


def test_a_page_of_little_room_says_what_it_leaves_out(tmp_path: Path) -> None:
    from tachograph.analyzer.fleet.fleet_page import fleet_page

    for number in range(12):
        one(tmp_path / "shop", number, {2: 100, 3: 50})
    found = fleets.open(str(tmp_path / "shop"))
    whole = fleet_page(found.select(), found.left_out, "shop")
    small = fleet_page(found.select(), found.left_out, "shop", limit=len(whole.encode()) - 1)
    assert "not in the list" not in whole
    assert len(small) < len(whole)
