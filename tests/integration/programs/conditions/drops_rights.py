"""Begins as root, becomes nobody, as servers do, and goes on."""

import os
import resource
import time


def churn(seconds: float) -> None:
    end, number = time.process_time() + seconds, 0
    while time.process_time() < end:
        number += 1
        source = f"def within_{number}_{'x' * 2000}(): return sum(range(3000))\nwithin_{number}_{'x' * 2000}()\n"
        exec(compile("\n" * (number % 90) + source, "made up", "exec"))


churn(0.05)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(os.getresuid(), os.getresgid(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0)
churn(0.5)
