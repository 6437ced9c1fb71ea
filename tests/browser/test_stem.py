"""Callers that everything in a flame graph has in common are one box."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import write_page
from tachograph.analyzer.diff import diff
from tachograph.analyzer.render.html.diff_page import write
from unit.analyzer.recordings import MS, START, Builder

Visit = Callable[..., Any]
STEM = ["<module> main.py", "main", "run", "step"]
FOLDED = "4 frames, from <module> main.py to step"
SOURCE = "\n".join(f"def {name}(): ..." for name in ("main", "run", "step", "work", "left", "right"))


def build(path: Path, right: int) -> Path:
    """A module calls main, run, step, work; that calls left and right."""
    builder = Builder(path)
    file = builder.file("/srv/app/main.py", SOURCE)
    codes = [builder.code(file, name, 1) for name in ("<module>", "main", "run", "step", "work", "left", "right")]
    chain = [(code, 0) for code in codes[:5]]
    at = 0
    for leaf, samples in ((codes[5], 200), (codes[6], right)):
        for _ in range(samples):
            at += 10
            builder.cpu(builder.stack(*chain, (leaf, 0)), time_ns=START + at * MS)
    return builder.write()


def names(page: Any) -> list[str]:
    return [name for name in page.locator("#flame .box").all_inner_texts() if name]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stem")
    base, new = build(folder / "a.tacho", 100), build(folder / "b.tacho", 250)
    write(diff([base], [new], spread=0.01), str(folder / "diff.html"))
    return {"report": write_page(base, folder / "report.html"), "diff": folder / "diff.html"}


def test_a_stem_is_one_box(pages: dict[str, Path], visit: Visit) -> None:
    page = visit(pages["report"])
    assert names(page) == [FOLDED, "work", "left", "right"]
    page.locator("#flame .box", has_text="4 frames").hover()
    assert page.locator("#tip").inner_text().split("Click")[0].splitlines()[-4:] == STEM
    page.locator("#flame .box", has_text="left").click()
    assert names(page) == [FOLDED, "work", "left"]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.innerText") == FOLDED
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.innerText") == "work"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert names(page) == [FOLDED, "work", "left", "right"]


def test_it_opens_and_closes(pages: dict[str, Path], visit: Visit) -> None:
    page = visit(pages["report"])
    page.locator("#flame .box", has_text="4 frames").click()
    assert names(page) == [*STEM, "work", "left", "right"]
    assert not page.is_checked("#flame input[name='stem']")
    page.locator("#flame .box", has_text="main").last.click()
    page.check("#flame input[name='stem']")
    assert names(page) == [FOLDED, "work", "left", "right"]
    page.check("#flame input[name='inverted']")  # nothing in common there
    assert names(page)[:2] == ["left", "right"]
    assert page.locator("#flame input[name='stem']").is_hidden()


def test_a_search_finds_what_is_in_it(pages: dict[str, Path], visit: Visit) -> None:
    page = visit(pages["report"])
    page.keyboard.press("/")
    page.keyboard.type("run")
    page.wait_for_selector("#flame .box.found")
    assert page.locator("#flame .box.found").all_inner_texts() == [FOLDED]


def test_the_graph_of_a_difference_folds_it_too(pages: dict[str, Path], visit: Visit) -> None:
    page = visit(pages["diff"])
    folded = FOLDED.replace("<module> main.py", "<module>")
    assert names(page) == [folded, "work", "right", "left"]
    page.locator("#flame .box", has_text="4 frames").click()
    assert names(page) == ["<module>", *STEM[1:], "work", "right", "left"]
    page.check("#flame input[name='stem']")
    page.locator("#flame .box", has_text="left").click()
    assert names(page) == [folded, "work", "left"]


def test_narrow_boxes_go_on_where_they_are_looked_at(tmp_path: Path, visit: Visit) -> None:
    """Sixty rows of hair's breadth below wide ones, as imports are, would make the graph mostly empty."""
    builder = Builder(tmp_path / "imports.tacho")
    file = builder.file("/srv/app/main.py", SOURCE)
    main, work, *deep = [builder.code(file, name, 1) for name in ("main", "work", *(f"import{n}" for n in range(60)))]
    for at in range(200):
        chain = [(work, 0)] if at else [(code, 0) for code in deep]
        builder.cpu(builder.stack((main, 0), *chain), time_ns=START + at * 10 * MS)
    page = visit(write_page(builder.write(), tmp_path / "imports.html"))
    graph, crumb = page.locator("#flame .flame"), page.locator("#flame .crumb")
    assert graph.bounding_box()["height"] < 10 * 20 + 2
    assert "narrow boxes go on below" in crumb.inner_text()
    page.locator("#flame .box[aria-label^='import0,']").click()
    assert "narrow boxes go on below" not in crumb.inner_text()
    assert page.locator("#flame .box[aria-label^='import59,']").count() == 1
