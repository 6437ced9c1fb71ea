"""Closes every descriptor again and again, and opens its own: each must stay what the program made of it."""

import os
import sys
import tempfile
import threading
import time

stop = False


def churn() -> None:
    number = 0
    while not stop:
        number += 1
        source = f"def f{number}_{'x' * 3000}(): return sum(range(2000))\nf{number}_{'x' * 3000}()\n"
        exec(compile("\n" * (number % 90) + source, "made up", "exec"))


thread = threading.Thread(target=churn)
thread.start()
folder, wrong, rounds, end = tempfile.mkdtemp(), 0, 0, time.monotonic() + 0.6
while time.monotonic() < end or rounds <= 3:
    os.closerange(3, 1024)
    opened = []
    for number in range(12):
        fd = os.open(f"{folder}/{number}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        opened.append(fd)
        os.write(fd, b"%d of %d" % (number, rounds))
    wrong += opened != list(range(3, 15))
    time.sleep(0.001)
    for number, fd in enumerate(opened):
        wrong += os.pread(fd, 100, 0) != b"%d of %d" % (number, rounds)
    rounds += 1
stop = True
thread.join()
os.closerange(3, 1024)
print(wrong, rounds > 3, sorted(os.listdir("/proc/self/fd"))[:3])
os.close(0)
os.close(2)
sys.stdout.flush()
