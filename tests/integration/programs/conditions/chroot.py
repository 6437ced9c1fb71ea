"""Goes into a root directory of its own, changes its working folder and its umask, and goes on."""

import os
import sys
import time

from tachograph.recorder import span


MUCH = {f"field_{number}": "x" * 190 for number in range(19)}


def write_much(count: int) -> None:
    """Spans of 4 KB each, as large as they get."""
    for _ in range(count):
        with span("s", **MUCH):
            sum(range(5_000))
        time.sleep(0.0005)


write_much(20)
os.mkdir("cage")
os.mkdir("cage/inner")
os.umask(0o777)
if "chroot" in sys.argv:
    os.chroot("cage")
    os.chdir("/inner")
else:
    os.chdir("cage/inner")
print(os.getcwd() if "chroot" in sys.argv else os.path.basename(os.getcwd()), os.umask(0o777))
write_much(1500)
print(os.listdir("."))
