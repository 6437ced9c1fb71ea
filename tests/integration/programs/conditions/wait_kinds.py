"""All ways to learn of a child's end: by descriptor, without taking it, ignored, by signal, stopped; orphans, daemons."""

import ctypes
import os
import select
import signal
import time

SET_DEATH_SIGNAL, GET_DEATH_SIGNAL, SET_SUBREAPER, GET_SUBREAPER = 1, 2, 36, 37
libc = ctypes.CDLL(None, use_errno=True)


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def child(status: int, *signals: signal.Signals) -> int:
    pid = os.fork()
    if pid == 0:
        for each in signals:
            os.kill(os.getpid(), each)
        burn(0.03)
        os._exit(status)
    return pid


def end_of(pid: int, options: int = 0) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, options)[1])


def by_descriptor() -> None:
    descriptor = os.pidfd_open(child(3))
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    print("poll", bool(poll.poll(30_000)))
    for options in (os.WEXITED | os.WNOWAIT, os.WEXITED):
        told = os.waitid(os.P_PIDFD, descriptor, options)
        assert told is not None
        print("waitid", told.si_status, told.si_code == os.CLD_EXITED)
    os.close(descriptor)


def ignored() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        print(end_of(child(5)))
    except ChildProcessError:
        print("ended without a trace")
    met: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, _: met.append(number))
    print("handled", end_of(child(5)), len(met))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def stopped() -> None:
    pid = child(6, signal.SIGSTOP)
    print("stopped", os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]))
    os.kill(pid, signal.SIGCONT)
    print("goes on", os.WIFCONTINUED(os.waitpid(pid, os.WCONTINUED)[1]), end_of(pid))


def orphans() -> None:
    value = ctypes.c_int(-1)
    libc.prctl(GET_SUBREAPER, ctypes.byref(value))
    print("adopts", value.value)
    libc.prctl(SET_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os._exit(child(7) == 0)
    print("middle", end_of(pid), "orphan", end_of(-1))
    libc.prctl(SET_SUBREAPER, 0)


def death_signals() -> None:
    pid = os.fork()
    if pid == 0:
        value = ctypes.c_int(-1)
        libc.prctl(SET_DEATH_SIGNAL, signal.SIGUSR1)
        libc.prctl(GET_DEATH_SIGNAL, ctypes.byref(value))
        os._exit(value.value)
    print("death signal", end_of(pid) == signal.SIGUSR1)


burn(0.1)
by_descriptor()
ignored()
stopped()
orphans()
death_signals()
try:
    os.waitid(os.P_ALL, 0, os.WEXITED)
except ChildProcessError:
    print("none is left")
