"""For an interpreter of any version: memory that is held, work, and a forked child that works."""

import json
import os
import time


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sorted(range(5000), reverse=True)


held = bytearray(64 << 20)
copied = bytes(held)
del copied
work(0.2)
for _ in range(2):
    child = os.fork()
    if child == 0:
        work(0.1)
        os._exit(5)
    status = os.waitpid(child, 0)[1]
work(0.1)
print(json.dumps({"pid": os.getpid(), "child": status >> 8, "environment": dict(os.environ)}))
