"""The page as a file: what is in it, how large it is, what it lets run."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from browser import story
from tachograph.analyzer import Question, Recording
from tachograph.analyzer.fleet import fleet_page
from tachograph.analyzer.render.html import diff_page, index_page
from tachograph.analyzer.render.html.report_page import FOLDER, SCRIPTS, STYLES, report
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, START, Builder
from unit.report import block

GOLDEN = Path(__file__).parents[3] / "format-spec" / "vectors" / "whole.tacho"


def page_of(path: Path, **question: object) -> str:
    with Recording.open(path) as recording:
        return report(build_report_data(recording, Question(**question)))  # type: ignore[arg-type]


class Elements(HTMLParser):
    """All start tags of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_from_the_tables_of_a_golden_recording_to_the_page() -> None:
    """By hand: the CPU time of every function, and what every thread waited, from the Parquet files to the page."""
    codes = pq.read_table(GOLDEN / "codes.parquet").to_pylist()
    stacks = pq.read_table(GOLDEN / "stacks.parquet").to_pylist()
    functions: dict[str, int] = {}
    for row in pq.read_table(GOLDEN / "cpu.parquet").to_pylist():
        code = None if row["stack"] is None else stacks[row["stack"]]["code"]
        if code is not None:
            name = codes[code]["qualname"]
            functions[name] = functions.get(name, 0) + row["cpu_ns"]
    waits: dict[int, float] = {}
    for row in pq.read_table(GOLDEN / "waits.parquet").to_pylist():
        if row["target"] != 7:  # for a processor
            waits[row["thread"]] = waits.get(row["thread"], 0) + row["off_cpu_ns"]
    document, data = block.read_block(page_of(GOLDEN, scope="all"))

    part = document["functions"]
    names = [document["names"][number] for number in part["columns"]["function"]]
    shown = dict.fromkeys(names, 0.0)
    for measure in ("python", "native", "kernel", "unknown"):
        if measure in part["own"]:
            for name, row in zip(names, block.grid(part["own"][measure], data), strict=True):
                shown[name] += sum(row)
    assert functions
    for name, ns in functions.items():
        assert shown[name] == pytest.approx(ns, abs=4_000), name

    threads = document["threads"]
    if waits:
        rows = block.grid(threads["own"]["wait"], data)
        assert sum(map(sum, rows)) == pytest.approx(sum(waits.values()), abs=4_000)


def test_the_policy_allows_our_script_and_our_style_and_nothing_else(tmp_path: Path) -> None:
    page = page_of(story.build(tmp_path / "story.tacho", evil=True))
    parser = Elements()
    parser.feed(page)
    (policy,) = [
        attributes["content"] for tag, attributes in parser.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]  # fmt: skip
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for element in ("style", "script"):
        text = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        assert len(text) == 1
        digest = b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert [attributes for tag, attributes in parser.tags if tag == "script"] == [
        {"id": "data", "type": "application/octet-stream"}, {}
    ]  # fmt: skip
    assert not [
        tag for tag, attributes in parser.tags if tag == "img" or "src" in attributes or "onerror" in attributes
    ]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_a_typical_page_is_small(tmp_path: Path) -> None:
    assert len(page_of(story.build(tmp_path / "story.tacho"))) < 150_000


@pytest.mark.broad
def test_a_page_that_would_be_too_large_is_reduced_and_says_so(
    builder: Builder, picture: Callable[..., ReportData]
) -> None:
    text = "\n".join(f"line {number} {hash((7, number))}" for number in range(3_000))
    for number in range(40):
        f = builder.code(builder.file(f"/srv/m{number}.py", text), f"f{number}")
        for line in range(90):
            at = START + (number * 97 + line * 31) % 9_900 * MS
            builder.cpu(builder.stack((f, line)), time_ns=at)
    drawn = picture()
    full = report(drawn)
    limit = len(full) // 2
    small = report(drawn, limit)
    assert len(small.encode()) <= limit
    document, _ = block.read_block(small)
    assert document["bins"]["count"] < 120
    assert any("to keep the page small" in note for note in document["left_out"])
    assert "to keep the page small" in small  # and in the head
    with pytest.raises(FormatError, match="--from"):
        report(drawn, 1_000)


def test_unknown_is_not_nothing(builder: Builder, picture: Callable[..., ReportData]) -> None:
    builder.parameters["waits"] = False
    f = builder.code(builder.file("/srv/a.py"))
    builder.cpu(builder.stack((f, 1)))
    page = report(picture())
    document, _ = block.read_block(page)
    assert "wait" not in document["overall"]
    assert document["memory"] is None
    assert "waiting was not recorded" in page
    assert "<dt>main thread waits</dt>" not in page


def test_every_asset_is_used() -> None:
    pages = (diff_page, fleet_page, index_page)
    used = {*SCRIPTS, *STYLES, *(name for page in pages for name in (*page.SCRIPTS, *page.STYLES))}
    assert {path.name for path in (FOLDER / "assets").iterdir()} == used
    for name in used:
        text = (FOLDER / "assets" / name).read_text("utf-8")
        assert text.count("\n") < 400, name
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            *(() if name == "index.js" else ("fetch(",)),  # it asks the server that it comes from
            "@import",
            "url(",
        ):
            assert forbidden not in text, (name, forbidden)


@pytest.mark.parametrize("scripts", [SCRIPTS, diff_page.SCRIPTS, index_page.SCRIPTS])
def test_scripts_are_put_into_one_and_share_no_name(scripts: tuple[str, ...]) -> None:
    """The later of two functions with one name would take the place of the earlier, without a word."""
    text = "\n".join((FOLDER / "assets" / name).read_text("utf-8") for name in scripts)
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", text, re.MULTILINE)
    assert len(names) > 20
    assert [name for name, count in Counter(names).items() if count > 1] == []
