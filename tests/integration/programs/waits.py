"""What the calls that take the status of a child say, in every way in which they are called."""

import ctypes
import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

names: dict[int, str] = {}


def show(name: str, call: Callable[[], object]) -> None:
    """Print what a call returns, with the names of processes in place of their ids, or its error."""
    try:
        result = call()
    except OSError as error:
        print(name, errno.errorcode[error.errno or 0])
        return
    values = list(result) if isinstance(result, tuple) else [result]
    print(name, *[names.get(value, value) if isinstance(value, int) else value for value in values])


def child(name: str, status: int = 0, *, group: bool = False, stop: bool = False, seconds: float = 0) -> int:
    pid = os.fork()
    if pid == 0:
        if group:
            os.setpgid(0, 0)
        if stop:
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(seconds)
        os._exit(status)
    if group:
        os.setpgid(pid, pid)
    names[pid] = name
    return pid


def until_over(pid: int) -> None:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def info(found: os.waitid_result | None) -> object:
    return None if found is None else (found.si_pid, found.si_signo, found.si_status, found.si_code)


def plain() -> None:
    show("none", os.wait)
    show("none at once", lambda: os.waitpid(-1, os.WNOHANG))
    show("another's", lambda: os.waitpid(1, 0))
    show("bad options", lambda: os.waitpid(-1, 1 << 20))
    show("bad options of waitid", lambda: os.waitid(os.P_ALL, 0, 0))
    show("not there", lambda: os.waitpid(-(1 << 31), 0))
    child("any", 3)
    show("any", os.wait)
    one = child("this", 4)
    show("this", lambda: os.waitpid(one, 0))
    late = child("late", 5, seconds=0.3)
    show("not yet", lambda: os.waitpid(late, os.WNOHANG))
    show("not yet by waitid", lambda: info(os.waitid(os.P_PID, late, os.WEXITED | os.WNOHANG)))
    show("late", lambda: os.waitpid(late, 0))
    show("again", lambda: os.waitpid(late, 0))


def groups() -> None:
    own, other = child("own group", 6), child("other group", 7, group=True)
    until_over(own)
    until_over(other)
    show("other group", lambda: os.waitpid(-other, 0))
    show("own group", lambda: os.waitpid(0, 0))
    show("no such group", lambda: os.waitpid(-other, 0))
    another = child("by waitid", 8, group=True)
    show("group by waitid", lambda: info(os.waitid(os.P_PGID, another, os.WEXITED)))


def stops() -> None:
    pid = child("stops", 9, stop=True)
    show("stopped", lambda: os.waitpid(pid, os.WUNTRACED))
    os.kill(pid, signal.SIGCONT)
    show("continued", lambda: os.waitpid(pid, os.WCONTINUED))
    show("ended", lambda: os.waitpid(pid, os.WUNTRACED | os.WCONTINUED))
    pid = child("stops again", 10, stop=True)
    show("stopped by waitid", lambda: info(os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED)))
    os.kill(pid, signal.SIGKILL)
    show("left there", lambda: info(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)))
    show("taken", lambda: info(os.waitid(os.P_PID, pid, os.WEXITED)))
    show("not there", lambda: info(os.waitid(os.P_PID, pid, os.WEXITED)))
    pid = child("by descriptor", 11)
    descriptor = os.pidfd_open(pid)
    show("by descriptor", lambda: info(os.waitid(os.P_PIDFD, descriptor, os.WEXITED)))
    os.close(descriptor)


def usage() -> None:
    pid = os.fork()
    if pid == 0:
        while time.process_time() < 0.2:
            pass
        os._exit(12)
    names[pid] = "busy"
    found, status, used = os.wait4(pid, 0)
    print("usage", names[found], status, 0.15 < used.ru_utime + used.ru_stime < 2, used.ru_maxrss > 1000)


def handlers() -> None:
    reaped: list[int] = []

    def reap(number: int, frame: FrameType | None) -> None:
        reaped.append(os.waitpid(-1, os.WNOHANG)[1])

    signal.signal(signal.SIGCHLD, reap)
    pid = child("of the handler", 13, seconds=0.1)
    time.sleep(0.5)
    show("taken by the handler", lambda: os.waitpid(pid, 0))
    print("handler", reaped)

    def fails(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, fails)
    pid = child("interrupted", 14, seconds=0.6)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        os.waitpid(pid, 0)
    except InterruptedError:
        print("interrupted")
    show("after it", lambda: os.waitpid(pid, 0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    child("ignored", 15)
    show("ignored", os.wait)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def threads() -> None:
    """Many threads wait for any of many children: each is taken once."""
    taken: list[int] = []

    def take() -> None:
        while True:
            try:
                taken.append(os.wait()[0])
            except ChildProcessError:
                return

    pids = [child(f"child {number}", seconds=0.2 + number % 3 * 0.01) for number in range(40)]
    waiting = [threading.Thread(target=take) for _ in range(8)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    print("threads", sorted(taken) == sorted(pids))


def cancelled() -> None:
    """A thread that waits can be cancelled, and takes nothing then."""
    pid = child("not taken", 16, seconds=0.5)
    libc, thread, result = ctypes.CDLL(None), ctypes.c_ulong(), ctypes.c_void_p()
    libc.pthread_create(ctypes.byref(thread), None, libc.wait, None)
    time.sleep(0.1)
    libc.pthread_cancel(thread)
    libc.pthread_join(thread, ctypes.byref(result))
    print("cancelled", ctypes.c_long(result.value or 0).value)
    show("left by the cancelled", lambda: os.waitpid(pid, 0))
    print("number", os.open("/dev/null", os.O_RDONLY))


for part in (plain, groups, stops, usage, handlers, threads, cancelled):
    part()
