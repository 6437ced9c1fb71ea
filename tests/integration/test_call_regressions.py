"""A function that became slower per call is told from one that is called more often, from recordings of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import support
from tachograph.analyzer.diff import diff
from tachograph.analyzer.render.json_difference import document

pytestmark = [pytest.mark.native, pytest.mark.recording]

PROGRAM = """
def look_up(table, name):
    for _ in range({searches}):
        found = [place for place, each in enumerate(table) if each == name]
    return found[0]

def check(number):
    return sum(range(20000 + number))

def parse(table):
    for number in range({checks}):
        check(number)
    return look_up(table, "name 3000")

def main():
    table = [f"name {{number}}" for number in range(4000)]
    for _ in range(20):
        parse(table)

main()
"""


def recorded(folder: Path, searches: int, checks: int) -> Path:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder.mkdir()
    program = folder / "parse.py"
    program.write_text(PROGRAM.format(searches=searches, checks=checks))
    # All of it is watched, on 3.11 in one window that is longer than the program.
    options = ("--calls", "--calls-budget", "100", "--calls-period", "60")
    done = support.record([program], folder, "--cpu-only", *options)
    assert (done.status, done.stderr) == (0, "")
    return folder / "run.tacho"


def test_slower_calls_are_told_from_more_calls(tmp_path: Path) -> None:
    # A call takes thirty times as long, or there are four times as many: a busy machine hides neither.
    base = recorded(tmp_path / "base", searches=1, checks=3)
    slower = recorded(tmp_path / "slower", searches=30, checks=3)
    often = recorded(tmp_path / "often", searches=1, checks=12)
    told = {}
    for name, new in (("slower", slower), ("often", often)):
        # One recording a side is judged where the user states how much runs differ.
        rows = document(diff([base], [new], anyway=True, spread=0.1))["functions"]
        told[name] = {row["function"]: row for row in rows if str(row["file"]).endswith("parse.py")}
    look_up, check = told["slower"]["look_up"], told["often"]["check"]
    assert look_up["calls_verdict"] == "slower per call"
    assert (look_up["metrics"]["calls"]["base"], look_up["metrics"]["calls"]["new"]) == (20, 20)
    # How long its calls take is the machine's doing, too.
    assert check["calls_verdict"].endswith("called more often")
    assert (check["metrics"]["calls"]["base"], check["metrics"]["calls"]["new"]) == (60, 240)
    assert told["slower"]["check"]["metrics"]["calls"]["change"] == 0
