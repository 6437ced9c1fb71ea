"""One section of the page of benchmarks, put in without the results of the others."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from harness.errors import BenchmarkError
from page.contests import Contest
from page.one_section import put_measured, put_section, with_section
from page.results import MEASURED
from page.sections import LEARNED_CALLS, REPEATED_WORK, SECTIONS
from page.standing_head import with_contests
from page.write import SHOWN_LINES, write_page

PAGE = "# Benchmarks\n\n## First\n\none\n\n## Last\n\ntwo\n"


def results(folder: Path) -> Path:
    folder.mkdir()
    (folder / "table.txt").write_text("median 1.004\n", encoding="utf-8")
    (folder / "turns.jsonl").write_text('{"program": "/some/where/work.py"}\n', encoding="utf-8")
    (folder / "learned_calls.json").write_text("{}\n", encoding="utf-8")
    (folder / "learned_calls_time.png").write_bytes(b"\x89PNG")
    return folder


def test_a_section_takes_the_place_of_the_earlier_one() -> None:
    once = with_section(PAGE, "New", "## New\n\nthree\n")
    assert once == PAGE + "\n## New\n\nthree\n"
    assert with_section(once, "New", "## New\n\nfour\n") == PAGE + "\n## New\n\nfour\n"
    assert with_section(once, "First", "## First\n\n1\n") == once.replace("one", "1")


def test_figures_and_data_are_beside_the_page(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "benchmarks").mkdir(parents=True)
    (docs / "benchmarks.md").write_text(PAGE, encoding="utf-8")
    put_section(LEARNED_CALLS, results(tmp_path / "results"), docs)
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    assert text.startswith(PAGE)
    assert "median 1.004" in text
    assert "![Calls that are watched](benchmarks/learned_calls_time.png)" in text
    data = docs / "benchmarks" / "data" / "learned_calls"
    assert (docs / "benchmarks" / "learned_calls_time.png").exists()
    assert date.fromisoformat((data / MEASURED).read_text(encoding="utf-8").strip()) <= datetime.now(UTC).date()
    assert (data / "turns.jsonl").read_text(encoding="utf-8") == '{"program": "work.py"}\n'


def test_the_rest_of_a_long_table_is_beside_the_page(tmp_path: Path) -> None:
    docs, found, long = tmp_path / "docs", results(tmp_path / "results"), "program\n" * SHOWN_LINES + "last"
    (docs / "benchmarks").mkdir(parents=True)
    (docs / "benchmarks.md").write_text(PAGE, encoding="utf-8")
    (found / "table.txt").write_text(f"median 1.004\n\n{long}\n", encoding="utf-8")
    put_section(LEARNED_CALLS, found, docs)
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    assert "median 1.004\n```\n\n[In detail](benchmarks/data/learned_calls/table.txt).\n" in text
    assert "last" not in text
    assert "last" in (docs / "benchmarks" / "data" / "learned_calls" / "table.txt").read_text(encoding="utf-8")


def test_without_results_there_is_no_section(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="no results"):
        put_section(LEARNED_CALLS, tmp_path, tmp_path)


def test_the_whole_page_has_it_too() -> None:
    assert LEARNED_CALLS in SECTIONS
    assert REPEATED_WORK in SECTIONS


HEAD = """# Benchmarks

**Where others are better** (2 of 3 figures): time: fast 1.0 s (tachograph 2.0 s); size: small 3 MB (tachograph 4 MB).

Measured from 2026-11-23 to 2026-11-26 (each section says when): a machine.

| figure (less is better) | tachograph | best of the others | others compared |
|---|---|---|---|
| time | 2.0 s | fast: 1.0 s | 1 |
| leaks | 0 | memray: 1 | 1 |
| size | 4 MB | small: 3 MB | 2 |
| alone | 4 MB | none of the others tells | 0 |
"""


def test_the_head_has_the_figures_that_were_measured_again() -> None:
    now = with_contests(HEAD, [Contest("time", {"full": 0.5, "fast": 1.0}, "{:.1f} s")], "2026-11-29")
    assert "**Where others are better** (1 of 3 figures): size: small 3 MB (tachograph 4 MB)." in now
    assert "| time | 0.5 s | fast: 1.0 s | 1 |" in now
    assert "Measured from 2026-11-23 to 2026-11-29 (each" in now
    better = with_contests(now, [Contest("size", {"full": 2, "small": 3}, "{:.0f} MB")], "2026-11-29")
    assert "tachograph is the best, or within the noise of it, in all 3 figures that are compared." in better
    worse = with_contests(better, [Contest("leaks", {"full": 2, "memray": 1}, "{:.0f}")], "2026-11-29")
    assert "**Where others are better** (1 of 3 figures): leaks: memray 1 (tachograph 2)." in worse
    assert with_contests(HEAD, [Contest("new", {"full": 1.0}, "{}")], "2026-11-29") == HEAD


def test_a_benchmark_that_was_measured_again_changes_its_section_and_the_head(tmp_path: Path) -> None:
    def measured(folder: Path, seen: int) -> Path:
        made = folder / "memory_accuracy"
        made.mkdir(parents=True, exist_ok=True)
        said = {"empty tachograph": 0, "empty memray": 0, "100 tachograph": seen, "100 memray": 500 << 20}
        answers = [
            {"key": key, "profiler": key.split()[1], "said": value, "outcome": "ended", "report": None}
            for key, value in said.items()
        ]
        (made / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers), encoding="utf-8")
        (made / "table.txt").write_text(f"seen {seen}\nrows: results/here\n", encoding="utf-8")
        return folder

    found, docs = tmp_path / "results", tmp_path / "docs"
    write_page(measured(found, 256 << 20), docs)
    page = docs / "benchmarks.md"
    assert "**Where others are better** (1 of 1 figures)" in page.read_text(encoding="utf-8")
    put_measured("memory_accuracy", measured(found, 512 << 20), docs)
    text = page.read_text(encoding="utf-8")
    assert "in all 1 figures that are compared" in text
    assert f"seen {512 << 20}\n```" in text
    assert "results/here" not in text
    assert "![How large is an array?](benchmarks/memory_accuracy.png)" in text
