"""What tests cost as Markdown, for a pull request (docs/how-to/record-a-test-run.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...profile.tests import PEAK, TIME, Place, Tests
from ...recording.frame import Row as Values
from ...recording.question_options import DEFAULT_TOKENS
from ...recording.text import printable
from ...report_data.numbers import seconds, size
from ...report_data.test_limits import LEAST_SECONDS, Verdict, excess, hungriest, place_text
from .document import Row, Section, compose

MAX_TEST = 150


def summary(
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
