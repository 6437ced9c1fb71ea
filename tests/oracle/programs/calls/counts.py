"""The numbers that a program has counted itself, written where TRUTH in the environment says."""

import atexit
import json
import os
import time
from collections import Counter

CALLS: Counter[str] = Counter()
"""Calls by function, counted by what makes them, many at a time."""


def _write() -> None:
    if "TRUTH" not in os.environ:
        return
    with open(os.environ["TRUTH"], "w", encoding="utf-8") as file:
        json.dump({"n": CALLS, "cpu": time.process_time()}, file)


atexit.register(_write)
