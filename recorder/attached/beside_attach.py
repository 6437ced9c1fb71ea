"""The process beside the program, started by ``attach``: with this command's interpreter, packages and environment.

The program has only to come to it (beside_process.py): it starts nothing that a client names, and need not know of any
interpreter. In a session of its own the process outlives this command, which may be killed: the recording is completed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tachograph.recorder.attached.beside_process import RUN, places
from tachograph.recorder.attached.own_interpreter import own_interpreter
from tachograph.recorder.collect.child_process import ChildProcess
from tachograph.recorder.problems import RecordingError

SECRET_BYTES = 16
GOODBYE_S = 10.0
"""How long its end is waited for, when the recording is complete."""


class BesideProcess:
    """The process, and the ``name`` in the abstract namespace at which it waits for the program.

    It ends if this command does before the program has come: it holds a pipe whose other end is this command's.
    """

    def __init__(self, pid: int, directory: Path, python: str) -> None:
        self.name = f"tachograph-beside-{os.urandom(SECRET_BYTES).hex()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(f"\0{self.name}")
            listener.listen()
            number = listener.fileno()
            theirs, self._ours = os.pipe()
            shown = {"pid": pid, "of": os.fspath(directory), "listens": number, "until": theirs}
            try:
                self._process = ChildProcess(
                    [python, "-P", "-c", RUN.format(control=2), json.dumps(shown), *places()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[number, theirs],
                    start_new_session=True,
                )
            except BaseException:
                os.close(self._ours)
                raise
            finally:
                os.close(theirs)

    def lives(self) -> bool:
        """True if it may still complete the recording."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait for its end, for a while."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GOODBYE_S)
        os.close(self._ours)

    def kill(self) -> None:
        """End it: there is no recording."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


def start_beside(pid: int, directory: Path) -> BesideProcess | None:
    """A process that waits for process ``pid``; None where this command knows no interpreter, or cannot start it."""
    try:
        return BesideProcess(pid, directory, own_interpreter())
    except (RecordingError, OSError):
        return None
