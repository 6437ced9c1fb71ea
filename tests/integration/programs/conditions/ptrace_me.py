"""Has itself traced by its parent, as a check against debuggers does: from then on a signal would stop it for ever."""

import ctypes
import sys
import time

libc = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else None, use_errno=True)
ptrace = libc.ptrace_of_libc if "looks_up" in sys.argv[-1] else libc.ptrace


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


burn(0.1)
PTRACE_TRACEME = 0
print(ptrace(PTRACE_TRACEME, 0, None, None))
burn(0.3)
print(ptrace(PTRACE_TRACEME, 0, None, None), ctypes.get_errno())
burn(0.1)
print("the end")
