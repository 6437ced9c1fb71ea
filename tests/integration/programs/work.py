"""Burns CPU time in a function of the name that it is given, and says who it is: what a test looks for in a recording."""

import json
import os
import sys
import time
from typing import Any

# Who reads such a clock all the time may lose the processor before each tick, and with it the samples (how-it-works.md).
FUNCTION = """
def {}(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(200_000): pass
"""


def work(name: str, seconds: float = 0.06) -> None:
    """One line on standard output, written at once: the process that forked us may not flush what we have."""
    line = (
        json.dumps({"name": name, "pid": os.getpid(), "parent": os.getppid(), "environment": dict(os.environ)}) + "\n"
    )
    os.write(1, line.encode())
    names: dict[str, Any] = {"time": time}
    exec(FUNCTION.format(name), names)
    names[name](seconds)


if __name__ == "__main__":
    work(sys.argv[1])
