"""A script that has read a recording ends as it should: no thread of Arrow's needs the interpreter any more then."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

VECTORS = Path(__file__).parents[2] / "format-spec" / "vectors"

# Importing takes most of a script's time, so it is done once. Each child is a script that reads and ends by itself.
SCRIPTS = """
import collections, json, os, sys, warnings
import pyarrow.compute, pyarrow.parquet
from tachograph.analyzer import Recording

warnings.simplefilter("ignore")  # a fork beside the threads of Arrow

def read(path):
    with Recording(path) as recording:
        for name in ("cpu", "waits", "memory", "allocations", "copies"):
            columns = [field.name for field in recording.specification.tables[name].schema]
            for batch in recording.batches(name, columns):
                pass
        recording.table("stacks")

left, at_once, alive, is_child = int(sys.argv[1]), 4, 0, False
statuses = collections.Counter()
while left or alive:
    if left and alive < at_once:
        left, alive = left - 1, alive + 1
        if os.fork() == 0:
            is_child = True
            break
    else:
        _, status = os.wait()
        alive -= 1
        statuses[os.waitstatus_to_exitcode(status)] += 1
if is_child:
    read(sys.argv[2])
else:
    print(json.dumps(statuses))
"""


@pytest.mark.parametrize("count", [12, pytest.param(2000, marks=pytest.mark.slow)])
def test_all_end_in_good_order(count: int) -> None:
    """It was SIGABRT in one of 60: a thread let go of a Python file while the interpreter was shutting down."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPTS, str(count), str(VECTORS / "memory.tacho")],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"0": count}
