"""Recursion near Python's own limit in a thread whose stack is just large enough for code that is not watched."""

import json
import threading
import time


def deep(depth: int) -> int:
    return 0 if depth == 0 else 1 + deep(depth - 1)


def work() -> None:
    end = time.monotonic() + 1
    while time.monotonic() < end:
        reached.append(deep(900))


reached: list[int] = []
threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
while thread.is_alive():
    sum(range(1000))
print(json.dumps({"depth": max(reached)}))
