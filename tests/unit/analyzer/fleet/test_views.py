"""The call tree of a fleet, its spans, and the way from a row to the recordings that have it."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from click.testing import CliRunner

import tachograph.analyzer
import tachograph.analyzer.fleet as fleets
from tachograph.analyzer.commands.fleet import fleet as command
from tachograph.analyzer.fleet.questions.flame import collapsed
from tachograph.analyzer.statistics.ratios import pooled
from tachograph.format import FormatError
from unit.analyzer.fleet.fleets import SOURCE, one
from unit.analyzer.recordings import MS, START, Builder

pytestmark = pytest.mark.broad

REQUEST = "def request():\n    parse()\n    query()\n\n\nrequest()\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six recordings of two versions; recording number N has N * 10 ms more on line 3."""
    folder = tmp_path_factory.mktemp("fleet") / "shop"
    for number in range(6):
        labels = {"version": "a" if number < 3 else "b"}
        one(folder, number, {2: 100, 3: 100 + 10 * number}, labels=labels, waits={4: 50})
    fleets.open(str(folder))
    return folder


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six recordings with 10 to 15 requests each of 50 ms: 10 ms of CPU on line 2, 20 ms on line 3, 20 ms waiting."""
    folder = tmp_path_factory.mktemp("fleet") / "requests"
    folder.mkdir()
    for number in range(6):
        builder = Builder(
            folder / f"run-{number}.tacho", uuid=f"u{number}", host=f"web-{number}", end_ns=START + 2_000 * MS
        )
        file = builder.file("/srv/shop.py", REQUEST)
        module, request = builder.code(file, "<module>", 1), builder.code(file, "request", 1)
        lines = [builder.stack((module, 5), (request, line)) for line in (1, 2)]
        for each in range(10 + number):
            at = each * 100
            for stack, offset in ((lines[0], 5), (lines[1], 15), (lines[1], 25)):
                builder.cpu(stack, 10, time_ns=START + (at + offset) * MS)
            builder.wait(lines[1], at + 28, at + 48)
            builder.span("request", at, at + 50)
        builder.write()
    return folder


def test_the_call_tree_is_the_sum_of_all(shop: Path) -> None:
    tree = fleets.open(str(shop)).flame()
    assert tree["name"].tolist() == ["<module>", "handle"]
    assert tree["parent"].tolist() == [-1, 0]
    assert tree["cpu_s"].tolist() == pytest.approx([0, 1.35])
    assert tree["total_cpu_s"].tolist() == pytest.approx([1.35, 1.35])
    assert tree["total_wait_s"].tolist() == pytest.approx([0.3, 0.3])
    assert tree["recordings"].tolist() == [6, 6]
    assert collapsed(tree) == ["<module>;handle 1350\n"]
    assert collapsed(tree, "wait_s") == ["<module>;handle 300\n"]


def test_small_branches_are_one(tmp_path: Path) -> None:
    """Thirty functions below one, of 10 to 300 ms: what does not fit is in <other>, and nothing is lost."""
    builder = Builder(tmp_path / "a.tacho")
    file = builder.file("/srv/a.py", "x\n" * 40)
    module = builder.code(file, "<module>", 1)
    for number in range(30):
        code = builder.code(file, f"f{number:02}", number + 1)
        for _ in range(number + 1):
            builder.cpu(builder.stack((module, 0), (code, 0)), 10)
    builder.write()
    found = fleets.open(str(tmp_path))
    tree = found.flame(limit=11)
    assert tree["name"].tolist() == ["<module>", *[f"f{number:02}" for number in range(29, 19, -1)], "<other>"]
    other = tree.iloc[-1]
    assert (other["parent"], other["folded"], other["cpu_s"]) == (0, 20, pytest.approx(2.1))
    assert tree["cpu_s"].sum() == pytest.approx(4.65)
    assert len(found.flame()) == 31
    with pytest.raises(FormatError, match="at least one box"):
        found.flame(limit=0)


def test_which_recordings_have_a_line(shop: Path) -> None:
    found = fleets.open(str(shop))
    rows = found.find("shop.py:3", limit=2)
    assert rows["path"].tolist() == ["run-005.tacho", "run-004.tacho"]
    assert rows["amount"].tolist() == pytest.approx([0.15, 0.14])
    assert rows["value"].tolist() == pytest.approx([0.15 / 0.25, 0.14 / 0.24])
    assert rows["labels"].tolist() == [{"version": "b"}] * 2
    assert (rows.attrs["level"], rows.attrs["file"], rows.attrs["line"]) == ("lines", "shop.py", 3)
    assert found.find("handle", where="version=a").attrs["level"] == "functions"
    assert len(found.find("handle", where="version=a")) == 3
    assert found.find(limit=1)["path"].tolist() == ["run-005.tacho"]
    for place in ("nothing", "shop.py:77", "other.py:3"):
        with pytest.raises(FormatError, match="no recording has"):
            found.find(place)


def test_raw_tables_of_one_recording(shop: Path, tmp_path: Path) -> None:
    found = fleets.open(str(shop))
    (path,) = found.find("shop.py:3", limit=1)["path"]
    with found.recording(path) as recording:
        assert recording.lines().set_index("line").loc[3, "cpu_s"] == pytest.approx(0.15)
    (copy,) = found.fetch([path], tmp_path / "here")
    with tachograph.analyzer.open(copy) as recording:
        assert len(recording.frame("cpu")) == 25
    with pytest.raises(FormatError, match="is there already"):
        found.fetch([path], tmp_path / "here")
    with pytest.raises(FormatError, match="there is no recording x"):
        found.fetch(["x"], tmp_path)


def test_spans(requests: Path) -> None:
    (row,) = fleets.open(str(requests)).spans().itertuples()
    assert (row.name, row.count, row.recordings, row.of) == ("request", 75, 6, 6)
    assert (row.mean_s, row.cpu_s, row.wait_s) == pytest.approx((0.05, 0.03, 0.02))
    assert row.longest_s == pytest.approx(0.05)
    assert (row.p50_s, row.p95_s, row.p99_s) == pytest.approx((0.05, 0.05, 0.05), rel=0.02)
    assert row.low <= row.mean_s <= row.high


def test_how_long_spans_lasted_over_all_recordings(tmp_path: Path) -> None:
    for name, ms in (("a", range(1, 61)), ("b", range(61, 101))):
        builder = Builder(tmp_path / f"{name}.tacho")
        builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
        for number in ms:
            builder.span("request", 200 * number, 200 * number + number)
        builder.write()
    (row,) = fleets.open(str(tmp_path)).spans().itertuples()
    assert (row.p50_s, row.p95_s, row.p99_s) == pytest.approx((0.050, 0.095, 0.099), rel=0.03)
    text = CliRunner().invoke(command, ["spans", str(tmp_path), "--workers", "1"]).output
    assert "p50/p95/p99" in text


def test_what_a_span_allocated_is_of_the_recordings_that_know_it(tmp_path: Path) -> None:
    for name, sizes in (("a", (3000, 5000)), ("b", ())):
        builder = Builder(tmp_path / f"{name}.tacho")
        stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
        for number in range(2):
            builder.span("request", 100 * number, 100 * number + 50)
            builder.cpu(stack, time_ns=START + (100 * number + 20) * MS)
        if sizes:
            builder.memory("start", 0, 0)
        for number, size in enumerate(sizes):
            builder.block(stack, size, 100 * number + 20)
        builder.write()
    (row,) = fleets.open(str(tmp_path)).spans().itertuples()
    assert (row.count, row.recordings) == (4, 2)
    assert row.allocated_bytes == pytest.approx(4000)
    assert math.isnan(row.await_s)
    text = CliRunner().invoke(command, ["spans", str(tmp_path), "--workers", "1"]).output
    assert "allocated" in text
    assert "awaiting" not in text


def test_amounts_in_each_span(requests: Path) -> None:
    found = fleets.open(str(requests))
    rows = found.top(level="lines", per="request").set_index("line")["value"]
    assert rows.to_dict() == pytest.approx({2: 0.01, 3: 0.02})
    assert found.find("shop.py:3", per="request")["value"].tolist() == pytest.approx([0.02] * 6)
    with pytest.raises(FormatError, match="no recording has a span 'x'; there are: request"):
        found.top(per="x")


def test_recordings_of_one_host_are_one_unit(tmp_path: Path) -> None:
    """Thirty recordings of six hosts that differ from each other, and not within: there are six observations."""
    for number in range(30):
        one(tmp_path / "many", number, {2: 100, 3: 50 + 20 * (number % 6)}, host=f"web-{number % 6}")
    for number in range(6):
        one(tmp_path / "few", number, {2: 100, 3: 50 + 20 * number}, host=f"web-{number}")
    many = fleets.open(str(tmp_path / "many")).top(level="lines")
    few = fleets.open(str(tmp_path / "few")).top(level="lines")
    assert many.attrs["unit"] == "hosts"
    columns = ["value", "low", "high"]
    both = [each.sort_values("line")[columns].to_numpy() for each in (many, few)]
    assert both[0] == pytest.approx(both[1])
    only = fleets.open(str(tmp_path / "many")).top(level="lines", where="host=web-[0-3]")
    assert only.attrs["unit"] == "recordings"


def test_pooled() -> None:
    amounts, weights = pooled(np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([10.0, 20, 30]), np.array([1, 0, 1]))
    assert amounts.tolist() == [[2, 4], [5, 10]]
    assert weights.tolist() == [20, 40]


def test_the_commands(shop: Path, requests: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        told = CliRunner().invoke(command, [*arguments, "--workers", "1"])
        assert told.exit_code == 0, told.output
        return " ".join(told.output.split())

    assert "100 % 1.35 s handle" in run("flame", str(shop))
    assert run("flame", str(shop), "--collapsed", "-") == "<module>;handle 1350"
    assert json.loads(run("flame", str(shop), "--json", "-"))["nodes"][1]["name"] == "handle"
    assert "run-005.tacho" in run("find", str(shop), "shop.py:3", "--top", "1", "--fetch", str(tmp_path / "here"))
    assert (tmp_path / "here" / "run-005.tacho" / "manifest.json").is_file()
    assert json.loads(run("find", str(shop), "handle", "--json", "-"))["found"]["name"] == "handle"
    assert "75 in 6 of 6" in run("spans", str(requests))
    assert json.loads(run("spans", str(requests), "--json", "-"))["rows"][0]["count"] == 75
    assert "cpu in each request" in run("top", str(requests), "--per", "request")
    page = tmp_path / "fleet.html"
    assert "6 recordings on one page" in run("html", str(shop), str(page))
    assert page.stat().st_mode & 0o777 == 0o600
    written = json.loads(run("html", str(shop), str(page), "--where", "host=web-1", "--json", "-"))
    assert written["tachograph"] == {"document": "fleet-html", "version": 1}
    assert written["page"] == {"file": str(page), "bytes": page.stat().st_size, "recordings": 1, "pages": {}}
    refused = CliRunner().invoke(command, ["flame", str(shop), "--collapsed", "-", "--json", "-"])
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
    assert "choose one" in refused.output


def test_lines_that_moved_are_found_by_their_new_place(tmp_path: Path) -> None:
    for number in range(2):
        one(tmp_path, number, {3: 100})
        one(tmp_path / "new", number, {5: 300}, source=f"import sys\n# more\n{SOURCE}")
    rows = fleets.open(str(tmp_path)).find("shop.py:5")
    assert len(rows) == 4


def test_pages_of_recordings_beside_the_page_of_all(shop: Path, tmp_path: Path) -> None:
    """Those with the most of each line: of line 3 recording 5, then 4, and so on. What is gone has no page."""
    target = tmp_path / "all my.html"
    folder = shutil.copytree(shop, tmp_path / "shop")
    found = fleets.open(str(folder))
    links = found.html(target, pages=3).recordings
    assert set(links) == {"run-005.tacho", "run-004.tacho", "run-000.tacho"}
    text = (tmp_path / unquote(links["run-005.tacho"])).read_text()
    assert "run-005" in text or "web-5" in text
    assert target.with_name("all my-recordings").stat().st_mode & 0o777 == 0o700
    assert len(list(target.with_name("all my-recordings").iterdir())) == 3
    shutil.rmtree(folder / "run-005.tacho")
    assert set(found.html(target, pages=3).recordings) == {"run-004.tacho", "run-000.tacho"}
