"""Takes SIGTRAP for itself while it computes, forks and starts programs, or dies of it: handle, fork, die."""

import os
import signal
import subprocess
import sys
import time
from array import array


def burn(seconds: float) -> int:
    """Native loads and stores below Python lines."""
    numbers, rounds = array("q", range(5000)), 0
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(20):
            numbers = array("q", bytes(numbers))
            numbers.reverse()
            rounds += sum(numbers) > 0
    return rounds


what = sys.argv[1]
burn(0.3)
if what == "handle":
    caught: list[int] = []
    before = signal.signal(signal.SIGTRAP, lambda number, frame: caught.append(number))
    assert before == signal.SIG_DFL, before
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTRAP)
        burn(0.1)
    print(len(caught))
elif what == "fork":
    for _ in range(5):
        child = os.fork()
        if child == 0:
            burn(0.1)
            os._exit(7)
        burn(0.05)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=False).returncode == 0
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
    burn(0.3)
    print(sorted(signal.sigpending()))
    os.execv(sys.executable, [sys.executable, "-c", "print(sum(range(10**6)))"])
else:
    os.kill(os.getpid(), signal.SIGTRAP)
print("done")
