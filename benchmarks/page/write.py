"""Writes docs/benchmarks.md with its figures and data."""

import re
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness.errors import BenchmarkError
from page.contests import MINE, Contest, contests
from page.figures import draw_all
from page.machine import machine
from page.results import MEASURED, Results
from page.sections import SECTIONS, Section

DATA = ("rows.csv", "answers.jsonl", "turns.jsonl", "*.json", MEASURED)
"""What was measured. Summaries follow from rows; short tables are in the page alone."""
SUMMARY = "summary.json"
TABLE = "table.txt"
SHOWN_LINES = 22
"""Of a table that has several blocks: the page links to the rest."""
REBUILT = (
    "Made by `make bench`; this page is generated. Times are ratios taken within one interleaved run. What was",
    "measured is in [benchmarks/data](benchmarks/data): copied to `results/bench`, it is completed by `make bench`,",
    "which measures what is missing, computes the summaries and writes this page again.",
)
_PATHS = re.compile(r"(?<![\w.])(/[\w.+@~-]+)+/(?=[\w.+@-]+)")


def write_page(results: Path, docs: Path) -> str:
    """Makes the page of what is in `results`; a line that says what was made.

    Errors:
        BenchmarkError: there is nothing to show.
    """
    found = Results(results)
    done = [section for section in SECTIONS if found.table(section.benchmark)]
    if not done:
        raise BenchmarkError(f"there are no results in {results}: run the benchmarks first")
    folder = docs / "benchmarks"
    shutil.rmtree(folder / "data", ignore_errors=True)
    for figure in folder.glob("*.png"):
        figure.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    figures = draw_all(found, folder)
    for section in done:
        data, table = folder / "data" / section.benchmark, found.table(section.benchmark)
        copy_data(results / section.benchmark, data, DATA)
        if found.has_details(section.benchmark):
            copy_data(results / section.benchmark, data, (TABLE,))
        elif first_blocks(table) != table:
            (data / TABLE).write_text(without_paths(table) + "\n", encoding="utf-8")
    parts = [_head(found, contests(found))]
    parts += [_section(found, section, figures.get(section.benchmark)) for section in done]
    text = "\n".join(parts)
    (docs / "benchmarks.md").write_text(text, encoding="utf-8")
    return f"docs/benchmarks.md: {len(done)} of {len(SECTIONS)} benchmarks, {len(figures)} figures"


def copy_data(source: Path, target: Path, patterns: Sequence[str]) -> None:
    """Copies the data files of a benchmark, with file names in place of this machine's paths."""
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted({file for pattern in patterns for file in source.glob(pattern)}):
        if file.name == SUMMARY and (source / "rows.csv").exists():
            continue
        (target / file.name).write_text(without_paths(file.read_text(encoding="utf-8")), encoding="utf-8")


def without_paths(text: str) -> str:
    """Only the last part of each absolute path."""
    return _PATHS.sub("", text)


def _head(found: Results, compared: list[Contest]) -> str:
    lost = [(contest, contest.better()) for contest in compared if contest.better()]
    lines = [
        "# Benchmarks",
        "",
        _summary(compared, lost),
        "",
        f"Measured {_when(found)}: {machine()}.",
        *_versions(found),
        *_noise(found),
        *REBUILT,
        "",
    ]
    if compared:
        lines += [
            "| figure (less is better) | tachograph | best of the others | others compared |",
            "|---|---|---|---|",
        ]
        lines += [contest_row(contest) for contest in compared] + [""]
    return "\n".join(lines)


def _when(found: Results) -> str:
    days = sorted({day for section in SECTIONS if (day := found.measured(section.benchmark))})
    if len(days) < 2:
        return f"on {days[0]}" if days else "on a day that is not known"
    return f"from {days[0]} to {days[-1]} (each section says when)"


def _versions(found: Results) -> list[str]:
    others = ", ".join(f"{name} {release.removeprefix('Python ')}" for name, release in found.versions().items())
    return [f"tachograph {version('tachograph')} beside {others}."] if others else []


def _noise(found: Results) -> list[str]:
    of_median, of_one = found.spread("overhead")
    if not of_one:
        return []
    return [
        "A second bare run of the ten programs differed from the first by up to "
        f"{100 * of_median:.1f} % in the median of a",
        f"round and by up to {100 * of_one:.1f} % in one program: slowdowns that differ by less are called equal.",
    ]


def _summary(compared: list[Contest], lost: list[tuple[Contest, dict[str, float]]]) -> str:
    compared = [contest for contest in compared if contest.others()]
    if not compared:
        return "No other profiler was measured."
    return standing(len(compared), [lost_one(contest, better) for contest, better in lost])


def standing(compared: int, lost: Sequence[str]) -> str:
    """The page's first sentence: of so many figures, those in which others are better, as `lost_one` tells each."""
    if not lost:
        return f"tachograph is the best, or within the noise of it, in all {compared} figures that are compared."
    return f"**Where others are better** ({len(lost)} of {compared} figures): {'; '.join(lost)}."


def lost_one(contest: Contest, better: dict[str, float]) -> str:
    """Who is better in a figure, and by how much."""
    those = ", ".join(f"{name} {contest.form.format(value)}" for name, value in better.items())
    return f"{contest.name}: {those} (tachograph {contest.form.format(contest.mine)})"


def contest_row(contest: Contest) -> str:
    """A figure's row in the page's first table."""
    others = {name: value for name, value in contest.values.items() if name not in MINE}
    best = min(others, key=others.__getitem__, default=None)
    shown = "none of the others tells" if best is None else f"{best}: {contest.form.format(others[best])}"
    return f"| {contest.name} | {contest.form.format(contest.mine)} | {shown} | {contest.others()} |"


def _section(found: Results, section: Section, figure: str | None) -> str:
    name = section.benchmark
    figures = [] if figure is None else [figure]
    table, details = without_paths(found.table(name)), found.has_details(name)
    return section_text(section, figures, table, details=details, day=found.measured(name), whole=found.done(name))


def section_text(
    section: Section, figures: Sequence[str], table: str, *, details: bool, day: str | None, whole: bool = True
) -> str:
    """A section with its figures and its table.

    `details`: there is more of the table than is here; `day`: when it was measured, as 2026-11-23; `whole`: it ran to
    its end.
    """
    lines = [f"## {section.title}", ""]
    if section.source:
        lines += [f"*{section.source}.*", ""]
    lines += [section.text + (f" (Measured on {day}.)" if day else ""), ""]
    if not whole:
        lines += ["**It did not run to its end; this is what was measured until then.**", ""]
    for figure in figures:
        lines += [f"![{section.title}](benchmarks/{figure})", ""]
    lines += ["```text", first_blocks(table), "```", ""]
    if details or first_blocks(table) != table:
        lines += [f"[In detail](benchmarks/data/{section.benchmark}/{TABLE}).", ""]
    return "\n".join(lines)


def first_blocks(table: str) -> str:
    """The blocks of a table that the page shows: the first one, and those behind it while all are short."""
    first, *others = table.split("\n\n")
    shown = [first]
    for block in others:
        if sum(len(each.splitlines()) for each in [*shown, block]) > SHOWN_LINES:
            break
        shown.append(block)
    return "\n\n".join(shown)
