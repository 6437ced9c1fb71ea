"""The socket at which processes of a recording pass on their memory files, and ask for files; broker.py answers.

It is there before the program is, and imports as little as it can.
"""

from __future__ import annotations

import _socket
import os

BACKLOG = 1024
SECRET_BYTES = 16


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


def overcommits() -> bool:
    """Whether the kernel promises memory that it may not have (vm.overcommit_memory is not 2).

    Where it does not, a page that it cannot give when it is touched is a SIGBUS: memory files are filled beforehand.
    """
    try:
        with open("/proc/sys/vm/overcommit_memory", "rb") as file:
            return file.read(1) != b"2"
    except OSError:
        return False
