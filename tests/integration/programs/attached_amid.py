"""Is in the midst of what programs seldom do when it is attached to: ``attached_amid.py KIND``, until there is ``go``.

Then it goes on for a while, and says what came of it: the same, attached to or not.
"""

import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator

libc = ctypes.CDLL(None, use_errno=True)


class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]  # noqa: RUF012


def burn() -> None:
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        sum(range(500))


def handlers() -> Iterator[None]:
    """Handles every signal but those of real time, and has a small stack of its own for that."""
    got: list[int] = []
    numbers = sorted(set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD})
    for number in numbers:
        signal.signal(number, lambda number, frame: got.append(number))
    room = ctypes.create_string_buffer(16384)
    assert libc.sigaltstack(ctypes.byref(Stack(ctypes.addressof(room), 0, len(room))), None) == 0
    yield
    for number in numbers:
        signal.raise_signal(number)
        burn()
    found = Stack()
    libc.sigaltstack(None, ctypes.byref(found))
    print(got == numbers, found.sp == ctypes.addressof(room), found.size, found.flags)


def timers() -> Iterator[None]:
    """Is sampled by two timers of its own."""
    got: dict[int, int] = {signal.SIGPROF: 0, signal.SIGALRM: 0}

    def count(number: int, frame: object) -> None:
        got[number] += 1

    for number, timer in ((signal.SIGPROF, signal.ITIMER_PROF), (signal.SIGALRM, signal.ITIMER_REAL)):
        signal.signal(number, count)
        signal.setitimer(timer, 0.005, 0.005)
    yield
    before = dict(got)
    end = time.monotonic() + 20
    while any(got[number] < before[number] + 20 for number in got) and time.monotonic() < end:
        burn()
    intervals = [signal.setitimer(timer, 0)[1] for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL)]
    print([got[number] >= before[number] + 20 for number in got], [round(each, 3) for each in intervals])


def masked() -> Iterator[None]:
    """Blocks every signal, and takes what it was sent later."""
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, every)
    yield
    for number in (signal.SIGUSR1, signal.SIGPROF, signal.SIGRTMAX):
        os.kill(os.getpid(), number)
        burn()
    print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))
    taken = []
    while (found := signal.sigtimedwait(every, 0.1)) is not None:
        taken.append(int(found.si_signo))
    print(taken, sorted(map(int, signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1, signal.SIGSTKFLT]))))
    print(sorted(map(int, signal.pthread_sigmask(signal.SIG_SETMASK, every - {signal.SIGUSR2}))))
    print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))
    burn()


def childless() -> Iterator[None]:
    """Would take any child for one of its own."""
    seen = set()
    stop = False

    def reap() -> None:
        while not stop:
            try:
                seen.add(os.waitpid(-1, os.WNOHANG))
            except ChildProcessError:
                time.sleep(0.001)

    thread = threading.Thread(target=reap)
    thread.start()
    yield
    time.sleep(0.2)
    stop = True
    thread.join()
    print(seen)


def switches() -> Iterator[None]:
    """Has chosen how long a thread waits until it asks for the interpreter: long, beside short calls."""
    sys.setswitchinterval(0.02)
    yield
    print(sys.getswitchinterval())


def homeless() -> Iterator[None]:
    """Its working directory has been removed, as a folder of a release that was replaced."""
    os.mkdir("removed")
    os.chdir("removed")
    os.rmdir("../removed")
    sys.path.insert(0, "")
    yield
    try:
        print(os.getcwd())
    except FileNotFoundError:
        print("removed")


def comings() -> Iterator[None]:
    """Forks without an exec, and starts threads that end at once, all the while."""
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks in a process of several threads, with its id (3.12)
    stop, wrong, interval = False, [], sys.getswitchinterval()

    def fork() -> None:
        number = 0
        while not stop:
            number = (number + 1) % 200
            child = os.fork()
            if child == 0:
                sum(range(2000))
                os._exit(number if sys.getswitchinterval() == interval else 255)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != number:
                wrong.append(number)

    def start() -> None:
        while not stop:
            thread = threading.Thread(target=len, args=("",))
            thread.start()
            thread.join()

    threads = [threading.Thread(target=each) for each in (fork, start)]
    for thread in threads:
        thread.start()
    yield
    time.sleep(0.5)
    stop = True
    for thread in threads:
        thread.join()
    print(wrong, threading.active_count())


kinds = (handlers, timers, masked, childless, switches, homeless, comings)
go = os.path.abspath("go")
work = {each.__name__: each for each in kinds}[sys.argv[1]]()
next(work)
print("ready", flush=True)
limit = time.monotonic() + 60
while not os.path.exists(go) and time.monotonic() < limit:
    burn()
for _ in range(50):
    burn()
next(work, None)
sys.exit(5)
