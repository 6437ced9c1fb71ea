"""A program whose resident set is large for a moment only: argument 2 is ``file`` (pages of a mapped file) or ``heap``."""

import mmap
import resource
import sys
import tempfile
import time

from memory_truth import MemoryTruth

SIZE = 160 << 20


def read_pages() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(SIZE)
        mapped = mmap.mmap(file.fileno(), 0)
        for place in range(0, SIZE, mmap.PAGESIZE):
            mapped[place] = 1
        mapped.close()


def fill_block() -> None:
    block = bytearray(SIZE)
    block[:: mmap.PAGESIZE] = b"x" * len(block[:: mmap.PAGESIZE])


def main() -> None:
    truth = MemoryTruth()
    time.sleep(0.3)
    (read_pages if sys.argv[2] == "file" else fill_block)()
    time.sleep(0.3)
    truth.facts["most_resident"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    truth.write()


if __name__ == "__main__":
    main()
