"""Verdicts on tests with limits: those over what their marks allow, and the tests that held most memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..profile.tests import CALL, COPIES, CPU, KEPT, PEAK, PHASES, Place, Tests
from ..recording.frame import Row
from ..recording.text import printable, shorten_left
from .numbers import seconds, size

MAX_SOURCE = 80
LEAST_SECONDS, LEAST_BYTES = 0.001, 100_000
"""Tests that took or held less are not worth a line."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A mark: its column in ``Tests.frame``, the column that it limits, the one judged by, and what a line does."""

    mark: str
    allowed: str
    used: str
    judged: str
    unit: str
    what: str
    verb: str


MARKS = (
    Limit("limit_cpu", "limit_cpu_s", "cpu_s", "cpu_s", "s", CPU, "took"),
    Limit("limit_memory", "limit_memory_bytes", "peak_bytes", "peak_bytes_low", "B", PEAK, "held"),
    Limit("limit_copies", "limit_copies_bytes", "copied_bytes", "copied_bytes_low", "B", COPIES, "copied"),
    Limit("no_leaks", "no_leaks_bytes", "kept_bytes", "kept_bytes_low", "B", KEPT, "kept"),
)
"""The clock of a process is exact; what stands on samples is judged by the lower end of its 95 % interval."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The call of a test with a mark: what it used, and the line at fault. ``over`` is None where it is unknown."""

    test: str
    limit: Limit
    allowed: float
    used: float
    at_least: float
    over: bool | None
    place: Place | None


def judge(tests: Tests) -> Iterator[Verdict]:
    """A verdict for each mark of each test, in the order in which the tests ran."""
    for row, values in enumerate(tests.frame.rows()):
        if values["phase"] != PHASES[CALL]:
            continue
        for limit in MARKS:
            allowed, judged = values[limit.allowed], values[limit.judged]
            if math.isnan(allowed):
                continue
            over = None if math.isnan(judged) else judged > allowed
            place = tests.place(row, limit.what) if over else None
            yield Verdict(values["test"], limit, allowed, values[limit.used], judged, over, place)


def hungriest(rows: Sequence[Row], top: int) -> list[int]:
    """The phases of tests that held most, as places in the rows of ``Tests.frame``, the most first."""
    phases = [number for number, row in enumerate(rows) if row["peak_bytes"] >= LEAST_BYTES]
    return sorted(phases, key=lambda number: -rows[number]["peak_bytes"])[:top]


def excess(verdict: Verdict) -> str:
    """The limit of a mark and the amount that the test used, as a sentence."""
    unit = verdict.limit.unit
    used, allowed, least = (amount_text(value, unit) for value in (verdict.used, verdict.allowed, verdict.at_least))
    sure = "" if least == used else f" (at least {least})"
    return f"{verdict.limit.mark} allows {allowed}, and it {verdict.limit.verb} {used}{sure}"


def place_text(place: Place, folder: str) -> str:
    """A line at fault: where it is, and its source."""
    path = place.file.removeprefix(f"{folder}/") if folder else place.file
    source = printable((place.source or "").strip(), MAX_SOURCE)
    where = f"{shorten_left(printable(path), 80)}:{place.line} in {printable(place.function, 80)}"
    return f"{where}: {source}" if source else where


def amount_text(value: float, unit: str) -> str:
    """Seconds or bytes."""
    return seconds(value) if unit == "s" else "?" if math.isnan(value) else size(round(value))
