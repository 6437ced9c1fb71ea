"""Memory whose pages a thread of the program serves (userfaultfd), that wipes itself or is missing in forks, is secret.

Who touches it elsewhere waits for that thread, is killed, or makes the program's own count of pages wrong.
"""

import ctypes
import fcntl
import os
import struct
import threading
import time

PAGE, SIZE = 4096, 16 << 20
USERFAULTFD, MEMFD_SECRET = 323, 447
API, REGISTER, COPY = 0xC018AA3F, 0xC020AA00, 0xC028AA03
DONTFORK, WIPEONFORK = 10, 18
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def mapped(size: int, flags: int = 0x22, fd: int = -1) -> int:
    return int(libc.mmap(None, size, 3, flags, fd, 0))


def serve(fd: int, page: int, served: list[int]) -> None:
    while True:
        (address,) = struct.unpack_from("Q", os.read(fd, 32), 16)
        served.append(address)
        fcntl.ioctl(fd, COPY, bytearray(struct.pack("QQQQq", address & -PAGE, page, PAGE, 0, 0)))


def serves_its_pages() -> None:
    fd = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
    if fd < 0:
        print("no userfaultfd")
        return
    fcntl.ioctl(fd, API, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
    place, page, served = mapped(SIZE), mapped(PAGE), list[int]()
    ctypes.memset(page, 9, PAGE)
    fcntl.ioctl(fd, REGISTER, bytearray(struct.pack("QQQQ", place, SIZE, 1, 0)))
    threading.Thread(target=serve, args=(fd, page, served), daemon=True).start()
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    for number in range(100):
        libc.memset(place + number * PAGE, 4, 10)
        burn(0.001)
    copy = ctypes.create_string_buffer(64 * PAGE)
    libc.memcpy(ctypes.addressof(copy), place + 1000 * PAGE, 64 * PAGE)
    print("served", len(served), copy.raw.count(9))


def differs_in_forks() -> None:
    wiped, missing = mapped(SIZE), mapped(SIZE)
    for place, advice in ((wiped, WIPEONFORK), (missing, DONTFORK)):
        ctypes.memset(place, 1, SIZE)
        print(libc.madvise(place, SIZE, advice))
    pid = os.fork()
    if pid == 0:
        gone = libc.mincore(missing, SIZE, ctypes.create_string_buffer(SIZE // PAGE)) != 0
        burn(0.05)
        os._exit(10 * (ctypes.string_at(wiped, 1) == b"\0") + gone)
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def keeps_a_secret() -> None:
    fd = libc.syscall(MEMFD_SECRET, 0)
    if fd < 0:
        print("no secret")
        return
    os.ftruncate(fd, PAGE)
    place = mapped(PAGE, 1, fd)
    ctypes.memset(place, 3, PAGE)
    burn(0.05)
    print("secret", ctypes.string_at(place, 1))


burn(0.1)
serves_its_pages()
differs_in_forks()
keeps_a_secret()
