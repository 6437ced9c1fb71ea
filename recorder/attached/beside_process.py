"""The process beside the program, as the program sees it: started or met, told what to do, and waited for at the end.

It does for a program that records itself what the recording command does beside its program (beside.py). A program that
records itself starts it with an interpreter of its own; ``attach`` starts it itself, and the program starts nothing.

They talk through one stream. The program sends a line of JSON, the facts, with a descriptor of the folder of the
recording, and is answered ``ready NAME``, NAME being that of the fd broker's socket or nothing, or one line that says
what is wrong. At the end the program sends ``end``, and is answered COMPLETE or what is wrong; until then an empty line
comes now and then.
"""

from __future__ import annotations

import _socket
import os
import sys

import tachograph
from tachograph.format.plain_records import IN_ASCII, to_json
from tachograph.recorder.attached.own_interpreter import own_interpreter
from tachograph.recorder.problems import RecordingError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUN = """\
import sys
try:
    import site
    for place in sys.argv[2:]:
        if place not in sys.path:
            # Its .pth files say where the rest is, if this interpreter is of another environment.
            (site.addsitedir if place.endswith("-packages") else sys.path.append)(place)
    from tachograph.recorder.attached.beside import main
except Exception as error:
    import os
    os.write({control}, f"it cannot import what it needs: {{type(error).__name__}}: {{error}}\\n".encode())
    raise
main()
"""
"""What the process beside the program runs; ``control`` is a descriptor to complain to.

Its arguments are what it is, in JSON, and where modules are.
"""

CONTROL = 3
"""The descriptor of its end of the stream, where the program has started it."""

READY, COMPLETE = b"ready", b"complete"
SILENCE_S = 30.0
"""How long nothing may come from it: it says each second that it is there."""

MOST_ANSWER = 1 << 16
_CREDENTIALS = 12
"""Bytes of struct ucred: three numbers of 4."""


def start(native: Any, facts: dict[str, Any]) -> Stream:
    """Start the process beside this one with an interpreter of its own; the stream to it.

    Raises RecordingError, in one line, if that is not possible.
    """
    python = own_interpreter()
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    environment = [
        f"{key}={value}" for key, value in os.environ.items() if not key.startswith(("TACHOGRAPH_", "PYTHONSTARTUP"))
    ]
    shown = {"pid": facts["pid"], "of": facts["directory"]}
    arguments = [python, "-P", "-c", RUN.format(control=CONTROL), to_json(shown, IN_ASCII), *places()]
    try:
        # As bytes: paths and variables need not be UTF-8.
        started = ([os.fsencode(each) for each in given] for given in (arguments, environment))
        native.start_orphan(*started, [theirs.fileno()])
    except (RuntimeError, ValueError) as error:
        ours.close()
        raise RecordingError(one_line(str(error))) from None
    finally:
        theirs.close()
    return Stream(native, ours)


def meet(native: Any, name: str) -> Stream:
    """The stream to a process of this user's that listens at ``name`` in the abstract namespace.

    Raises RecordingError, in one line, if there is none.
    """
    stream = Stream(native, _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM))
    try:
        stream.settimeout(SILENCE_S)
        stream.connect(f"\0{name}")
        peer = stream.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _CREDENTIALS)
    except OSError as error:
        stream.close()
        raise RecordingError(f"the process that is to write the recording cannot be reached: {error}") from None
    if int.from_bytes(peer[4:8], sys.byteorder) != os.geteuid():
        stream.close()
        raise RecordingError("the process that is to write the recording is another user's")
    return stream


def begin(stream: _socket.socket, facts: dict[str, Any], folder: int) -> str | None:
    """Have it begin; the name of the fd broker's socket, if there is one.

    ``folder`` is a descriptor of the folder of the recording, whose name another one may have at any moment.
    Raises RecordingError, in one line, if it cannot. Closing the stream ends it.
    """
    stream.settimeout(SILENCE_S)
    text = b""
    try:
        _send_unless_ended(stream, to_json(facts, IN_ASCII, " ").encode() + b"\n", folder)
        while not text.endswith(b"\n") and len(text) < MOST_ANSWER and (part := stream.recv(MOST_ANSWER)):
            text += part
    except TimeoutError:
        raise RecordingError(f"the process beside this one has not begun for {SILENCE_S:g} s") from None
    except OSError:
        pass  # what it has said before counts
    word, _, name = text.rstrip(b"\n").partition(b" ")
    if word != READY:
        why = one_line(text.decode("utf-8", "replace")) or "it has ended"
        raise RecordingError(f"the process beside this one cannot begin: {why}")
    return name.decode() or None


def complete(stream: Stream) -> str | None:
    """Have it complete the recording; what went wrong, if anything did."""
    text = b""
    if not stream.is_ours():
        stream.close()
        return "the program has closed the connection to the process beside it, which completes what it has"
    try:
        stream.settimeout(SILENCE_S)
        _send_unless_ended(stream, b"end\n")
        while part := stream.recv(MOST_ANSWER):
            text = (text + part).lstrip(b"\n")
    except TimeoutError:
        return f"the process beside this one has said nothing for {SILENCE_S:g} s; 'tachograph recover' completes it"
    except OSError:
        pass  # it has ended before it has read all, and may have said why
    finally:
        stream.close()
    if not text:
        return "the process beside this one is gone; 'tachograph recover' completes it"
    return None if text == COMPLETE else one_line(text.decode("utf-8", "replace"))


def places() -> list[str]:
    """Where modules are, and this package, which a program that was entered from outside may not have on its path."""
    package = os.path.dirname(os.path.abspath(tachograph.__file__))
    own = [os.path.dirname(package)] if os.path.basename(package) == tachograph.__name__ else []
    return [*(absolute for place in sys.path if (absolute := _absolute(place)) is not None), *own]


def _absolute(place: str) -> str | None:
    """None where it is relative to a working directory that has been removed: then nothing is in it."""
    try:
        return os.path.abspath(place)
    except OSError:
        return None


def _send_unless_ended(stream: _socket.socket, data: bytes, descriptor: int | None = None) -> None:
    """Send all of it, or as much as the other end takes before it ends: it may have said why, which can still be read.

    Raises TimeoutError.
    """
    try:
        _send(stream, data, descriptor)
    except ConnectionError:
        return


def _send(stream: _socket.socket, data: bytes, descriptor: int | None = None) -> None:
    no_signal = _socket.MSG_NOSIGNAL  # SIGPIPE may be the program's end
    if descriptor is not None:
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor.to_bytes(4, sys.byteorder))
        data = data[stream.sendmsg([data], [rights], no_signal) :]
    stream.sendall(data, no_signal)


class Stream(_socket.socket):
    """To the process beside this one, under a descriptor number that the program does not write to by chance.

    A program that closes all descriptors closes this one as well, and may have a file of its own there.
    """

    def __init__(self, native: Any, stream: _socket.socket) -> None:
        number = native.move_high(stream.detach())
        super().__init__(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, number)
        self._file = os.fstat(number)

    def is_ours(self) -> bool:
        """The number is still that of the stream."""
        try:
            return os.path.samestat(self._file, os.fstat(self.fileno()))
        except OSError:
            return False

    def close(self) -> None:
        """Close it, unless the program has."""
        if self.is_ours():
            super().close()
        else:
            self.detach()
