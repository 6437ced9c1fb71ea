"""Callgrind's files, read by gprof2dot and by callgrind_annotate."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import gprof2dot
import pytest

from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_gprof2dot_reads_what_was_recorded(export: Export, metric: str, truth: program.Truth) -> None:
    profile = gprof2dot.CallgrindParser(io.StringIO(export("callgrind", metric).decode())).parse()
    own = {each.name: each[gprof2dot.SAMPLES] for each in profile.functions.values() if each[gprof2dot.SAMPLES]}
    assert own == truth.own
    calls = {
        (each.name, profile.functions[callee].name): call[gprof2dot.SAMPLES2]
        for each in profile.functions.values()
        for callee, call in each.calls.items()
    }
    # A call of itself costs no more than the stacks that it is in, however deep they are.
    called = {name: weight for name, weight in truth.total.items() if not name.startswith("<")}
    assert {callee: cost for (caller, callee), cost in calls.items() if caller == "<module>"} == called


@pytest.mark.skipif(shutil.which("callgrind_annotate") is None, reason="valgrind is not installed")
def test_callgrind_annotate_reads_it(export: Export, tmp_path: Path) -> None:
    file = tmp_path / "callgrind.out"
    file.write_bytes(export("callgrind"))
    done = subprocess.run(
        ["callgrind_annotate", "--auto=no", "--threshold=100", str(file)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = {line.rpartition(":")[2]: line.split()[0] for line in done.stdout.splitlines() if ".py:" in line}
    assert shown["fib"] == "60,000,000"
    assert shown["work"] == "35,000,000"
    assert "110,000,000 (100.0%)  PROGRAM TOTALS" in done.stdout


def test_functions_of_one_name_stay_apart(export: Export) -> None:
    lines = export("callgrind").decode().splitlines()
    names = [line.partition("=")[2] for line in lines if line.startswith(("fn=", "cfn=")) and " " in line]
    assert len(names) == len(set(names)) == 6
