"""Python code and native code by turns, so much of each: how much of the time is native?

python mixture.py PYTHON NATIVE REPORT     # passes of each; writes the CPU seconds of each as JSON
"""

import json
import sys
import time
import zlib
from pathlib import Path

BLOCK = bytes(range(256)) * 200


def python(passes: int) -> int:
    """Bytecode and nothing else."""
    total = 0
    for number in range(passes):
        total += number * number % 7
    return total


def native(passes: int) -> int:
    """Native code, called once per pass and for most of a millisecond."""
    checksum = 0
    for _ in range(passes):
        checksum ^= len(zlib.compress(BLOCK, 6))
    return checksum


def main() -> None:
    """Runs both in turns. Time is CPU time: others may be at work."""
    turns = 20
    pythons, natives = (int(text) // turns for text in sys.argv[1:3])
    seconds = {"python": 0.0, "native": 0.0}
    for _ in range(turns):
        start = time.process_time()
        python(pythons)
        middle = time.process_time()
        native(natives)
        seconds["python"] += middle - start
        seconds["native"] += time.process_time() - middle
    Path(sys.argv[3]).write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
