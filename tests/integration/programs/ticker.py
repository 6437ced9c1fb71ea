"""Burns CPU in a known function and measures it: writes its pid, then the CPU nanoseconds so far, into files.

Arguments: the folder of these files, and the seconds after which it ends, if no file ``stop`` ends it earlier.
"""

import os
import sys
import time
from pathlib import Path


def work() -> int:
    total = 0
    for index in range(20_000):  # @work
        total += index & 7  # @work
    return total


def main() -> None:
    folder = Path(sys.argv[1])
    seconds = float(sys.argv[2])
    (folder / "pid").write_text(str(os.getpid()), encoding="utf-8")
    end, spent, new = time.monotonic() + seconds, 0, folder / "spent.new"
    while time.monotonic() < end and not (folder / "stop").exists():
        begin = time.thread_time_ns()
        for _ in range(10):
            work()
        spent += time.thread_time_ns() - begin
        new.write_text(str(spent), encoding="utf-8")
        new.rename(folder / "spent")
    (folder / "done").write_text("done", encoding="utf-8")
    print("finished")
    sys.exit(4)


main()
