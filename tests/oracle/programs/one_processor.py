"""A busy thread and a loop of the shell share one processor; then the thread also sleeps for moments.

The kernel's own count of how long the thread was ready to run and had no processor is the truth, beside the clocks; all
are of the whole process, whose imports may wait for the disk.
"""

import os
import subprocess
import time
from pathlib import Path

from truth import Clocks, seconds


def ready_ns() -> int:
    """What this thread waited for a processor so far."""
    return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])


def age_ns() -> int:
    """How long ago the kernel made this process, to a clock tick."""
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = int(fields[19])
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * 10**9 // os.sysconf("SC_CLK_TCK")


def busy(clocks: Clocks, end: float, nap_s: float) -> None:
    """Work until ``end``, with a nap between the blocks."""
    while time.monotonic() < end:
        clocks.run("busy", lambda rounds: sum(range(rounds)), 200_000)
        if nap_s > 0:
            time.sleep(nap_s)


def main() -> None:
    clocks = Clocks()
    length = seconds(1.5)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) as rival:
        busy(clocks, time.monotonic() + length, 0.0)
        busy(clocks, time.monotonic() + length, 0.002)
        clocks.facts["wall_ns"] = age_ns()
        clocks.facts["ready_ns"] = ready_ns()
        clocks.facts["cpu_ns"] = time.thread_time_ns()
        rival.kill()
    clocks.write()


if __name__ == "__main__":
    main()
