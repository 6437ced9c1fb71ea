"""CPU time of native threads is charged to the lines that asked for it, against programs that count their calls.

All calls of a program are alike, so each line's share of the calls is its share of the work, whatever else runs on the
machine. OpenBLAS lets one call after the other have its pool; in OpenMP each thread that asks has a team of its own;
rayon's workers take from all requests at once, and from each other.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
from pathlib import Path

import pytest

from oracle import support
from oracle.conftest import Recorder

pytestmark = [pytest.mark.native, pytest.mark.quiet]

PROGRAM = "pool_threads.py"
POINTS = 0.02
"""What a line's share may be wrong by beside what chance does (issue 15)."""
SECONDS = {5: "6", 500: "12"}
RAYON_SECONDS = {5: "4", 500: "30"}
"""CPU time of a program by the milliseconds of its calls."""
LENGTHS = [5, pytest.param(500, marks=pytest.mark.slow)]

needs_numpy = pytest.mark.skipif(importlib.util.find_spec("numpy") is None, reason="numpy is not installed")
needs_polars = pytest.mark.skipif(importlib.util.find_spec("polars") is None, reason="polars is not installed")


@pytest.fixture(scope="module")
def openmp(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library with an OpenMP team."""
    try:
        built = support.compile_library(support.NATIVE / "openmp_team.c", tmp_path_factory.mktemp("openmp"), "-fopenmp")
    except subprocess.CalledProcessError:
        built = None
    if built is None:
        pytest.skip("no compiler for OpenMP")
    return str(built)


def charged(run: support.Run) -> dict[str, float]:
    """Seconds of native threads by the lines that ask, everything that they call included."""
    rows = [row for row in run.report["lines"] if Path(row["file"] or "").name == PROGRAM]
    marks = [*(name for name in "abcd" if name in run.truth), "sleep"]
    return {
        mark: sum(row["total_pool_cpu_s"] for row in rows if row["line"] in support.marked(run.program, mark))
        for mark in marks
    }


def check(run: support.Run) -> None:
    """The shares are those of the calls, and what sleeps gets nothing."""
    found, calls = charged(run), run.truth
    assert found.pop("sleep") == 0
    whole, total = sum(found.values()), sum(calls.values())
    totals = run.report["totals"]
    working = totals["pool_cpu_s"] - totals["pool_waiting_s"]
    assert totals["pool_unattributed_s"] - totals["pool_waiting_s"] < 0.03 * working
    assert sum(row["pool_cpu_s"] or 0 for row in run.report["lines"]) == pytest.approx(totals["pool_cpu_s"], rel=1e-6)
    # What is worked at lies on the stack of who asked: hardly any time is shared out.
    assert totals["pool_shared_s"] <= 0.01 * totals["pool_cpu_s"]
    samples = whole * totals["samples"] / totals["cpu_s"]
    for name, seconds in found.items():
        share = calls[name] / total
        chance = math.sqrt(share * (1 - share) / samples)
        assert seconds / whole == pytest.approx(share, abs=POINTS + support.Z * chance), (name, found, calls)


@needs_numpy
@pytest.mark.parametrize("milliseconds", LENGTHS)
@pytest.mark.parametrize("threads", [4, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2))])
def test_openblas(threads: int, milliseconds: int, recorded: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    arguments = ("blas", str(threads), str(milliseconds), SECONDS[milliseconds])
    check(recorded(PROGRAM, *arguments, interval=1, options=("--cpu-only",)))


@needs_polars
@pytest.mark.parametrize("milliseconds", LENGTHS)
@pytest.mark.parametrize("threads", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4))])
def test_rayon(threads: int, milliseconds: int, recorded: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    arguments = ("polars", str(threads), str(milliseconds), RAYON_SECONDS[milliseconds])
    check(recorded(PROGRAM, *arguments, interval=1, options=("--cpu-only",)))


@pytest.mark.parametrize("milliseconds", LENGTHS)
@pytest.mark.parametrize("threads", [4, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 2))])
def test_openmp(threads: int, milliseconds: int, openmp: str, recorded: Recorder) -> None:
    check(recorded(PROGRAM, openmp, str(threads), str(milliseconds), SECONDS[milliseconds], interval=1))
