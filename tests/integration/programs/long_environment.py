"""Starts programs with environments just below the kernel's limit, which the recorder's variables would exceed."""

import os
import resource
import subprocess

STACK = 1 << 20  # of which a quarter is for arguments and environment


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


def environment(size: int) -> dict[str, str]:
    return {f"X{number:03}": "y" * 1000 for number in range(size // 1009)} | {"Z": "z" * (size % 1009)}


def works(size: int) -> bool:
    try:
        return subprocess.run(["/bin/true"], env=environment(size), preexec_fn=limit).returncode == 0
    except OSError:
        return False


low, high = 100_000, 300_000
while high - low > 1:
    middle = (low + high) // 2
    low, high = (middle, high) if works(middle) else (low, middle)
print(low)
for less in (5_000, 500, 50):
    child = os.fork()
    if child == 0:
        limit()
        os.execve("/bin/echo", ["echo", "executed"], environment(low - less - 8))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
