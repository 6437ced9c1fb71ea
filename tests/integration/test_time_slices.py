"""The recorder's thread runs as soon as it wakes, also where every processor is busy, and all else stays as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = """
import ctypes, json, os, sys, time
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

until = time.monotonic() + float(sys.argv[1])
while (found := of_thread()) in (None, slice_ns(0)) and time.monotonic() < until:
    time.sleep(0.05)
filtered = "Seccomp:\\t0" not in Path("/proc/self/status").read_text()
print(json.dumps({"thread": found, "program": slice_ns(0), "filtered": filtered}))
"""


def test_the_recorders_thread_has_short_slices(tmp_path: Path) -> None:
    # Before Linux 6.12 no thread can ask for them.
    bare = json.loads(support.bare(["-c", PROGRAM, "0"], tmp_path).stdout)
    if not bare["program"] or bare["filtered"]:
        pytest.skip("this kernel gives no thread slices of its own, or has a filter of system calls")
    recorded = json.loads(support.record(["-c", PROGRAM, "20"], tmp_path).stdout)
    assert recorded["thread"] == 100_000
    assert recorded["program"] == bare["program"]
