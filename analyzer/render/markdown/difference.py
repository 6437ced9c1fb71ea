"""Markdown of a diff: its summary, and the costs of tests for a pull request.

docs/how-to/ask-an-assistant.md and docs/how-to/record-a-test-run.md show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from ...profile.tests import PEAK, TIME, Place, Tests
from ...recording.frame import Row as Values
from ...recording.question_options import DEFAULT_TOKENS
from ...recording.text import printable, shorten_left
from ...report_data.difference import (
    BY_NAME,
    HIDDEN_TOTALS,
    NO_EVIDENCE,
    ComparedRun,
    DiffResult,
    Judged,
    Judgement,
    Level,
    Metric,
    Status,
    explained,
    shown_metrics,
    shown_rows,
)
from ...report_data.limit_verdicts import LEAST_SECONDS, Verdict, excess, hungriest, place_text
from ...report_data.numbers import amount, change, changes, seconds, signed, size, span, when
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
        sections += _of_metric(result, name, metric, top)
    return compose("tachograph: diff", sections, most)


def _verdict(result: DiffResult) -> Iterator[Row]:
    yield Row(f"verdict: {result.summary.verdict}")
    yield Row(f"sentence: {printable(result.summary.sentence, MAX_SENTENCE)}")
    for side, runs in (("base", result.base), ("new", result.new)):
        yield Row(f"{side}: {_side(runs)}")


def _side(runs: Sequence[ComparedRun]) -> str:
    first = runs[0].profile
    if len(runs) > 1:
        return f"{len(runs)} recordings, of {printable(first.metadata.program or runs[0].name, MAX_NAME)}"
    facts = [
        printable(first.metadata.program or "", MAX_NAME),
        when(first.metadata.created_utc),
        f"{seconds(first.totals.wall_s)} wall",
        f"{first.totals.samples:,} samples",
    ]
    return f"{runs[0].name}: {', '.join(fact for fact in facts if fact)}"


def _unknown(result: DiffResult) -> Iterator[Row]:
    if result.unjudged is not None:
        none = "no verdicts" if result.judged is Judged.NOTHING else "no verdicts on times"
        yield Row(f"{none}: {result.unjudged}")
    for remark in result.remarks:
        yield Row(f"note: {remark}")
    missing = [BY_NAME[name].label for name in ("main_wait", "memory.live_at_peak") if not result.lines.knows(name)]
    if missing:
        yield Row(f"not known on both sides: {', '.join(missing)}")


def _totals(result: DiffResult) -> Iterator[Row]:
    for row in result.totals.values.itertuples(index=False):
        if row.metric in HIDDEN_TOTALS and row.verdict == NO_EVIDENCE:
            continue
        metric = BY_NAME[row.metric]
        relative = f", {change(row.change)} ({changes(row.change_low, row.change_high)})" if row.base > 0 else ""
        both = f"{amount(row.base, metric.unit)} to {amount(row.new, metric.unit)}"
        difference = f"{signed(row.difference, metric.unit)} ({span(row.low, row.high, metric.unit)})"
        yield Row(f"{metric.label}: {both}, {difference}{relative}: {row.verdict}")


def _of_metric(result: DiffResult, name: str, chosen_metric: str | None, top: int | None) -> Iterator[Section]:
    """Its lines, and its functions with what they call."""
    label, shares = BY_NAME[name].label, " As shares of their runs." if result.shares else ""
    if not result.lines.knows(name):
        yield Section(f"Lines by {label}", "", [Row("not recorded on both sides")])
        return
    frame = shown_rows(result, result.lines, name, chosen_metric, top)
    rows = [_line(result, row, BY_NAME[name]) for _, row in frame.iterrows()]
    yield Section(f"Lines by {label}", f"{INTERVAL}.{shares} Behind the bar is the source.", rows, turns=4)
    total = f"total_{name}"
    if result.functions.knows(total):
        rows = list(_functions(result, result.functions, total, chosen_metric, top))
        yield Section(f"Functions by {label}, with what they call", f"{INTERVAL}.{shares}", rows, turns=2)
    native = result.native_functions
    total = total if native.knows(total) else name
    if native.knows(total):
        rows = list(_functions(result, native, total, chosen_metric, top))
        called = "themselves" if total == name else "with what they call"
        yield Section(f"Native functions by {label}, {called}", f"{INTERVAL}.{shares}", rows)


def _line(result: DiffResult, row: pd.Series, metric: Metric) -> Row:
    numbers = _numbers(result, row, metric)
    if row["line"] is pd.NA:
        return Row(f"{printable(str(row['function']), MAX_NAME)}: {numbers}", "not on a line")
    status = "" if row["status"] == Status.SAME else f", {row['status']}"
    if row["status"] in (Status.MOVED, Status.EDITED) and row["base_line"] is not pd.NA:
        file = f"{shorten_left(row['base_file'], MAX_PATH)}:" if row["base_file"] != row["file"] else "line "
        status += f" (was {file}{row['base_line']})"
    source = row["source"].strip() if isinstance(row["source"], str) else "(source not in the recordings)"
    text = f"line {row['line']}: {numbers}{status} | {printable(source, MAX_SOURCE)}"
    return Row(text, f"file {shorten_left(row['file'], MAX_PATH)}", int(row["line"]))


def _functions(
    result: DiffResult, level: Level, name: str, chosen_metric: str | None, top: int | None
) -> Iterator[Row]:
    for _, row in shown_rows(result, level, name, chosen_metric, top).iterrows():
        status = "" if row["status"] == Status.SAME else f", {row['status']}"
        file, library = row["file"], row.get("library")
        line = "" if row["line"] is pd.NA else f":{row['line']}"
        place = f" in {shorten_left(library, MAX_PATH)}" if isinstance(library, str) else ""
        if isinstance(file, str):
            place += f" {'from' if place else 'in'} {shorten_left(file, MAX_PATH)}{line}"
        function = printable(str(row["function"]), MAX_NAME)
        yield Row(f"function: {_numbers(result, row, BY_NAME[name])}{status} | {function}{place}")


def _numbers(result: DiffResult, row: pd.Series, metric: Metric) -> str:
    unit = "share" if result.shares else metric.unit
    return f"{signed(row['difference'], unit)} ({span(row['low'], row['high'], unit)}), {row['verdict']}"


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
