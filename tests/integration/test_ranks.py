"""Six ranks meet over sockets, one of them late: the question names it, and tells what the ranks measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tachograph.analyzer.fleet as fleets
from integration import support

# What the ranks measure and what is recorded of it are compared.
pytestmark = [pytest.mark.native, pytest.mark.recording, pytest.mark.quiet]

for needed in ("dask", "duckdb", "fsspec"):
    pytest.importorskip(needed)

PROGRAM = support.PROGRAMS / "ranks.py"
RANKS, STEPS, LATE = 6, 20, 5


def test_the_late_rank_of_a_real_job(tmp_path: Path) -> None:
    started = []
    for rank in range(RANKS):
        command = [sys.executable, "-m", "tachograph", "record", "--cpu-only", "--quiet", "--start-paused"]
        variables = {**support.environment(), "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
        started.append(
            subprocess.Popen(
                [*command, "--output", f"{rank}.tacho", str(PROGRAM), str(tmp_path / "port"), str(STEPS)],
                cwd=tmp_path,
                env=variables,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    printed = [process.communicate(timeout=120)[0].split() for process in started]
    inside, loading = np.array(printed, np.float64).T
    assert [process.returncode for process in started] == [0] * RANKS

    told = fleets.open(str(tmp_path)).ranks()
    said = told.attrs
    assert (said["late"], said["meeting"], said["meeting_file"]) == (LATE, "all_reduce", "ranks.py")
    truth = float(np.median(np.delete(inside, LATE)) - inside[LATE])
    more = float(loading[LATE] - np.median(np.delete(loading, LATE)))
    assert min(truth, more) > 1.5
    assert said["late_s"] == pytest.approx(truth, rel=0.15)
    row = told.set_index("rank").loc[LATE]
    assert "time.sleep(0.12 if RANK == LATE" in row["source"]
    assert row["more_s"] == pytest.approx(more, rel=0.15)
    assert row["cpu_share"] < 0.1
    load = said["spans"].set_index("span").loc["load"]
    assert (load["rank"], load["count"], load["function"]) == (LATE, STEPS, "load")
    assert load["more_s"] == pytest.approx(more, rel=0.15)
    assert load["cpu_share"] < 0.1
    sync = said["spans"].set_index("span").loc["sync"]
    # What a rank measures holds its CPU time, and that in which no processor was free, too.
    assert 1.0 < sync["meeting_wait_s"] <= 1.05 * float(inside.max())
    command = [sys.executable, "-m", "tachograph", "fleet", "ranks", str(tmp_path), "--json", "-"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    assert answer["late"]["rank"] == LATE
    assert {each["span"] for each in answer["spans"]} == {"compute", "load", "sync"}
