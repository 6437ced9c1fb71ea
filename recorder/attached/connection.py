"""The connection to a process that stands by: finds its socket, makes sure whose it is, asks, and reads the answer."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tachograph import __version__
from tachograph.recorder.problems import Refused, one_line

SOCKETS = Path("/proc/net/unix")
_NAME = re.compile(r" @(tachograph-standby-(\d+)-[0-9a-f]{16})$", re.MULTILINE)
_CREDENTIALS = struct.Struct("3i")
MOST_ANSWER = 64 << 20
PATIENCE_S = 30.0
"""How long an answer is waited for. Beginning takes 30 ms where the interpreter is not held up."""


def standing_by() -> dict[int, set[str]]:
    """The names of sockets of processes that stand by; the numbers of processes are as they see them themselves.

    A name is listed once more for each connection that is open.
    """
    names: dict[int, set[str]] = {}
    with suppress(OSError):
        for name, pid in _NAME.findall(SOCKETS.read_text(encoding="utf-8", errors="replace")):
            names.setdefault(int(pid), set()).add(name)
    return names


def connect(pid: int) -> Connection | None:
    """A connection to process ``pid``; None if it does not stand by."""
    # A fork of it may hold its sockets for a moment, and other containers have processes of the same number.
    for name in standing_by().get(pid, ()):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(f"\0{name}")
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            connection.close()
            continue
        owner, user, _ = _CREDENTIALS.unpack(peer)
        if (owner, user) == (pid, os.geteuid()):
            return Connection(pid, connection)
        connection.close()
    return None


class Connection:
    """To one process. What it does not answer is Refused, in one line."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self._pid, self._connection = pid, connection

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what the process does for it."""
        self._connection.close()

    def fileno(self) -> int:
        """Can be read from when the process has ended."""
        return self._connection.fileno()

    def ask(self, what: str, while_true: Callable[[], bool] | None = None, **more: Any) -> dict[str, Any]:
        """The answer to a request (requests.py). Refused if there is none, or it says what is wrong.

        It is waited for for PATIENCE_S, and again as long as ``while_true`` is.
        """
        self._connection.settimeout(PATIENCE_S)
        text = b""
        try:
            self._connection.sendall(json.dumps({"tachograph": __version__, "do": what, **more}).encode() + b"\n")
            while not text.endswith(b"\n") and len(text) <= MOST_ANSWER and (part := self._receive(while_true)):
                text += part
        except TimeoutError:
            raise Refused(
                f"process {self._pid} has not answered for {PATIENCE_S:g} s: one of its threads keeps the interpreter"
            ) from None
        except OSError:
            text = b""
        try:
            answer = json.loads(text)
            problem = answer.get("problem")
        except (ValueError, AttributeError):
            raise Refused(f"process {self._pid} has ended, does not answer, or closed all descriptors") from None
        if problem is not None:
            raise Refused(f"process {self._pid}: {one_line(str(problem))}")
        return answer  # type: ignore[no-any-return]

    def _receive(self, while_true: Callable[[], bool] | None) -> bytes:
        while True:
            try:
                return self._connection.recv(1 << 16)
            except TimeoutError:
                if while_true is None or not while_true():
                    raise
