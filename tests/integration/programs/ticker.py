"""Burns CPU on a known line and counts: writes its pid, then how far it has come, into the files given. Ends at 'stop'."""

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
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end and not (folder / "stop").exists():
        work()
        rounds += 1
        (folder / "rounds").write_text(str(rounds), encoding="utf-8")
    (folder / "done").write_text("done", encoding="utf-8")
    print("finished")
    sys.exit(4)


main()
