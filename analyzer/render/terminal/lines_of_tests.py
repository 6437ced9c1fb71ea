"""The report that ``pytest --tachograph`` prints behind pytest's own summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ...profile.tests import PEAK, PHASES, TIME, Tests
from ...recording.frame import Row
from ...recording.text import printable
from ...report_data.limit_verdicts import LEAST_SECONDS, Verdict, amount_text, excess, hungriest, place_text
from ...report_data.numbers import seconds

MAX_TEST = 200


def test_lines(tests: Tests, verdicts: Sequence[Verdict], top: int, folder: str) -> Iterator[str]:
    """The slowest and the hungriest tests, ``top`` of each, and those over their limits.

    Files below ``folder`` are named from there.
    """
    if not len(tests):
        yield "no test ran while it was recorded"
        return
    rows = list(tests.frame.rows())
    yield from _slowest(tests, rows, top, folder)
    yield from _hungriest(tests, rows, top, folder)
    over = [verdict for verdict in verdicts if verdict.over]
    if over:
        yield "tests over their limits:"
    for verdict in over:
        yield f"  FAILED {printable(verdict.test, MAX_TEST)}: {excess(verdict)}"
        if verdict.place is not None:
            yield f"         {place_text(verdict.place, folder)}"
    for mark in sorted({verdict.limit.mark for verdict in verdicts if verdict.over is None}):
        yield f"not judged: {mark} (what it limits was not recorded)"


test_lines.__test__ = False  # type: ignore[attr-defined]  # for pytest, which takes names like this one for tests


def _slowest(tests: Tests, rows: Sequence[Row], top: int, folder: str) -> Iterator[str]:
    by_test: dict[str, dict[str, int]] = {}
    for number, row in enumerate(rows):
        by_test.setdefault(row["test"], {})[row["phase"]] = number
    whole = {test: sum(rows[number]["duration_s"] for number in phases.values()) for test, phases in by_test.items()}
    slowest = [test for test in sorted(whole, key=lambda test: -whole[test])[:top] if whole[test] >= LEAST_SECONDS]
    if slowest:
        yield "slowest tests (setup + call + teardown):"
    for test in slowest:
        phases = by_test[test]
        parts = " + ".join(seconds(rows[phases[name]]["duration_s"]) if name in phases else "-" for name in PHASES)
        yield f"  {seconds(whole[test]):>8}  {printable(test, MAX_TEST)}  ({parts})"
        longest = max(phases.values(), key=lambda number: rows[number]["duration_s"])
        row = rows[longest]
        wait = "" if math.isnan(row["wait_s"]) else f", {seconds(row['wait_s'])} waiting"
        yield f"            {row['phase']}: {seconds(row['cpu_s'])} CPU{wait}{_at(tests, longest, row, folder)}"


def _at(tests: Tests, number: int, row: Row, folder: str) -> str:
    """The line of most of a phase's time. Where samples say more than the clock of a short phase, only the line."""
    place = tests.place(number, TIME)
    measured = row["cpu_s"] + (0.0 if math.isnan(row["wait_s"]) else row["wait_s"])
    if place is not None and place.amount > measured:
        return f"; mostly at {place_text(place, folder)}"
    return _of(tests, number, TIME, "s", folder)


def _hungriest(tests: Tests, rows: Sequence[Row], top: int, folder: str) -> Iterator[str]:
    numbers = hungriest(rows, top)
    if numbers:
        yield "hungriest tests (the most that a phase held at once of what it allocated):"
    for number in numbers:
        row = rows[number]
        yield f"  {amount_text(row['peak_bytes'], 'B'):>8}  {printable(row['test'], MAX_TEST)}"
        yield f"            {row['phase']}{_of(tests, number, PEAK, 'B', folder)}"


def _of(tests: Tests, number: int, what: str, unit: str, folder: str) -> str:
    place = tests.place(number, what)
    if place is None:
        return "; no line of the project was seen"
    return f"; {amount_text(place.amount, unit)} at {place_text(place, folder)}"
