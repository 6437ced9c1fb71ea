"""Threads that wait for every signal there is, in all the ways there are, while others use the CPU."""

import os
import signal
import threading
import time

every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
signal.pthread_sigmask(signal.SIG_BLOCK, every)
got: list[object] = []


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def wait() -> None:
    while True:
        burn(0.02)
        number = signal.sigwait(every)
        got.append(int(number))
        if number == signal.SIGTERM:
            return


waiter = threading.Thread(target=wait)
waiter.start()
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD, signal.SIGRTMAX, signal.SIGTERM):
    burn(0.04)
    assert waiter.ident is not None
    signal.pthread_kill(waiter.ident, number)
    while len(got) == 0 or got[-1] != number:
        time.sleep(0.001)
waiter.join()
signal.raise_signal(signal.SIGHUP)
found = signal.sigwaitinfo(every)
got.append((int(found.si_signo), found.si_pid == os.getpid()))
for _ in range(20):
    burn(0.004)
    got.append(signal.sigtimedwait(every, 0.004))
print(got)
