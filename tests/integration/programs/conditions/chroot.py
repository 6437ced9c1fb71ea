"""Goes into a root directory of its own, changes its working folder and its umask, and goes on."""

import os
import sys
import time

from tachograph.recorder import span


def write_much(count: int) -> None:
    """Spans of 10 KB each: more than the recorder has room for without making another file."""
    for number in range(count):
        with span("s" * 10_000, number=number):
            sum(range(20_000))
        time.sleep(0.005)


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
write_much(300)
print(os.listdir("."))
