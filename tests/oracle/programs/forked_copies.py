"""A parent that holds pages, and a forked process that writes to some of them and allocates others.

Argument 2 is the number of megabytes that the child writes to, argument 3 for how many seconds of CPU time at least: 0.25
unless it is given.
"""

import mmap
import os
import sys
import time

from memory_truth import MemoryTruth

MB = 1 << 20
PAGE = 4096


def write_to(pages: mmap.mmap, size: int, seconds: float) -> None:
    began = time.thread_time()
    for at in range(0, size, PAGE):  # @copied
        pages[at] = 2  # @copied
        while time.thread_time() - began < seconds * at / size:  # @copied
            pass  # @copied


def shares(name: str) -> int:
    """What the kernel says of this process's pages as they are shared."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123
        (line,) = (line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def main() -> None:
    truth = MemoryTruth()
    pages = mmap.mmap(-1, 120 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, 120 * MB, PAGE):
        pages[at] = 1
    size, seconds = int(sys.argv[2]) * MB, float((sys.argv[3:] or ["0.25"])[0])
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        time.sleep(0.3)
        write_to(pages, size, seconds)
        more = bytearray(b"x" * (30 * MB))
        time.sleep(1.5)
        spin(0.1)
        del more
        os.write(ends[1], f"{shares('Pss')} {shares('Private_Clean') + shares('Private_Dirty')}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    truth.facts["proportional"], truth.facts["private"] = map(int, os.read(ends[0], 100).split())
    truth.sizes["copied"] = size
    truth.facts["child"] = child
    truth.write()


if __name__ == "__main__":
    main()
