"""Goes into a root directory of its own, changes its working folder and its umask, and goes on."""

import os
import sys
import time


def churn(seconds: float, name: str) -> None:
    """New code objects and CPU time: the recorder has to write much."""
    end, number = time.process_time() + seconds, 0
    while time.process_time() < end:
        number += 1
        source = f"def {name}_{number}_{'x' * 2000}(): return sum(range(3000))\n{name}_{number}_{'x' * 2000}()\n"
        exec(compile("\n" * (number % 90) + source, name, "exec"))


churn(0.1, "before")
os.mkdir("cage")
os.mkdir("cage/inner")
os.umask(0o777)
if "chroot" in sys.argv:
    os.chroot("cage")
    os.chdir("/inner")
else:
    os.chdir("cage/inner")
print(os.getcwd() if "chroot" in sys.argv else os.path.basename(os.getcwd()), os.umask(0o777))
churn(0.5, "within")
print(os.listdir("."))
