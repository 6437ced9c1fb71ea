"""What a program sets by prctl, and limits of its own, are what it reads back and what it gets."""

import ctypes
import mmap
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
SET_DEATH_SIGNAL, GET_DEATH_SIGNAL, SET_DUMPABLE, GET_DUMPABLE = 1, 2, 4, 3
SET_NAME, SET_SLACK, GET_SLACK, SET_SUBREAPER, GET_SUBREAPER, SET_NO_HUGE, GET_NO_HUGE = 15, 29, 30, 36, 37, 41, 42
LOCKED = 65536


def prctl(number: int, *arguments: object) -> object:
    result = libc.prctl(number, *arguments, *(0,) * (4 - len(arguments)))
    return result if result >= 0 else os.strerror(ctypes.get_errno())


def read_back(number: int) -> int:
    value = ctypes.c_int(-1)
    prctl(number, ctypes.byref(value))
    return value.value


def status(name: str) -> list[str]:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return [line.split()[1] for line in lines if line.startswith(name)]


def own_name() -> None:
    print("a thread's name", Path("/proc/thread-self/comm").read_text(encoding="utf-8").strip(), flush=True)


prctl(SET_NAME, ctypes.c_char_p(b"own name"))
thread = threading.Thread(target=own_name)
thread.start()
thread.join()
print("at its parent's death", prctl(SET_DEATH_SIGNAL, signal.SIGKILL), read_back(GET_DEATH_SIGNAL))
print("takes orphans", read_back(GET_SUBREAPER), prctl(SET_SUBREAPER, 1), read_back(GET_SUBREAPER))
print("slack", prctl(SET_SLACK, 70_000), prctl(GET_SLACK))
print("small pages", prctl(GET_NO_HUGE), prctl(SET_NO_HUGE, 1), prctl(GET_NO_HUGE))
print("dumpable", prctl(GET_DUMPABLE), prctl(SET_DUMPABLE, 0), prctl(GET_DUMPABLE), prctl(SET_DUMPABLE, 1))

resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOCKED, LOCKED))
memory = mmap.mmap(-1, 1 << 20)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
print("locks", libc.mlock(address, ctypes.c_size_t(LOCKED)), status("VmLck"))
print("unlocks", libc.munlockall(), status("VmLck"))

got: list[int] = []
signal.signal(signal.SIGRTMIN + 3, lambda number, _: got.append(number))
resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))
os.kill(os.getpid(), signal.SIGRTMIN + 3)
print("with no room for signals", got == [signal.SIGRTMIN + 3])
signal.signal(signal.SIGXCPU, lambda number, _: got.append(number))
limit = int(time.process_time()) + 1
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 60))
while signal.SIGXCPU not in got:
    sum(range(10_000))
print("one signal at the limit", got.count(signal.SIGXCPU), time.process_time() > limit - 0.1)
sys.stdout.flush()
os.nice(3)
sys.exit(os.getpriority(os.PRIO_PROCESS, 0))
