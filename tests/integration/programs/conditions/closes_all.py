"""Closes all descriptors, as daemons do, and has files of its own in their places: they stay its own."""

import os
import time

os.closerange(3, 1024)
own = [os.open("/dev/null", os.O_RDWR) for _ in range(40)]


def lost() -> list[int]:
    gone = []
    for descriptor in own:
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}") != "/dev/null":
                gone.append(descriptor)
        except OSError:
            gone.append(descriptor)
    return gone


def work(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(500))


work(2)
print("parent", lost(), flush=True)
if os.fork() == 0:
    work(0.2)
    print("child", lost(), flush=True)
    os._exit(0)
os.wait()
print("parent", lost())
text = open("text.txt", "w")  # noqa: SIM115 - it is never closed: the interpreter does it, after all else
text.write("complete")
