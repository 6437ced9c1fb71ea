"""signal.set_wakeup_fd: a byte for every signal of the program's own, and for none beside."""

import os
import signal
import time

reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
count = 0


def handler(number: int, frame: object) -> None:
    global count
    count += 1


for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGTRAP, signal.SIGUSR1):
    signal.signal(number, handler)
print(signal.set_wakeup_fd(writer))
for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
    signal.setitimer(timer, 0.01, 0.01)
end = time.process_time() + 0.3
while time.process_time() < end:
    sum(range(500))
for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
    signal.setitimer(timer, 0)
signal.raise_signal(signal.SIGTRAP)
signal.raise_signal(signal.SIGUSR1)
seen = os.read(reader, 65536)
print(sorted(set(seen)), len(seen) >= count > 20)
print(signal.set_wakeup_fd(-1) == writer)
