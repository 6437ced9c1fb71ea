"""Where processes of a recording find the recording command: its socket, and the process log in its memory.

Processes pass on their memory files through the socket, and ask for files; broker.py answers. Both are there before the
program is, so as little as possible is imported here.
"""

from __future__ import annotations

import _socket
import os

BACKLOG = 1024
SECRET_BYTES = 16

_NOT_EXECUTABLE = 8
"""MFD_NOEXEC_SEAL, since Linux 6.3."""


def listen_at(name: str) -> _socket.socket:
    """A socket that listens at this name, and whose messages name their senders. OSError if there can be none."""
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    try:
        # Before a process can connect: what is sent before it is accepted counts as well.
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_PASSCRED, 1)
        listener.bind(f"\0{name}")
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def listen() -> tuple[str, _socket.socket] | None:
    """An unused name, and the socket that listens there; None if there can be none.

    The name is in the abstract namespace: no file stands for it, and it is found from below any root directory.
    """
    name = f"tachograph-{os.urandom(SECRET_BYTES).hex()}"
    try:
        return name, listen_at(name)
    except OSError:  # a sandbox without such sockets: processes write to the disk themselves, and the recording says so
        return None


def open_log() -> int | None:
    """A process log in memory; None where there can be none: processes append to the one in the spool."""
    for more in (_NOT_EXECUTABLE, 0):
        try:
            return os.memfd_create("tachograph-log", os.MFD_CLOEXEC | more)
        except OSError:
            continue
    return None


def place_of_log(descriptor: int) -> str:
    """The path and the identity of the process log that processes get, so that they append to no other file."""
    status = os.fstat(descriptor)
    return f"/proc/{os.getpid()}/fd/{descriptor}:{status.st_dev}:{status.st_ino}"


def overcommits() -> bool:
    """True if the kernel promises memory that it may not have (vm.overcommit_memory is not 2).

    Where it does not, a page that it cannot give when it is touched is a SIGBUS: memory files are filled beforehand.
    """
    try:
        with open("/proc/sys/vm/overcommit_memory", "rb") as file:
            return file.read(1) != b"2"
    except OSError:
        return False
