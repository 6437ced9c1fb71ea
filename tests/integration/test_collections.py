"""Time in the garbage collector against the clocks of a program, in an interpreter with names and in a stripped one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = """
import gc, json, time

clock = time.thread_time_ns
spent = {"collecting": 0, "other": 0}

def garbage(count):
    for number in range(count):
        one = {"number": number}
        one["self"] = one

gc.disable()
kept = [{"number": [number]} for number in range(50_000)]
while sum(spent.values()) < 2_500_000_000:
    begin = clock()
    garbage(60_000)
    made = clock()
    gc.collect()  # collecting
    spent["other"] += made - begin
    spent["collecting"] += clock() - made
gc.freeze()  # nothing is left to look through at the end
print(json.dumps(spent))
"""


@pytest.mark.parametrize("names", ["with names", "stripped"])
def test_time_in_collections_is_known_and_pythons(tmp_path: Path, names: str) -> None:
    program = tmp_path / "collections_timed.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command, env = [program], None
    if names == "stripped":
        env = {**support.environment(), **support.stripped_interpreter(tmp_path)}
        command = [tmp_path / "bin" / "python3", program]
    done = support.record(command, tmp_path, "--interval", "1", "--cpu-only", env=env)
    assert (done.status, done.stderr) == (0, "")
    spent = json.loads(done.stdout)
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    totals = report["totals"]
    true_share = spent["collecting"] / sum(spent.values())
    assert 0.2 < true_share < 0.9
    own = [line for line in report["lines"] if line["file"] == str(program)]
    (line,) = (each for each in own if "# collecting" in each["source"])
    share = line["cpu_s"] / sum(each["cpu_s"] for each in own)
    assert share == pytest.approx(true_share, abs=support.tolerance(true_share, totals["samples"]))
    assert line["native_s"] <= support.tolerance(0.0, line["samples"]) * line["cpu_s"]
    assert 0.98 * line["python_s"] <= line["gc_s"] <= line["python_s"]
    assert totals["gc_s"] == pytest.approx(sum(each["gc_s"] for each in report["lines"]), abs=1e-6)
    assert not any("garbage collector is not known" in note for note in report["quality"]["notes"])
