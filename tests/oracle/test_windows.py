"""Memory of the windows of a rotated recording: each has its own flows, and lines go on holding what they held."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.memory import rows
from tachograph.format.enumerations import DOMAINS, MemoryEvent

pytestmark = pytest.mark.native

MB = 1_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> support.Run:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    return support.record(tmp_path_factory.mktemp("windows"), "windows.py", "2", options=("--rotate", "2s"))


def windows(run: support.Run) -> list[Path]:
    """The windows in their order, without the last one, which may be of any length."""
    return sorted(run.recording.parent.glob("run.0*.tacho"))


def line(report: dict[str, Any], run: support.Run, name: str) -> dict[str, Any]:
    (number,) = support.marked(run.program, name)
    (found,) = (row for row in report["lines"] if row["line"] == number and Path(row["file"]).name == run.program.name)
    return dict(found)


def test_totals_are_no_less_than_their_lines(run: support.Run) -> None:
    for window in [*windows(run), run.recording]:
        report = support.analyze(window, cwd=run.recording.parent)
        lines = sum(row["allocated_bytes"] for row in report["lines"])
        # One byte of each stretch of so many is in the sample; a window begins and ends within one.
        stretch = max(row["mean_bytes"] for row in rows(window, "allocations"))
        assert report["totals"]["allocated_bytes"] > lines - 2 * stretch


def test_what_was_allocated_counts_in_its_own_window(run: support.Run) -> None:
    """By the counters, against what the sampled blocks of the window stand for."""
    assert len(windows(run)) >= 2
    for window in windows(run):
        begun_ns = json.loads((window / "manifest.json").read_text("utf-8"))["window"]["start_ns"]
        counters = [row for row in rows(window, "memory") if row["event"] != MemoryEvent.START]
        counted = sum(row[f"{domain}_allocated_bytes"] for row in counters for domain in DOMAINS)
        sampled = sum(row["weight_bytes"] for row in rows(window, "allocations") if row["time_ns"] >= begun_ns)
        assert counted == pytest.approx(sampled, rel=0.1)


def test_blocks_of_a_window_are_in_it(run: support.Run) -> None:
    """Those too that died just before its end, and had no row by then."""
    in_order = [*windows(run), run.recording]
    for window, following in pairwise(in_order):
        begun_ns = json.loads((following / "manifest.json").read_text("utf-8"))["window"]["start_ns"]
        before = {row["time_ns"] for row in rows(following, "allocations") if row["time_ns"] < begun_ns}
        assert before
        assert before <= {row["time_ns"] for row in rows(window, "allocations")}


def test_a_line_that_keeps_holds_more_in_each_window(run: support.Run) -> None:
    """What it held before is its own still, and not held before recording."""
    held = []
    for window in [*windows(run), run.recording]:
        report = support.analyze(window, cwd=run.recording.parent)
        held.append(line(report, run, "kept")["live_at_end_bytes"])
        before = [row for row in report["lines"] if row["function"] == "<before recording>"]
        assert sum(row["live_at_end_bytes"] for row in before) < 15 * MB
    assert held == sorted(held)
    assert held[-1] == pytest.approx(run.truth["sizes"]["kept"], rel=0.1)


def test_a_diff_of_two_windows_shows_the_line_that_keeps(run: support.Run) -> None:
    first, second = windows(run)[:2]
    done = support.tachograph("diff", first, second, "--json", "-", cwd=run.recording.parent)
    assert done.returncode == 0, done.stderr
    lines = json.loads(done.stdout)["lines"]
    change = {row["line"]: row["metrics"].get("memory.live_at_end", {}).get("difference", 0) for row in lines}
    held = [
        line(support.analyze(each, cwd=run.recording.parent), run, "kept")["live_at_end_bytes"]
        for each in (first, second)
    ]
    (kept,) = support.marked(run.program, "kept")
    assert change[kept] == pytest.approx(held[1] - held[0], rel=0.01)
    assert change[kept] > 10 * MB
    before = [row["metrics"] for row in lines if row["function"] == "<before recording>"]
    assert sum(abs(each.get("memory.live_at_end", {}).get("difference", 0)) for each in before) < 5 * MB
