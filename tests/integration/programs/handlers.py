"""Uses every signal that a profiler might want, while burning CPU, and reports what came of each.

Prints one JSON object; counts that depend on time are given as whether they are in the range that they must be in.
"""

import ctypes
import faulthandler
import json
import signal
import sys
import time
from types import FrameType

counts: dict[str, int] = {}


def count(number: int, frame: FrameType | None) -> None:
    name = signal.Signals(number).name if number < signal.SIGRTMIN else str(number)
    counts[name] = counts.get(name, 0) + 1


def spin(seconds: float) -> None:
    """Burns user time, and reads the clock seldom: a loop of such calls delays the kernel's CPU timers on a busy machine."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(20_000):
            pass


def main() -> None:
    found: dict[str, object] = {}
    names = ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGTRAP", "SIGSEGV", "SIGBUS", "SIGUSR1", "SIGUSR2", "SIGPIPE")
    for name in names:
        found[f"{name} before"] = repr(signal.signal(getattr(signal, name), count))
    for number in (signal.SIGTRAP, signal.SIGSEGV, signal.SIGBUS, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        for _ in range(3):
            signal.raise_signal(number)
            spin(0.01)
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0.02, 0.02)
    spin(0.6)
    found["timers set"] = [signal.getitimer(t)[1] for t in (0, 1, 2)]
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF"):
        found[f"{name} in range"] = 8 <= counts.pop(name, 0) <= 200
    found["counts"] = counts
    found["handlers"] = [repr(signal.getsignal(getattr(signal, name)) is count) for name in names]

    for real_time in (signal.SIGRTMIN, signal.SIGRTMIN + 1, signal.SIGRTMAX, signal.SIGRTMAX - 1):
        before = signal.signal(real_time, count)
        for _ in range(4):
            signal.raise_signal(real_time)
        spin(0.05)
        found[f"real-time {int(real_time)}"] = [repr(before), counts.pop(str(int(real_time)), 0)]

    faulthandler.enable()
    found["faulthandler"] = faulthandler.is_enabled()
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False, chain=False)
    signal.raise_signal(signal.SIGUSR1)
    faulthandler.disable()

    if len(sys.argv) > 1:
        library = ctypes.PyDLL(sys.argv[1])
        library.oracle_sigaltstack.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        found["alternate stack"] = library.oracle_sigaltstack(signal.SIGUSR2, 20, 300_000_000)
    found["mask"] = sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    print(json.dumps(found))


main()
