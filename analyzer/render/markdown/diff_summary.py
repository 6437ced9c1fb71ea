"""Markdown of a diff: its summary, and the costs of tests for a pull request.

docs/how-to/ask-an-assistant.md and docs/how-to/record-a-test-run.md show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...profile.tests import PEAK, TIME, Place, Tests
from ...recording.frame import Row as Values
from ...recording.question_options import DEFAULT_TOKENS
from ...recording.text import printable, shorten_left
from ...report_data.difference import (
    BY_NAME,
    NOT_JUDGED,
    ComparedRun,
    DiffResult,
    Judged,
    Judgement,
    Status,
    verdict_text,
)
from ...report_data.difference_sections import (
    ChangedRow,
    ChangedTable,
    changed_tables,
    explained,
    missing_text,
    shown_metrics,
    side_facts,
    total_rows,
)
from ...report_data.limit_verdicts import LEAST_SECONDS, Verdict, excess, hungriest, place_text
from ...report_data.numbers import seconds, size
from .document import MAX_NAME, MAX_PATH, MAX_SOURCE, Row, Section, compose

MAX_SENTENCE = 250
INTERVAL = "Differences, new less base, with their intervals, and the verdict on each"


def summary(
    result: DiffResult,
    most: int = DEFAULT_TOKENS,
    *,
    metric: str | None = None,
    top: int | None = None,
    judgements: Sequence[Judgement] = (),
) -> str:
    """The document, of at most ``most`` tokens; ``metric`` and ``top`` choose rows as in the terminal."""
    judged = [
        Row(f"{each.outcome}: {printable(each.condition.text, MAX_NAME)}: {explained(each)}") for each in judgements
    ]
    sections = [
        Section("Verdict", "", list(_verdict(result)), needed=True),
        Section("Conditions", "Those of --fail-if.", judged, turns=8),
        Section(
            "Unknown", "What the numbers leave out, and why verdicts are missing.", list(_unknown(result)), turns=3
        ),
        Section("Totals", f"{INTERVAL}.", list(_totals(result)), turns=4),
    ]
    for name in shown_metrics(result, metric):
        if not result.lines.knows(name):
            sections.append(Section(f"Lines by {BY_NAME[name].label}", "", [Row(str(missing_text(result, name)))]))
        sections += [_table(result, table) for table in changed_tables(result, name, metric, top)]
    return compose("tachograph: diff", sections, most)


def _verdict(result: DiffResult) -> Iterator[Row]:
    yield Row(f"verdict: {result.summary.verdict}")
    yield Row(f"sentence: {printable(result.summary.sentence, MAX_SENTENCE)}")
    for side, runs in (("base", result.base), ("new", result.new)):
        yield Row(f"{side}: {_side(runs)}")


def _side(runs: Sequence[ComparedRun]) -> str:
    facts = [printable(runs[0].profile.metadata.program or "", MAX_NAME), *side_facts(runs)]
    name = f"{runs[0].name}: " if len(runs) == 1 else ""
    return f"{name}{', '.join(fact for fact in facts if fact)}"


def _unknown(result: DiffResult) -> Iterator[Row]:
    if result.unjudged is not None:
        none = {Judged.NOTHING: "no verdicts", Judged.COUNTERS: "no verdicts but on allocated bytes"}
        yield Row(f"{none.get(result.judged, 'no verdicts on times')}: {result.unjudged}")
    for remark in result.remarks:
        yield Row(f"note: {remark}")
    missing = [BY_NAME[name].label for name in ("main_wait", "memory.live_at_peak") if not result.lines.knows(name)]
    if missing:
        yield Row(f"not known on both sides: {', '.join(missing)}")


def _totals(result: DiffResult) -> Iterator[Row]:
    for row in total_rows(result):
        relative = f", {row.change}" if row.change else ""
        relative += f" ({row.change_interval})" if row.change_interval else ""
        interval = f" ({row.interval})" if row.interval else ""
        amounts = f"{row.base} to {row.new}, {row.difference}{interval}{relative}"
        yield Row(f"{row.label}: {amounts}{_behind(':', row.verdict)}")


def _behind(sign: str, verdict: str) -> str:
    """A verdict behind a sign. Why something was not judged is said once, above all rows."""
    return "" if verdict == verdict_text(NOT_JUDGED) else f"{sign} {verdict}"


def _table(result: DiffResult, table: ChangedTable) -> Section:
    note = f"{INTERVAL}.{' As shares of their runs.' if result.shares else ''}"
    if table.level == "lines":
        return Section(table.title, f"{note} Behind the bar is the source.", [*map(_line, table.rows)], turns=4)
    return Section(table.title, note, [*map(_function, table.rows)], turns=2 if table.level == "functions" else 1)


def _line(row: ChangedRow) -> Row:
    numbers = _numbers(row)
    if row.line is None or row.file is None:
        return Row(f"{printable(row.function, MAX_NAME)}: {numbers}", "not on a line")
    status = "" if row.status == Status.SAME else f", {row.status}"
    if row.status in (Status.MOVED, Status.EDITED) and row.base_line is not None:
        moved = row.base_file is not None and row.base_file != row.file
        file = f"{shorten_left(row.base_file or '', MAX_PATH)}:" if moved else "line "
        status += f" (was {file}{row.base_line})"
    source = "(source not in the recordings)" if row.source is None else row.source.strip()
    text = f"line {row.line}: {numbers}{status} | {printable(source, MAX_SOURCE)}"
    return Row(text, f"file {shorten_left(row.file, MAX_PATH)}", row.line)


def _function(row: ChangedRow) -> Row:
    status = "" if row.status == Status.SAME else f", {row.status}"
    line = "" if row.line is None else f":{row.line}"
    place = "" if row.library is None else f" in {shorten_left(row.library, MAX_PATH)}"
    if row.file is not None:
        place += f" {'from' if place else 'in'} {shorten_left(row.file, MAX_PATH)}{line}"
    return Row(f"function: {_numbers(row)}{status} | {printable(row.function, MAX_NAME)}{place}")


def _numbers(row: ChangedRow) -> str:
    return f"{row.difference} ({row.interval}){_behind(',', row.verdict)}"


MAX_TEST = 150


def summary_of_tests(
    tests: Tests, verdicts: Sequence[Verdict], top: int, folder: str, compared: Iterable[str] = (),
    most: int = DEFAULT_TOKENS,
) -> str:  # fmt: skip
    """The document, of at most ``most`` tokens; files below ``folder`` are named from there."""
    over = [verdict for verdict in verdicts if verdict.over]
    failed = [
        Row(f"{printable(each.test, MAX_TEST)}: {excess(each)}{_at(each.place, folder)}") for each in over
    ]  # fmt: skip
    rows = list(tests.frame.rows())
    slow = sorted(range(len(rows)), key=lambda number: -rows[number]["duration_s"])[:top]
    slowest = [
        Row(
            f"{seconds(rows[number]['duration_s'])}, {seconds(rows[number]['cpu_s'])} CPU: {_name(rows[number])}"
            f"{_at(tests.place(number, TIME), folder)}"
        )
        for number in slow
        if rows[number]["duration_s"] >= LEAST_SECONDS
    ]
    hungry = [
        Row(f"{size(round(rows[number]['peak_bytes']))}: {_name(rows[number])}{_at(tests.place(number, PEAK), folder)}")
        for number in hungriest(rows, top)
    ]
    return compose(
        "tachograph: tests",
        [
            Section("Over their limits", "What marks allow, and what was used.", failed, turns=4),
            Section("Compared", "With the base.", [Row(text) for text in compared], turns=4),
            Section("Slowest", "By phase, with the line of the project that most of it is charged to.", slowest),
            Section("Hungriest", "The most that a phase held at once of what it allocated.", hungry),
        ],
        most,
    )


def _name(row: Values) -> str:
    return f"{printable(row['test'], MAX_TEST)} ({row['phase']})"


def _at(place: Place | None, folder: str) -> str:
    return "" if place is None else f" | {place_text(place, folder)}"
