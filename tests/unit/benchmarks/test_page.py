"""The page of results, made of results made by hand."""

import json
from pathlib import Path

import pytest

from harness.errors import BenchmarkError
from page.contests import Contest, contests
from page.results import Results
from page.write import SHOWN_LINES, TABLE, first_blocks, without_paths, write_page


def answer(key: str, profiler: str, said: object) -> str:
    return json.dumps({"key": key, "profiler": profiler, "said": said, "outcome": "ended", "report": None}) + "\n"


def results(folder: Path, ours: int) -> Path:
    """An array of 512 MB, of which `ours` bytes are seen by tachograph and all by memray."""
    size = 512 << 20
    made = folder / "memory_accuracy"
    made.mkdir(parents=True)
    lines = [answer(f"empty {who}", who, 1000) for who in ("tachograph", "memray")]
    lines += [answer("100 tachograph", "tachograph", 1000 + ours), answer("100 memray", "memray", 1000 + size)]
    (made / "answers.jsonl").write_text("".join(lines), "utf-8")
    (made / "table.txt").write_text(
        "  the table of /home/someone/project/x.py\nrows: results/here\n\nIn detail:\n\nmuch\n", "utf-8"
    )
    return folder


def test_who_is_better_is_said_first(tmp_path: Path) -> None:
    write_page(results(tmp_path / "results", 256 << 20), tmp_path / "docs")
    text = (tmp_path / "docs" / "benchmarks.md").read_text("utf-8")
    assert "**Where others are better** (1 of 1 figures): worst error of an array's size: memray 0.000 %" in text
    assert text.index("Where others") < text.index("Measured on")
    assert "It did not run to its end" in text
    assert "\n  the table of x.py" in text
    assert "much" not in text
    assert "(benchmarks/data/memory_accuracy/table.txt)" in text
    assert "results/here" not in text
    assert (tmp_path / "docs" / "benchmarks" / "memory_accuracy.png").stat().st_size > 1000
    data = tmp_path / "docs" / "benchmarks" / "data" / "memory_accuracy"
    assert sorted(file.name for file in data.iterdir()) == ["answers.jsonl", "table.txt"]


def test_what_follows_from_other_data_is_left_out(tmp_path: Path) -> None:
    made = results(tmp_path / "results", 1) / "memory_accuracy"
    (made / "table.txt").write_text("all of it is in the page\n", "utf-8")
    (made / "rows.csv").write_text("round\n", "utf-8")
    for name in ("summary.json", "setup.json"):
        (made / name).write_text("{}\n", "utf-8")
    write_page(tmp_path / "results", tmp_path / "docs")
    data = tmp_path / "docs" / "benchmarks" / "data" / "memory_accuracy"
    assert sorted(file.name for file in data.iterdir()) == ["answers.jsonl", "rows.csv", "setup.json"]


def test_none_is_better_where_none_is(tmp_path: Path) -> None:
    found = results(tmp_path / "results", 512 << 20)
    (found / "memory_accuracy" / "done").write_text("1 s\n", "utf-8")
    write_page(found, tmp_path / "docs")
    text = (tmp_path / "docs" / "benchmarks.md").read_text("utf-8")
    assert "tachograph is the best, or within the noise of it, in all 1 figures" in text
    assert "did not run" not in text


def test_each_section_says_when_it_was_measured(tmp_path: Path) -> None:
    found = results(tmp_path / "results", 1)
    page = tmp_path / "docs" / "benchmarks.md"
    write_page(found, tmp_path / "docs")
    assert "Measured on a day that is not known" in page.read_text("utf-8")
    (found / "memory_accuracy" / "measured.txt").write_text("2026-11-22\n", "utf-8")
    write_page(found, tmp_path / "docs")
    assert "Measured on 2026-11-22: " in page.read_text("utf-8")
    assert "(Measured on 2026-11-22.)" in page.read_text("utf-8")
    (found / "live_bytes").mkdir(exist_ok=True)
    (found / "live_bytes" / "table.txt").write_text("more\n", "utf-8")
    (found / "live_bytes" / "measured.txt").write_text("2026-11-23\n", "utf-8")
    write_page(found, tmp_path / "docs")
    assert "Measured from 2026-11-22 to 2026-11-23 (each section says when)" in page.read_text("utf-8")
    kept = tmp_path / "docs" / "benchmarks" / "data" / "memory_accuracy" / "measured.txt"
    assert kept.read_text("utf-8") == "2026-11-22\n"


