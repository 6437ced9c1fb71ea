"""Puts one section into docs/benchmarks.md that is there already, without the results of all the others."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import BenchmarkError
from harness.report import DETAILS
from page.contests import contests
from page.figures import draw
from page.results import MEASURED, Results, printed
from page.sections import SECTIONS, Section
from page.standing_head import with_contests
from page.write import DATA, TABLE, copy_data, first_blocks, section_text, without_paths


def put_measured(benchmark: str, results: Path, docs: Path) -> str:
    """Writes the section of a benchmark of `bench.py`, its figure, and its figures in the page's head; a line of that.

    `results` is the folder with a folder for each benchmark.

    Errors:
        BenchmarkError: there are no results, or there is no page.
    """
    section = next(each for each in SECTIONS if each.benchmark == benchmark)
    found = Results(results)
    draw(benchmark, found, results / benchmark)
    line = put_section(section, results / benchmark, docs)
    page = docs / "benchmarks.md"
    of_this = [each for each in contests(found) if each.benchmark == benchmark]
    day = measured_on(results / benchmark)
    page.write_text(with_contests(page.read_text(encoding="utf-8"), of_this, day), encoding="utf-8")
    return line


def put_section(section: Section, results: Path, docs: Path) -> str:
    """Writes a section that was measured again, in place of an earlier one or at the end; a line that says so.

    Errors:
        BenchmarkError: there are no results, or there is no page.
    """
    table, page = results / "table.txt", docs / "benchmarks.md"
    if not table.exists() or not page.exists():
        raise BenchmarkError(f"there are no results in {results}, or no {page.name}")
    data = docs / "benchmarks" / "data" / section.benchmark
    shutil.rmtree(data, ignore_errors=True)
    copy_data(results, data, DATA)
    whole = without_paths(table.read_text(encoding="utf-8").rstrip())
    shown = printed(whole)
    details = DETAILS in whole.splitlines()
    if details or first_blocks(shown) != shown:
        (data / TABLE).write_text(f"{whole}\n", encoding="utf-8")
    day = measured_on(results)
    (data / MEASURED).write_text(f"{day}\n", encoding="utf-8")
    figures = sorted(results.glob("*.png"))
    for figure in figures:
        shutil.copy(figure, docs / "benchmarks" / figure.name)
    text = section_text(section, [figure.name for figure in figures], shown, details=details, day=day)
    page.write_text(with_section(page.read_text(encoding="utf-8"), section.title, text), encoding="utf-8")
    return f"{page.name}: {section.title}"


def measured_on(results: Path) -> str:
    """The day on which a benchmark was measured, as 2026-11-23: today, if it does not say."""
    file = results / MEASURED
    return file.read_text(encoding="utf-8").strip() if file.exists() else datetime.now(UTC).date().isoformat()


def with_section(page: str, title: str, text: str) -> str:
    """The page with this text for the section of that title; it is the last one if it is new."""
    begin = page.find(f"## {title}\n")
    if begin < 0:
        return page.rstrip("\n") + "\n\n" + text
    end = page.find("\n## ", begin)
    return page[:begin] + text + (page[end:] if end >= 0 else "")
