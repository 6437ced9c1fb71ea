"""Blocks every signal and takes the ones that it was sent from a signalfd: no other may come out of it."""

import ctypes
import os
import select
import signal
import struct
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
signal.pthread_sigmask(signal.SIG_BLOCK, every)
mask = bytearray(128)
for number in every:
    mask[(number - 1) // 8] |= 1 << (number - 1) % 8
fd = libc.signalfd(-1, bytes(mask), os.O_NONBLOCK | os.O_CLOEXEC)
assert fd >= 0, ctypes.get_errno()
taken: list[int] = []


def drain() -> None:
    while select.select([fd], [], [], 0)[0]:
        data = os.read(fd, 128 * 16)
        taken.extend(struct.unpack_from("I", data, at)[0] for at in range(0, len(data), 128))


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


thread = threading.Thread(target=burn, args=(0.15,))
thread.start()
for _ in range(5):
    os.kill(os.getpid(), signal.SIGUSR1)
    burn(0.04)
    drain()
os.kill(os.getpid(), signal.SIGRTMIN + 3)
thread.join()
drain()
print([int(number) for number in taken], sorted(map(int, signal.sigpending())))
print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))) == sorted(every - {32, 33}))
