"""Calls of classes: between the caller and ``__init__`` nothing stands that the program has not written.

CPython 3.13 and later run a frame of their own there, whose code is in no file and whose memory and time would be on no
line.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = """
class Pair:
    def __init__(self, number):
        self.values = bytearray(2_000_000)
        self.number = number

def make(number):
    return [Pair(each) for each in range(number)]

for _ in range(10):
    made = make(10)
"""


def test_a_class_is_called_from_its_callers_line(tmp_path: Path) -> None:
    program = tmp_path / "pairs.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = support.record([program], tmp_path, "--interval", "1")
    assert (done.status, done.stderr) == (0, "")
    recording = tmp_path / "run.tacho"
    codes, stacks = support.rows(recording, "codes"), support.rows(recording, "stacks")
    assert all(code["first_line"] > 0 for code in codes)
    names = [code["qualname"] for code in codes]
    callers = {
        names[stacks[node["parent"]]["code"]]
        for node in stacks
        if node["code"] is not None and names[node["code"]] == "Pair.__init__"
    }
    assert callers <= {"make", "make.<locals>.<listcomp>"}
    assert callers
    report = support.analyze(recording, cwd=tmp_path)
    lines = {line["line"]: line for line in report["lines"] if line["file"] == str(program)}
    held = sum(line["live_at_peak_bytes"] for line in lines.values())
    # Blocks of 1 MiB and more are all in the sample. The tenth list is there before the ninth is gone.
    assert lines[4]["live_at_peak_bytes"] == pytest.approx(40_000_000, rel=0.01)
    assert held == pytest.approx(lines[4]["live_at_peak_bytes"], rel=0.01)