def test_the_rest_of_a_long_table_is_beside_the_page(tmp_path: Path) -> None:
    summary, long, short = "summary\n1", "program\n" * SHOWN_LINES + "last", "programs\n2"
    assert first_blocks(long) == long
    assert first_blocks(f"{summary}\n\n{short}") == f"{summary}\n\n{short}"
    assert first_blocks(f"{summary}\n\n{long}\n\n{short}") == summary
    found = results(tmp_path / "results", 1)
    (found / "memory_accuracy" / TABLE).write_text(f"{summary}\n\n{long}\n", "utf-8")
    write_page(found, tmp_path / "docs")
    text = (tmp_path / "docs" / "benchmarks.md").read_text("utf-8")
    assert "summary\n1\n```" in text
    assert "last" not in text
    place = "benchmarks/data/memory_accuracy/table.txt"
    assert f"[In detail]({place})" in text
    assert (tmp_path / "docs" / place).read_text("utf-8") == f"{summary}\n\n{long}\n"


def test_logs_of_other_benchmarks_stay(tmp_path: Path) -> None:
    found, folder = results(tmp_path / "results", 1), tmp_path / "docs" / "benchmarks"
    (folder / "data" / "gone").mkdir(parents=True)
    for name in ("other.txt", "old.png"):
        (folder / name).write_text("", "utf-8")
    write_page(found, tmp_path / "docs")
    assert (folder / "other.txt").exists()
    assert not (folder / "old.png").exists()
    assert not (folder / "data" / "gone").exists()


def test_without_results_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="no results"):
        write_page(tmp_path, tmp_path / "docs")
    assert contests(Results(tmp_path)) == []


def test_differences_within_the_noise_do_not_count() -> None:
    contest = Contest("x", {"full": 1.05, "a": 1.04, "b": 1.01}, "{:.2f}", resolution=0.02)
    assert contest.better() == {"b": 1.01}
    assert contest.others() == 2
    assert Contest("x", {"a": 1.0}, "{:.2f}").better() == {}


def test_what_failed_everywhere_takes_no_part(tmp_path: Path) -> None:
    """Its empty recordings are not the smallest."""
    made = tmp_path / "overhead"
    made.mkdir()
    ratios = {"median": 1.0, "median_of_fastest": 1.0, "worst": 1.0, "worst_of_fastest": 1.0}
    arms = {"full": {"in_program": ratios}, "memray": {"in_program": ratios}, "scalene": {}}
    sizes = {arm: {"sympy": {"above_bare": 1e6, "recording": 0 if arm == "scalene" else 1024}} for arm in arms}
    summary = {"ratios": arms, "over_programs": arms, "failures": {"scalene": {"sympy": 1}}, "sizes": sizes}
    (made / "summary.json").write_text(json.dumps(summary), "utf-8")
    found = {contest.name: set(contest.values) for contest in contests(Results(tmp_path))}
    assert found["size on disk, memory profilers"] == {"full", "memray"}
    assert found["memory added to the program, memory profilers"] == {"full", "memray"}


def test_paths_of_the_machine_stay_at_home() -> None:
    assert without_paths("status 1: /home/me/x/y.py failed") == "status 1: y.py failed"
    assert without_paths("5.0 KiB/s and a/b") == "5.0 KiB/s and a/b"
