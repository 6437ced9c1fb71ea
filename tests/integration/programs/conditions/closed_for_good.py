"""Closes every descriptor, ours among them, and works on, as a daemon does, until a file named ``done`` is there."""

import os
import time


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


burn(0.1)
os.closerange(3, 4096)
end = time.monotonic() + 60
while not os.path.exists("done") and time.monotonic() < end:
    burn(0.05)
print("done", flush=True)
