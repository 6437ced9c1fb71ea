"""The process beside a program that records itself: it does what the recording command does beside its program.

It is neither a child of the program nor in its process group, so that nothing the program does affects it. It ends when
it is told that the recording is over, or when the program has ended in whatever way. The program waits until it is
ready, so what it needs for its work is imported after that (beside_session.py).
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from contextlib import suppress
from typing import Any

from tachograph.format.plain_records import from_json
from tachograph.recorder.attached.beside_process import COMPLETE, CONTROL, READY
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.command.support import is_installed
from tachograph.recorder.fd_broker.socket_name import listen
from tachograph.recorder.problems import Refused, one_line

ARRIVAL_S = 60.0
"""How long the program may take to come where ``attach`` has started this process, and goes on waiting for it."""

MOST_FACTS = 16 << 20
_CREDENTIALS = struct.Struct("3i")


def main() -> None:
    """Accompany the program that ``sys.argv[1]`` names, complete its recording, and say how that went."""
    given: Any = from_json(sys.argv[1])
    with suppress(OSError), _stream(given) as control:  # the program has ended, or has not come
        try:
            problem = _accompany(control)
        # Whatever it is, the program is told, as there is no other place to say it.
        except Exception as error:
            message = error.message if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
            control.sendall(one_line(message).encode("utf-8", "replace") + b"\n")
            raise
        control.sendall(COMPLETE if problem is None else problem.encode("utf-8", "replace"))
    os._exit(0)  # an orderly shutdown of pyarrow takes longer than all the rest


def _accompany(control: socket.socket) -> str | None:
    facts, folder = _facts(control)
    if not is_installed("pyarrow"):
        raise Refused(f"recording needs pyarrow, which is not installed for {sys.executable}: pip install pyarrow")
    if facts["working_directory"] is not None:
        with suppress(OSError):
            os.chdir(facts["working_directory"])
    if not folder.has_its_name():
        raise Refused(f"{folder.path} is another folder here than for the program")
    name, listener = listen() or ("", None)
    control.sendall(READY + b" " + name.encode() + b"\n")
    from tachograph.recorder.attached.beside_session import accompany

    return accompany(facts, folder, control, listener)


def _stream(given: dict[str, Any]) -> socket.socket:
    """The stream to the program: inherited from it, or that on which it comes to where ``attach`` listens."""
    number = given.get("listens")
    if number is None:
        return socket.socket(fileno=CONTROL)
    with socket.socket(fileno=number) as listener:
        listener.settimeout(ARRIVAL_S)
        until = given["until"]
        arrival = select.poll()
        arrival.register(number, select.POLLIN)
        arrival.register(until, 0)  # its other end is closed when attach has ended
        while True:
            arrived = dict(arrival.poll(ARRIVAL_S * 1000))
            if number not in arrived:
                raise TimeoutError
            stream, _ = listener.accept()
            peer = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, user, _ = _CREDENTIALS.unpack(peer)
            if (pid, user) == (given["pid"], os.geteuid()):
                os.close(until)
                stream.settimeout(None)
                return stream
            stream.close()


def _facts(control: socket.socket) -> tuple[dict[str, Any], HeldFolder]:
    """Receives the facts from the program, and a descriptor of the folder that it has made for the recording.

    What has the folder's name by now may be another one.
    """
    text, descriptors = b"", list[int]()
    while not text.endswith(b"\n") and len(text) < MOST_FACTS:
        part, received, _, _ = socket.recv_fds(control, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        if not part:
            break
        text += part
        descriptors += received
    facts: Any = from_json(text.decode())
    if len(descriptors) != 1:
        raise Refused("the program could not hand over the folder of the recording")
    return facts, HeldFolder(facts["directory"], descriptors[0])
