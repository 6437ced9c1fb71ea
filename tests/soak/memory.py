"""A long recording at the full rate: nothing grows: the recorder, the program, what --rotate leaves on disk, and the
processes in which that makes tables.
"""

import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from integration import support

MOST_GROWTH = 16 << 20
"""Bytes that each may have more after the first quarter than at its end: buffers find their size, no more."""

KEEP = 3
"""Windows that are kept under ``--rotate``."""

STEADY = """
# So many rounds a second, and no more where the machine has more to give: every window is to have as much in it.
RATE = 3000
import sys, threading, time
def leaf(n): return sum(range(n))
def deep(n): return leaf(200) if n == 0 else deep(n - 1)
def blocks(): return [bytearray(n * 97 % 50_000) for n in range(200)]
def made(n):
    exec(compile("\\n" * (n % 60) + "def f(): return sum(range(500))\\nf()", f"<made {n % 60}>", "exec"), {})
def short(): deep(5)
begin, number, kept = time.monotonic(), 0, []
while time.monotonic() < begin + float(sys.argv[1]):
    number += 1
    if number % 100 == 0: time.sleep(max(0, begin + number / RATE - time.monotonic()))
    deep(number % 40); made(number); kept = kept[-3:] + [blocks()]; bytes(1_000_000)
    if number % 20 == 0:
        thread = threading.Thread(target=short); thread.start(); thread.join()
print(number > 0)
"""


@dataclass(frozen=True)
class Growth:
    """Resident bytes of a process, or bytes on disk: at the end of the first quarter, and the most after it."""

    quarter: int
    most: int

    @property
    def bytes(self) -> int:
        return self.most - self.quarter


def resident(pid: int) -> int:
    """Bytes of a process that are in memory and not in a file; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def peak(pid: int) -> int:
    """The most bytes that a process had in memory so far, those of files as well; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def watch_tables(pid: int, seconds: float) -> tuple[list[int], int]:
    """The program's process, and the largest size that a process of tables had in so many seconds (0: there was none).

    Such a process is over within seconds, and largest in its last moments.
    """
    end, largest = time.monotonic() + seconds, 0
    while True:
        program, tables = support.children(pid)
        largest = max([largest, *map(peak, tables)])
        if time.monotonic() >= end:
            return program, largest
        time.sleep(0.02)


def on_disk(folder: Path) -> int:
    """Bytes that all recordings in a folder take, those of the moment's spool too."""
    total = 0
    for path in folder.glob("*.tacho/**/*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_blocks * 512
    return total


def run(folder: Path, seconds: float, rotate: str | None) -> dict[str, Growth]:
    """Record a steady program for so long, every millisecond, and watch the processes and, if it rotates, the disk."""
    program = folder / "steady.py"
    program.write_text(STEADY, encoding="utf-8")
    seen: dict[str, list[tuple[float, int]]] = {"recorder": [], "program": []}
    options = ["--interval", "1"]
    if rotate is not None:
        options += ["--rotate", rotate, "--keep", str(KEEP)]
        seen |= {"disk": [], "tables": []}
    begin = time.monotonic()
    with support.start([program, str(seconds)], folder, *options) as command:
        while command.poll() is None and time.monotonic() - begin < seconds:
            program_pids, tables = watch_tables(command.pid, min(1.0, seconds / 50))
            sizes = {
                "recorder": resident(command.pid),
                "program": max(map(resident, program_pids), default=0),
                "tables": tables,
            }
            for name in seen.keys() & sizes.keys():
                if sizes[name] > 0:
                    seen[name].append((time.monotonic() - begin, sizes[name]))
            if rotate is not None:
                seen["disk"].append((time.monotonic() - begin, on_disk(folder)))
        command.communicate(timeout=600)
    assert command.returncode == 0, command.returncode
    growth = {}
    for name, found in seen.items():
        early = [size for at, size in found if seconds / 8 <= at <= seconds / 4]
        late = [size for at, size in found if at > seconds / 4]
        assert early, f"the {name} was not seen"
        assert late, f"the {name} was not seen"
        growth[name] = Growth(max(early), max(late))
        if growth[name].bytes > MOST_GROWTH:
            sys.exit(f"the {name} grew by {growth[name].bytes >> 10} KB: {found[:: max(1, len(found) // 20)]}")
    return growth
