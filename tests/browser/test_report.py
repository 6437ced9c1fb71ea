"""What a reader can do with the report, in a real browser."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from browser import story
from browser.conftest import write_page
from browser.story import MAIN
from support.formats import FORMATS, Format
from support.vectors import VECTORS
from tachograph.analyzer.recording.frame import Row
from tachograph.analyzer.render.html.report_page import asset
from tachograph.analyzer.report_data.columns import Column
from tachograph.analyzer.report_data.sections import SECTIONS, Section
from tachograph.analyzer.statistics.intervals import wilson

Pages = dict[str, Path]
Visit = Callable[..., Any]


def sources(page: Any) -> list[str]:
    """The source texts of the table of lines, from the top."""
    return [text.strip() for text in page.locator("#lines tr.row td.grow > :last-child").all_inner_texts()]


def cell(page: Any, line: int, column: str) -> str:
    """A cell of the table of lines."""
    heads = page.locator("#lines thead th").evaluate_all("heads => heads.map((head) => head.dataset.id || '')")
    row = page.locator(f"#lines tr.row:has(a[title='{MAIN}:{line}'])")
    text: str = row.locator("td").nth(heads.index(column)).inner_text()
    return text.replace("\n", " ").strip()


def drag(page: Any, start: float, end: float) -> None:
    """Drags a window over the timeline, in parts of its width."""
    box = page.locator(".brush").bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], y)
    page.mouse.move(box["x"] + end * box["width"], y)
    page.mouse.up()


def test_the_line_to_change_comes_first(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    assert sources(page)[:2] == ["yield item * 2  # hot at first", "return lib.fast(items)  # hot later"]
    assert cell(page, 5, "cpu").startswith("57.1")  # 4 s of 7.01 s
    assert cell(page, 8, "cpu").startswith("42.8")
    assert cell(page, 14, "wait") == "2.00 s"
    assert cell(page, 8, "copied") == "10 MB"
    assert cell(page, 11, "allocated") == "100 MB"


def test_the_gpu_has_a_track_and_a_column(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    track = page.locator(".track", has_text="GPU")
    assert track.locator(".name").inner_text().split() == ["GPU", "18.0", "%", "busy"]
    # A fifth of 120 spans, and what touches it.
    assert 23 <= track.locator("rect.fill-gpu").count() <= 26
    assert track.locator("path.line").count() == 1
    assert cell(page, 14, "gpu") == "90.0 %"
    assert cell(page, 5, "gpu") == "0 %"


def test_heads_sort(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    page.click("#lines th[data-id='wait'] button")
    assert sources(page)[0] == "lib.wait()"
    assert page.locator("#lines th[data-id='wait']").get_attribute("aria-sort") == "descending"
    assert page.locator("#lines th[aria-sort]").count() == 1
    page.click("#lines th[data-id='cpu'] button")
    assert sources(page)[0].startswith("yield item")
    page.click("#lines th[data-id='cpu'] button")
    assert page.locator("#lines th[data-id='cpu']").get_attribute("aria-sort") == "ascending"
    assert not sources(page)[0].startswith("yield item")


def test_dragging_a_window_filters_everything(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    drag(page, 0.65, 0.85)
    assert page.locator("#reset").is_visible()
    # What is held belongs to the whole time, and its head says so.
    content = "getComputedStyle(document.querySelector('#lines th.alltime'), '::before').content"
    assert page.evaluate(content) == '"all time"'
    assert sources(page)[0] == "return lib.fast(items)  # hot later"
    assert not any(text.startswith("yield item") for text in sources(page))
    assert cell(page, 8, "cpu").startswith("100")
    assert page.locator("#flame .box", has_text=re.compile("^late$")).count() == 1
    assert page.locator("#flame .box", has_text="early").count() == 0
    assert "early" not in page.locator("#functions").inner_text()
    page.click("#reset")
    assert sources(page)[0].startswith("yield item")


def test_the_window_moves_and_its_ends_do(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    drag(page, 0.1, 0.3)
    drag(page, 0.2, 0.75)  # from inside of the window: it moves as a whole
    assert sources(page)[0] == "return lib.fast(items)  # hot later"
    handle = page.locator(".handle[data-end='to']").bounding_box()
    brush = page.locator(".brush").bounding_box()
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + 5)
    page.mouse.down()
    page.mouse.move(brush["x"] + brush["width"] - 1, handle["y"] + 5)
    page.mouse.up()
    assert page.locator(".handle[data-end='to']").get_attribute("aria-valuetext") == "10.0 s"


def test_the_window_by_keyboard(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    page.locator(".handle[data-end='from']").focus()
    for _ in range(6):
        page.keyboard.press("PageUp")
    assert page.locator(".handle[data-end='from']").get_attribute("aria-valuenow") == "60"
    assert sources(page)[0] == "return lib.fast(items)  # hot later"
    page.keyboard.press("Escape")
    assert page.locator(".handle[data-end='from']").get_attribute("aria-valuenow") == "0"


def test_search_narrows_tables_and_marks_the_flame_graph(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    page.keyboard.press("/")
    page.keyboard.type("late")
    page.wait_for_selector("#flame .box.found")
    assert sources(page) == ["return lib.fast(items)  # hot later"]
    assert page.locator("#flame .box.found").all_inner_texts() == ["late", "deflate"]
    assert "42.8 %" in page.locator("#flame-found").inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector("#flame .box.found", state="detached")
    assert len(sources(page)) > 2


def test_a_line_opens_with_its_source_and_exact_figures(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    row = page.locator("#lines tr.row").first
    assert row.get_attribute("aria-expanded") == "false"
    row.focus()
    page.keyboard.press("Enter")
    assert page.locator("#lines tr.row").first.get_attribute("aria-expanded") == "true"
    detail = page.locator("#lines tr.detail")
    assert "def early(items):" in detail.inner_text()
    assert detail.locator("tr.here").inner_text().split()[:2] == ["57.1", "5"]
    assert "4.00 s" in detail.inner_text()
    assert re.search(r"57\.1 % \(5\d\.\d to 6\d\.\d %\)", detail.inner_text())
    page.click("text=Whole file")
    assert "import lib" in page.locator("#lines tr.detail").inner_text()
    page.locator("#lines tr.row").first.focus()
    page.keyboard.press("ArrowDown")
    assert "lib.fast" in page.evaluate("document.activeElement.innerText")


def test_a_line_shows_the_native_functions_it_called(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"], f"#{MAIN}:8")
    natives = page.locator("#lines tr.detail table.natives")
    assert natives.locator("tr").all_inner_texts() == ["deflate libz\t3.00 s"]
    page.evaluate(f"location.hash = '#{MAIN}:5'")
    page.wait_for_selector("#lines tr.detail tr.here td.n:text('5')")
    assert page.locator("#lines tr.detail").count() == 2
    assert page.locator("#lines table.natives").count() == 1  # line 5 is all Python


def test_a_link_opens_its_line_and_its_window(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"], f"#{MAIN}:8@6-9")
    assert page.locator("#lines tr.detail").count() == 1
    assert page.locator("#lines tr.detail tr.here td.n").inner_text() == "8"
    assert page.locator(".handle[data-end='from']").get_attribute("aria-valuetext") == "6.00 s"
    assert page.locator("#lines tr.open").is_visible()
    link = page.locator("#lines tr.detail a.quiet").get_attribute("href")
    assert link == f"#{MAIN}:8@6-9"
    page.evaluate(f"location.hash = '#{MAIN}:14'")
    page.wait_for_timeout(100)  # line 14 has nothing in this window: it is said, and nothing breaks
    page.click("#reset")
    page.evaluate(f"location.hash = '#{MAIN}:5'")
    page.wait_for_selector("#lines tr.detail tr.here td.n:text('5')")


def test_the_flame_graph_zooms_turns_over_and_changes_its_measure(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    names = page.locator("#flame .box").all_inner_texts()
    assert [name for name in names if name][:3] == ["<module> main.py", "early", "late"]
    page.locator("#flame .box", has_text=re.compile("^late$")).click()
    assert page.locator("#flame .box").all_inner_texts() == ["<module> main.py", "late", "fast", "deflate", "kernel"]
    assert page.locator("#flame .crumb").inner_text().startswith("3.00 s CPU in late (42.8 %)")
    page.keyboard.press("ArrowDown")
    assert "fast" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert page.locator("#flame .box").count() == len(names)
    page.check("#flame input[name='fold']")
    assert page.locator("#flame .box", has_text="fast").count() == 0
    page.check("#flame input[name='inverted']")
    assert page.locator("#flame .box").first.inner_text() == "early"
    page.click("#flame button[data-value='main_wait']")
    assert page.locator("#flame .crumb").inner_text() == "2.00 s waiting, main thread"
    page.click("#flame button[data-value='allocated']")
    assert page.locator("#flame .crumb").inner_text() == "100 MB allocated"
    page.click("#flame button[data-value='copied']")
    assert page.locator("#flame .crumb").inner_text() == "10 MB copied"


def test_the_flame_graph_tells_python_native_code_and_the_kernel_apart(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    colours = {
        name: page.locator("#flame .box", has_text=re.compile(f"^{name}$")).first.evaluate(
            "box => getComputedStyle(box).backgroundColor"
        )
        for name in ("late", "deflate", "kernel")
    }
    assert len(set(colours.values())) == 3
    whole = page.locator("#flame .crumb").inner_text()
    page.locator("#flame .box.native").first.hover()
    assert "libz" in page.locator("#tip").inner_text()
    page.check("#flame input[name='python']")
    assert page.locator("#flame .box.native, #flame .box.kernel").count() == 0
    assert page.locator("#flame .crumb").inner_text() == whole
    page.check("#flame input[name='inverted']")
    assert page.locator("#flame .box").first.inner_text() == "early"
    page.uncheck("#flame input[name='python']")
    page.locator("#flame .box.kernel").first.click()
    assert page.locator("#flame .crumb").inner_text().startswith("1.00 s CPU in kernel")


def test_hovering_shows_exact_figures_with_their_interval(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    page.locator("#lines td.bars > div").first.hover()
    text = page.locator("#tip").inner_text()
    assert "4.00 s" in text
    assert re.search(r"57\.1 % \(5\d\.\d to 6\d\.\d %\)", text)
    page.locator("#flame .box", has_text=re.compile("^late$")).hover()
    assert "3.00 s" in page.locator("#tip").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(pages: Pages, visit: Visit, scheme: str) -> None:
    page = visit(pages["story"], color_scheme=scheme)
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"
    brightness = f"{colour}.reduce((sum, part) => sum + Number(part), 0)"
    assert (page.evaluate(brightness) > 380) == (scheme == "light")
    other = "dark" if scheme == "light" else "light"
    page.click(f"#theme button:text('{other}')")
    assert (page.evaluate(brightness) > 380) == (other == "light")


def test_a_leak_is_shown_with_its_call_path(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    row = page.locator("#memory table[aria-label='Leaks'] tr.row")
    assert row.count() == 1
    assert "main.py:11" in row.inner_text()
    leaking = page.locator("#lines tr.row:has(.badge) td.grow .code").last
    assert leaking.inner_text().endswith("# is never emptied")
    assert page.locator("#lines .badge").count() == 1
    row.click()
    assert "cache" in page.locator("#memory .callpath").inner_text()


def test_a_suggestion_stands_in_its_section_and_where_its_line_is_opened(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    (article,) = page.locator("#suggestions article").all()
    assert "cache keeps what it allocates" in article.inner_text()
    assert "/s not given back" in article.inner_text()
    assert "leak: tachograph help suggestions" in article.inner_text()
    article.locator("a").click()
    opened = page.locator("#lines .detailbox .suggestion")
    # However long its text is, the source beside it keeps the most room.
    source, side = (page.locator("#lines .detailbox > div").nth(place).bounding_box() for place in (0, 1))
    assert source["width"] > side["width"]
    opened.wait_for()
    assert "cache keeps what it allocates" in opened.inner_text()
    page = visit(pages["evil"])
    assert page.locator("#suggestions article").count() == 1
    assert page.evaluate("window.stolen") is None


def test_threads_are_listed(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    text = page.locator("#threads").inner_text()
    assert "MainThread" in text
    assert "worker" in text
    assert page.locator("#threads svg.strip").count() == 2


def test_spans_are_listed_and_follow_the_window(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])

    def rows() -> list[list[str]]:
        found = page.locator("#spans tbody tr").all()
        return [[cell.inner_text() for cell in row.locator("td").all()] for row in found]

    heads = [head.inner_text() for head in page.locator("#spans thead th").all()]
    quantiles, each = ["p50", "p95", "p99"], ["CPU each", "allocated each", "kept each"]
    assert heads == ["CPU", "waiting", *quantiles, *each, "lasted", "allocated", "kept", "copied", "times", "span"]
    half = ["5.00 s"] * 3
    assert rows()[:3] == [
        ["4.00 s", "1.00 s", *half, "4.00 s", "50 MB", "50 MB", "5.00 s", "50 MB", "50 MB", "", "1", "first half"],
        [
            "3.00 s",
            "1.00 s",
            *half,
            "3.00 s",
            "50 MB",
            "50 MB",
            "5.00 s",
            "50 MB",
            "50 MB",
            "10 MB",
            "1",
            "second half",
        ],
        ["1.00 s", "", *["1.00 s"] * 4, "10 MB", "10 MB", "1.00 s", "10 MB", "10 MB", "10 MB", "1", "inner"],
    ]
    assert rows()[3][-1] == "<no span>"
    page.click("#spans th[data-id='wait'] button")
    assert page.locator("#spans th[data-id='wait']").get_attribute("aria-sort") == "descending"
    drag(page, 0.05, 0.35)
    assert [row[-1] for row in rows()] == ["first half", "<no span>"]
    page.click("#reset")
    assert len(rows()) == 4
    assert page.locator("#nav a", has_text="Spans").count() == 1


def test_a_page_of_some_spans_only(tmp_path: Path, visit: Visit) -> None:
    page = visit(write_page(story.build(tmp_path / "story.tacho"), tmp_path / "inner.html", span="inner"))
    assert sources(page)[0] == "return lib.fast(items)  # hot later"
    assert not any(text.startswith("yield item") for text in sources(page))
    assert page.locator("#spans tbody tr td").first.inner_text() == "1.00 s"
    assert "only span inner" in page.locator("header .facts").inner_text()
    # What is not known of the rest is left blank, and is not none.
    rest = page.locator("#spans tbody tr", has_text="<no span>").locator("td").all_inner_texts()
    assert rest == [*[""] * 13, "<no span>"]


def test_a_page_without_spans_has_no_table_of_them(visit: Visit, tmp_path: Path) -> None:
    recording = Path(__file__).parents[2] / "format-spec" / "vectors" / "whole.tacho"
    page = visit(write_page(recording, tmp_path / "whole.html"))
    assert not page.locator("#spans").is_visible()


def test_hostile_names_and_sources_stay_text(pages: Pages, visit: Visit) -> None:
    page = visit(pages["evil"])
    page.locator("#lines tr.row").first.click()
    page.click("text=Whole file")
    page.locator("#flame .box").nth(1).hover()
    assert page.evaluate("window.stolen") is None
    assert page.locator("main img").count() == 0
    assert page.evaluate("document.scripts.length") == 2
    text = page.locator("body").inner_text()
    assert "</script><script>window.stolen = 1</script>" in text
    assert "\u202e" not in page.evaluate("document.documentElement.textContent")
    assert "\\u202e" in text


def test_it_can_be_printed(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"], color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#search").is_visible()
    assert page.locator("#lines table").is_visible()
    assert len(page.pdf()) > 10_000


def test_it_is_usable_without_a_mouse_and_by_screen_readers(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    assert page.locator("html").get_attribute("lang") == "en"
    unnamed = page.evaluate(
        """[...document.querySelectorAll('button, a, input, [role=slider], table, section')].filter((element) => {
            const labelled = element.getAttribute('aria-labelledby');
            const text = element.textContent.trim() || element.getAttribute('aria-label') || element.title
                || (element.labels && element.labels.length)
                || (labelled && document.getElementById(labelled));
            return !text && element.getClientRects().length;
        }).map((element) => element.outerHTML.slice(0, 120))"""
    )
    assert unnamed == []
    assert page.locator("th:not([scope])").count() == 0
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('section, header, .bar')?.id || ''"))
    assert {"lines", "timeline", "bar"} <= seen
    page.click("#lines th[data-id='wait'] button")
    assert page.locator("#said").inner_text() == "Sorted by waiting, largest first"


def test_a_section_that_has_no_function_of_its_own_is_a_table(
    tmp_path: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (
        Column("held_s", "s", "held", main=True),
        Column("times", "count", "times"),
        Column("lock", "text", "lock"),
    )
    rows: list[Row] = [{"held_s": 0.25, "times": 3, "lock": "queue"}, {"held_s": 1.5, "times": None, "lock": "log"}]
    section = Section("Locks", "that were held", columns=columns, rows=lambda _: rows)
    monkeypatch.setitem(cast("dict[str, Section]", SECTIONS), "locks", section)
    page = visit(write_page(story.build(tmp_path / "story.tacho"), tmp_path / "locks.html"))
    assert page.locator("#locks h2").inner_text() == "Locks"
    assert page.locator("#locks .hint").inner_text() == "That were held."
    assert page.locator("#locks thead th").all_inner_texts() == ["held", "times", "lock"]
    shown = [row.split("\t") for row in page.locator("#locks tbody tr").all_inner_texts()]
    assert shown == [["1.50 s", "", "log"], ["0.25 s", "3", "queue"]]


def test_a_recording_of_memory_alone_has_a_page(tmp_path: Path, visit: Visit) -> None:
    """It has neither CPU time nor waiting that lines could be sorted by."""
    page = visit(write_page(VECTORS / "memory-killed.tacho", tmp_path / "memory.html"))
    assert page.locator("#lines th[aria-sort='descending']").get_attribute("data-id") == "allocated"
    assert page.locator("#lines tr.row").count() > 1


def test_a_narrow_window_does_not_scroll_sideways(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"], viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("tried", FORMATS, ids=lambda tried: tried.name)
def test_a_value_reads_as_the_table_of_formats_has_it(empty_page: Any, tried: Format) -> None:
    told = empty_page.evaluate(
        f"(cases) => {{ {asset('format.js')} return cases.map((values) => {tried.script}(...values)); }}",
        [list(arguments) for arguments in tried.cases],
    )
    assert dict(zip(tried.cases, told, strict=True)) == {**tried.cases, **tried.on_pages}


def test_intervals_are_those_of_the_terminal(empty_page: Any) -> None:
    shares = [0.0, 0.0004, 0.0005, 0.01249, 0.5, 0.9994, 0.9995, 1.0]
    told = empty_page.evaluate(
        f"(shares) => {{ {asset('format.js')} return shares.map((share) => wilson(share, 250)); }}", shares
    )
    low, high = wilson(shares, 250)  # type: ignore[arg-type]
    assert told == [pytest.approx(ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]


def test_the_address_has_what_is_shown(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"])
    drag(page, 0.5, 1.0)
    page.click("#lines th[data-id='wait'] button")
    page.fill("#search", "lib")
    page.wait_for_url(re.compile("search=lib"))
    page.locator("#view").select_option(label="all code, libraries too")
    shown, address = sources(page), page.evaluate("location.hash")
    assert re.fullmatch(r"#@[\d.]+-[\d.]+&view=all%20code%2C%20libraries%20too&search=lib&sort=wait", address)
    other = visit(pages["story"], at=address)
    assert sources(other) == shown
    assert other.evaluate("location.hash") == address
    assert other.locator("#search").input_value() == "lib"
    assert other.locator("#lines th[data-id='wait']").get_attribute("aria-sort") == "descending"
    page.fill("#search", "")
    page.locator("#view").select_option(label="everything")
    page.click("#lines th[data-id='cpu'] button")
    page.keyboard.press("Home")
    page.wait_for_url(re.compile("^(?!.*search=)"))
    assert "view" not in page.evaluate("location.hash")


def test_an_address_of_an_older_page_does_no_harm(pages: Pages, visit: Visit) -> None:
    page = visit(pages["story"], at="#lines&view=nothing&sort=nothing&search=%&other=1")
    assert len(sources(page)) > 2


def test_tables_are_saved_as_csv(pages: Pages, visit: Visit) -> None:
    page = visit(pages["evil"])
    with page.expect_download() as started:
        page.click("#lines .save button")
    assert started.value.suggested_filename.endswith("-lines.csv")
    rows = list(csv.DictReader(io.StringIO(Path(started.value.path()).read_text("utf-8"), newline="")))
    assert [*rows[0]][:6] == ["cpu_s", "cpu_share", "cpu_share_low", "cpu_share_high", "total_cpu_s", "wait_s"]
    assert float(rows[0]["cpu_s"]) == pytest.approx(4.0)
    assert rows[0]["line"] == "5"
    assert rows[0]["source"].strip().startswith("yield item")
    assert not [value for row in rows for value in row.values() if value and value[0] in "=+@\t"]


def test_the_flame_graph_is_saved_as_svg(pages: Pages, visit: Visit) -> None:
    page = visit(pages["evil"])
    with page.expect_download() as started:
        page.click("#flame .flamebar button:text('Save as SVG')")
    assert started.value.suggested_filename.endswith("-flame.svg")
    root = ET.parse(started.value.path()).getroot()
    names = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(names) == 1 + page.locator("#flame .box").count()
    assert "CPU" in str(names[0])
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


@pytest.mark.parametrize("sort", ["wait", "allocated"])
def test_what_a_table_is_sorted_by_stays_on_a_narrow_screen(pages: Pages, visit: Visit, sort: str) -> None:
    page = visit(pages["story"], viewport={"width": 420, "height": 900}, at=f"#&sort={sort}")
    head = page.locator(f"#lines th[data-id='{sort}']")
    assert head.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
