"""Copies by the native recorder: known byte counts within 2 %."""

import importlib.util

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import check_lines, line_bytes, line_rows, rows
from oracle.test_native import needs_numpy

pytestmark = [pytest.mark.native, needs_numpy]

WAYS = ("bytes", "copy", "tobytes", "slicing", "dumps", "loads", "assign")


@pytest.fixture(scope="module")
def copies(recorded: Recorder) -> support.Run:
    return recorded("copies.py", "32768", "192")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_copying(copies: support.Run, way: str) -> None:
    check_lines(copies, "copied_bytes", [way], rel=0.02)


@pytest.mark.parametrize("way", WAYS)
def test_intervals_hold_the_truth(recorded: Recorder, way: str) -> None:
    """Copies that are not much larger than the mean of the sampling, in such a number that it grows.

    Half again the 95 % interval is three standard deviations.
    """
    run = recorded("copies.py", "1024", "200")
    (row,) = line_rows(run, way)
    true, found = run.truth["sizes"][way], row["copied_bytes"]
    low, high = (found + 1.5 * (row[f"copied_bytes_{end}"] - found) for end in ("low", "high"))
    assert low <= true <= high
    assert high - low < 1.5 * true


@pytest.fixture(scope="module")
def turns(recorded: Recorder) -> support.Run:
    return recorded("copies_by_turns.py")


@pytest.mark.parametrize(("part", "rest"), [("one", "three"), ("among", "large")])
def test_copies_by_turns(turns: support.Run, part: str, rest: str) -> None:
    """Two lines by turns, of the same size and of very different sizes: each gets its share."""
    true = turns.truth["sizes"][part], turns.truth["sizes"][rest]
    found = line_bytes(turns, "copied_bytes", part), line_bytes(turns, "copied_bytes", rest)
    samples = sum(row["copy_samples"] for row in line_rows(turns, part, rest))
    share = true[0] / sum(true)
    assert abs(found[0] / sum(found) - share) <= support.tolerance(share, samples)


def test_copies_below_the_least_size_are_not_counted(turns: support.Run) -> None:
    assert turns.truth["sizes"]["too-small"] == 0
    assert line_bytes(turns, "copied_bytes", "too-small") == 0


@pytest.mark.parametrize("program", ["copies", "turns"])
def test_all_lines_together_are_the_total(request: pytest.FixtureRequest, program: str) -> None:
    """Nothing is counted twice or lost between lines and threads: rows, lines and totals agree, and with the truth."""
    run: support.Run = request.getfixturevalue(program)
    recorded_bytes = sum(row["bytes"] for row in rows(run.recording, "copies"))
    lines = [row["copied_bytes"] for row in run.report["lines"]]
    assert sum(lines) == pytest.approx(recorded_bytes, rel=1e-8)
    assert run.report["totals"]["copied_bytes"] == pytest.approx(recorded_bytes, rel=1e-8)
    assert recorded_bytes == pytest.approx(sum(run.truth["sizes"].values()), rel=0.02, abs=64 << 20)


def test_rate_is_bytes_over_the_time(copies: support.Run) -> None:
    wall = copies.report["totals"]["wall_s"]
    for row in line_rows(copies, *WAYS):
        assert row["copy_mb_per_s"] == pytest.approx(row["copied_bytes"] / 1e6 / wall, rel=0.01)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
def test_concat_copies_all_its_data(recorded: Recorder) -> None:
    run = recorded("concat.py", "5")
    check_lines(run, "copied_bytes", ["concat"], rel=0.02)
