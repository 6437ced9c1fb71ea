"""A busy thread and a loop of the shell share one processor; then the thread also sleeps for moments.

The kernel's own count of how long the thread was ready to run and had no processor is the truth, beside the clocks.
"""

import os
import subprocess
import time
from pathlib import Path

from truth import Clocks, seconds


def ready_ns() -> int:
    """What this thread waited for a processor so far."""
    return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])


def busy(clocks: Clocks, end: float, nap_s: float) -> None:
    """Work until ``end``, with a nap between the blocks."""
    while time.monotonic() < end:
        clocks.run("busy", lambda rounds: sum(range(rounds)), 200_000)
        if nap_s > 0:
            time.sleep(nap_s)


def main() -> None:
    clocks = Clocks()
    length = seconds(2.0)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    with subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) as rival:
        begin_ns, begin_cpu_ns, begin_ready_ns = time.monotonic_ns(), time.thread_time_ns(), ready_ns()
        busy(clocks, time.monotonic() + length, 0.0)
        busy(clocks, time.monotonic() + length, 0.002)
        wall_ns = time.monotonic_ns() - begin_ns
        clocks.facts["ready_ns"] = ready_ns() - begin_ready_ns
        clocks.facts["cpu_ns"] = time.thread_time_ns() - begin_cpu_ns
        clocks.facts["wall_ns"] = wall_ns
        rival.kill()
    clocks.write()


if __name__ == "__main__":
    main()
