"""The recorder's thread runs as soon as it wakes, also where every processor is busy, and all else stays as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = """
import ctypes, json, os, time
from pathlib import Path

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}[os.uname().machine]

def slice_ns(tid):
    attributes = (ctypes.c_uint8 * 56)()
    if ctypes.CDLL(None).syscall(SCHED_GETATTR, tid, attributes, 56, 0) != 0:
        return None
    return int.from_bytes(bytes(attributes)[24:32], "little")

def of_thread():
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "tachograph":
            return slice_ns(int(task.name))

until = time.monotonic() + 20
while (found := of_thread()) in (None, slice_ns(0)) and time.monotonic() < until:
    time.sleep(0.05)
filtered = "Seccomp:\\t0" not in Path("/proc/self/status").read_text()
print(json.dumps({"thread": found, "program": slice_ns(0), "filtered": filtered}))
"""


def test_the_recorders_thread_has_short_slices(tmp_path: Path) -> None:
    # Before Linux 6.12 no thread can ask for them.
    command = [sys.executable, "-c", PROGRAM.replace("+ 20", "+ 0")]
    bare = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if not bare["program"] or bare["filtered"]:
        pytest.skip("this kernel gives no thread slices of its own, or has a filter of system calls")
    command = ["record", "--quiet", "--output", "run.tacho", "-c", PROGRAM]
    done = subprocess.run(
        [sys.executable, "-m", "tachograph", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=support.environment(),
    )
    recorded = json.loads(done.stdout)
    assert recorded["thread"] == 100_000
    assert recorded["program"] == bare["program"]
