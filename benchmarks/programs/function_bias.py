"""Two functions that compute the same, one with a call in its loop: how much time does each take?

python function_bias.py CALLING INLINED REPORT     # passes of each; writes the CPU seconds of each as JSON
"""

import json
import sys
import time
from pathlib import Path


def step(total: int, number: int) -> int:
    """What the other function has in its loop."""
    if number % 3:
        total += number * 2
    else:
        total -= number
    return total


def calling(passes: int) -> int:
    """The loop with a call."""
    total = 0
    for number in range(passes):
        total = step(total, number)
    return total


def inlined(passes: int) -> int:
    """The loop without."""
    total = 0
    for number in range(passes):
        if number % 3:
            total += number * 2
        else:
            total -= number
    return total


def main() -> None:
    """Runs both in turns, so that neither has the machine's better half. Time is CPU time: others may be at work."""
    turns = 20
    calls, inlines = (int(text) // turns for text in sys.argv[1:3])
    seconds = {"calling": 0.0, "inlined": 0.0}
    for _ in range(turns):
        start = time.process_time()
        calling(calls)
        middle = time.process_time()
        inlined(inlines)
        seconds["calling"] += middle - start
        seconds["inlined"] += time.process_time() - middle
    Path(sys.argv[3]).write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
