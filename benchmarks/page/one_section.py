"""Puts one section into docs/benchmarks.md that is there already, without the results of all the others."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import BenchmarkError
from page.results import MEASURED
from page.sections import Section
from page.write import DATA, TABLE, copy_data, first_blocks, without_paths


def put_section(section: Section, results: Path, docs: Path) -> str:
    """Writes a section that was measured today, in place of an earlier one or at the end; a line that says so.

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
    if first_blocks(whole) != whole:
        (data / TABLE).write_text(f"{whole}\n", encoding="utf-8")
    (data / MEASURED).write_text(f"{datetime.now(UTC).date().isoformat()}\n", encoding="utf-8")
    figures = sorted(results.glob("*.png"))
    for figure in figures:
        shutil.copy(figure, docs / "benchmarks" / figure.name)
    text = section_text(section, whole, [figure.name for figure in figures])
    page.write_text(with_section(page.read_text(encoding="utf-8"), section.title, text), encoding="utf-8")
    return f"{page.name}: {section.title}"


def section_text(section: Section, table: str, figures: list[str]) -> str:
    """The section, with its figures and its table."""
    shown = [line for name in figures for line in (f"![{section.title}](benchmarks/{name})", "")]
    head = [f"## {section.title}", "", f"*{section.source}.*", "", section.text, ""]
    more = [f"[In detail](benchmarks/data/{section.benchmark}/{TABLE}).", ""] if first_blocks(table) != table else []
    return "\n".join([*head, *shown, "```text", first_blocks(table), "```", "", *more])


def with_section(page: str, title: str, text: str) -> str:
    """The page with this text for the section of that title; it is the last one if it is new."""
    begin = page.find(f"## {title}\n")
    if begin < 0:
        return page.rstrip("\n") + "\n\n" + text
    end = page.find("\n## ", begin)
    return page[:begin] + text + (page[end:] if end >= 0 else "")
