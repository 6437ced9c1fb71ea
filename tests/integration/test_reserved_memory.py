"""Address space that is reserved in terabytes, as by JavaScript engines and garbage collectors: it costs neither forks
nor ends anything, on kernels of today and on older ones, and what of it is touched is counted."""

import sys
import time
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

RESERVE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
def reserve(size, protection=0):
    found = libc.mmap(None, size, protection, 0x4022, -1, 0)  # MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
    assert found not in (None, (1 << 64) - 1)
    return found
"""
TERABYTE = 1 << 40
FORKS = f"""
reserve(16 * {TERABYTE})
kept, seconds = [], []
for number in range(600):
    kept.append(bytearray(300_000))
    if number % 60 == 59:
        kept.clear()
        began = time.perf_counter()
        if (child := os.fork()) == 0: os._exit(0)
        os.waitpid(child, 0)
        seconds.append(time.perf_counter() - began)
print(sorted(seconds)[len(seconds) // 2], time.monotonic(), flush=True)
"""
MUCH = 0.25
"""Seconds: a fork takes some ten milliseconds; a look at each page took thirty seconds."""


@pytest.mark.parametrize("kernel", ["today", "old"])
def test_forks_and_the_end_wait_for_nothing(tmp_path: Path, kernel: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(RESERVE + FORKS)
    before = [] if kernel == "today" else [sys.executable, str(support.PROGRAMS / "restricted.py"), "old-kernel"]
    command = [*before, *support.COMMAND, "record", "-qo", "run.tacho", str(program)]
    done = support.run(command, tmp_path)
    assert (done.status, done.stderr) == (0, "")
    fork, last_line = map(float, done.stdout.split())
    assert fork < MUCH
    (first,) = [row for row in support.rows(tmp_path / "run.tacho", "processes") if row["parent"] is None]
    assert first["end_ns"] / 1e9 - last_line < 1
    losses = support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
    # An old kernel is not asked for all of it, and that is told.
    assert ("page_scans_cut" in losses) == (kernel == "old")


TOUCHED = 64 << 20
TOUCH = f"""
at = reserve({TERABYTE}, 3)
for page in range({TOUCHED} // 4096): ctypes.memset(at + page * (48 << 20), 1, 1)
end = time.monotonic() + 0.3
while time.monotonic() < end: sum(range(1000))
print("touched")
"""


def test_pages_that_are_few_and_far_between_are_counted(tmp_path: Path) -> None:
    began = time.monotonic()
    assert support.record(["-c", RESERVE + TOUCH], tmp_path).stdout == "touched\n"
    assert time.monotonic() - began < 60
    rows = support.rows(tmp_path / "run.tacho", "memory")[1:]
    counted = sum(row["mapped_allocated_bytes"] for row in rows)
    losses = support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
    assert counted >= TOUCHED or {"page_scans_cut", "mappings_untracked"} & set(losses), (counted, losses)
