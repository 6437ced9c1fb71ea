"""The moment of the peak, against programs that know who holds what then."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import check_lines, mean_of, rows, sampling_error
from oracle.test_native import needs_numpy

pytestmark = pytest.mark.native

TRACED = ("extended", "tables", "small")
"""What they hold is known by tracemalloc, in a run of its own."""
BLOCKS = {
    "shrunk-large": 1 << 20,
    "shrunk-little": 60_000,
    "grown-elsewhere": 1_500_000,
    "shrunk-elsewhere": 700_000,
    "made": 250_000,
    "copied": 250_000,
    "sixty": 600_000,
    "forty": 400_000,
    "doubled": 2_000_000,
    "part": 1 << 19,
    "lru": 300_000,
    "bounded": 100_000,
    "keys": 32,
    "deque": 528,
    "floats": 32,
    "strings": 64,
    "tuples": 64,
    "lists": 64,
    "sets": 216,
}
"""Bytes of the blocks of a line that are drawn by chance; others are so large that all of them are in the sample."""
SLOW = ("concatenated", "shrunk", "elsewhere", "handed_over", "two_lines", "generated", "cached", "tables", "small")
KINDS = (
    "extended",
    "moved",
    pytest.param("appended", marks=needs_numpy),
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW),
)


@pytest.fixture(params=KINDS)
def held(request: pytest.FixtureRequest, recorded: Recorder) -> support.Run:
    if request.param == "concatenated" and importlib.util.find_spec("pandas") is None:
        pytest.skip("no pandas")
    return recorded("held_at_peak.py", request.param)


def test_lines_have_what_they_held_at_the_peak(held: support.Run, tmp_path: Path) -> None:
    """Within 5 %, and what chance adds for blocks that are drawn; what came and went before has nothing."""
    kind = held.truth["facts"]["kind"]
    if kind in TRACED:
        held.truth["sizes"] = support.run_bare(tmp_path, "held_at_peak.py", kind, "traced")["sizes"]
    key = "requested_at_peak_bytes" if kind in TRACED else "live_at_peak_bytes"
    mean = mean_of(held)
    for name, size in held.truth["sizes"].items():
        block = BLOCKS.get(name)
        chance = 0.0 if block is None else sampling_error(size // block, block, mean)
        if size == 0:
            chance = 2 * mean
        check_lines(held, key, [name], rel=0.05, extra=chance)


def test_no_line_holds_more_than_the_process(held: support.Run) -> None:
    peak = held.report["memory"]["peak_bytes"]
    assert max(row["peak_bytes"] for row in held.report["lines"]) <= peak
    assert sum(row["live_at_peak_bytes"] for row in held.report["lines"]) == pytest.approx(peak, rel=1e-6)


def test_the_peak_is_what_was_held(held: support.Run) -> None:
    """By the exact counters: what the program held more than before it began."""
    if held.truth["facts"]["kind"] in TRACED:
        pytest.skip("tracemalloc knows what was asked for, and not what that takes up")
    before = [row for row in rows(held.recording, "memory") if row["time_ns"] <= held.truth["facts"]["begun_ns"]]
    grown = held.report["memory"]["peak_bytes"] - before[-1]["footprint_bytes"]
    assert grown == pytest.approx(sum(held.truth["sizes"].values()), rel=0.02)


def test_the_largest_resident_set_is_the_kernels(held: support.Run) -> None:
    most = held.truth["facts"]["most_resident"]
    assert held.report["totals"]["resident_peak_bytes"] == pytest.approx(most, rel=0.01)


def test_nothing_of_it_is_called_a_leak(held: support.Run) -> None:
    assert held.report["leaks"] == []
