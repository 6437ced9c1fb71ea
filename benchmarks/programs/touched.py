"""Allocates an array and touches a part of it.

python touched.py BYTES PERCENT REPORT [--decorate]     # writes what it holds, in bytes, as JSON
"""

import builtins
import json
import sys
from pathlib import Path

import numpy as np


def work(size: int, percent: int) -> int:
    """Holds the array for a moment. Its pages are fresh from the system and take no memory until they are touched."""
    array = np.empty(size, np.uint8)
    array[: size * percent // 100] = 1
    total = sum(range(3_000_000))  # long enough to be seen by those that look now and then
    return len(array) if total else 0


def main() -> None:
    """`profile` is the decorator of profilers that see decorated functions only."""
    run = builtins.__dict__["profile"](work) if "--decorate" in sys.argv else work
    held = run(int(sys.argv[1]), int(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps({"held_bytes": held}), encoding="utf-8")


if __name__ == "__main__":
    main()
