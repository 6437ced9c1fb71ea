"""Numbers of calls in programs that count their own: waiting, threads, tasks, bursts, phases, generators, by C code."""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path
from typing import Any

import pytest

from integration import support
from tachograph.analyzer import api

pytestmark = [pytest.mark.native, pytest.mark.recording, pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs" / "calls"
STEADY = ("waiting", "threads", "tasks", "awaits", "pool", "by_c", "objects", "generators", "recursion", "parallel")
"""Programs whose functions are called all the time that they run."""


def functions(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, dict[str, Any]]]:
    """True calls and the row of each function that was called at least 20 times."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    path = PROGRAMS / f"{program}.py"
    monkeypatch.setenv("TRUTH", str(folder / "truth"))
    done = support.record([path], folder, "--cpu-only", "--calls")
    assert (done.status, done.stderr) == (0, "")
    truth = json.loads((folder / "truth").read_text(encoding="utf-8"))["n"]
    with api.open(folder / "run.tacho") as opened:
        rows = opened.profile().functions.to_dict("records")
    found = {row["function"].split(".")[-1]: row for row in rows if os.path.basename(str(row["file"])) == path.name}
    return [(calls, found[name]) for name, calls in truth.items() if calls >= 20]


@pytest.mark.parametrize("program", STEADY)
def test_numbers_of_calls_are_near_the_truth(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the interval misses the truth once in ten thousand; of this program an interval tells more than nothing."""
    found = functions(program, tmp_path, monkeypatch)
    known = [(calls, row) for calls, row in found if row["calls"] == row["calls"]]
    assert len(known) >= len(found) / 2
    for calls, row in known:
        reach = max(row["calls"] - row["calls_low"], row["calls_high"] - row["calls"])
        assert abs(row["calls"] - calls) <= 2 * reach + 0.03 * calls, row["function"]
    assert statistics.median((row["calls_high"] - row["calls_low"]) / 2 / calls for calls, row in known) < 0.3


@pytest.mark.parametrize("program", ["bursts", "phases"])
def test_intervals_hold_where_calls_come_in_bursts(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for calls, row in functions(program, tmp_path, monkeypatch):
        middle = (row["calls_low"] + row["calls_high"]) / 2
        assert abs(middle - calls) <= row["calls_high"] - row["calls_low"] + 0.03 * calls, row["function"]
