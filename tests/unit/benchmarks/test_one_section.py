"""One section of the page of benchmarks, put in without the results of the others."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from harness.errors import BenchmarkError
from page.one_section import put_section, with_section
from page.results import MEASURED
from page.sections import LEARNED_CALLS, REPEATED_WORK, SECTIONS
from page.write import SHOWN_LINES

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
