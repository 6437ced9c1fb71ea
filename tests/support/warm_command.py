"""Commands that read a recording, each in a process of its own, without waiting for the same imports each time.

A server that has imported what the readers need forks for every command. So a command has its own folder, environment,
output and exit status, as if started from a shell, for a tenth of the time: most tests of recorded programs read what
they recorded. What the imports themselves do is tested where ``python -m tachograph`` is started.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

READERS = frozenset({"analyze", "diff", "export", "info", "recover", "scrub"})
"""The commands that run here. The others start programs or stay, or have a process in their tests for its own sake."""

IMPORTED = (
    "numpy",
    "pandas",
    "pyarrow.parquet",
    "tachograph.cli",
    "tachograph.analyzer.commands",
    "tachograph.analyzer.commands.diff",
    "tachograph.analyzer.commands.export",
    "tachograph.analyzer.diff.compare",
    "tachograph.analyzer.profile.build",
    "tachograph.analyzer.render.html.page",
    "tachograph.analyzer.render.json_document",
    "tachograph.analyzer.render.terminal.difference",
    "tachograph.analyzer.render.terminal.report",
)
"""What the server imports. What is missing here is only slower."""

_REQUEST_BYTES = 1 << 20
_START_S = 120.0
"""How long it takes at most until the server answers: on a busy machine its imports take seconds."""


class WarmCommand:
    """The server of this process of tests; started with the first command, gone with us."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._here: socket.socket | None = None

    def run(
        self, arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        """Run ``tachograph ARGUMENTS`` to its end; raises `subprocess.TimeoutExpired` after ``timeout`` seconds."""
        request = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": env}).encode()
        assert len(request) < _REQUEST_BYTES
        with self._lock, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            here = self._started()
            socket.send_fds(here, [request], [output.fileno(), errors.fileno()])
            here.settimeout(_START_S)
            pid = _answer(here)
            here.settimeout(timeout)
            try:
                status = _answer(here)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                here.settimeout(_START_S)
                _answer(here)
                raise subprocess.TimeoutExpired(list(arguments), timeout) from None
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(list(arguments), status, output.read().decode(), errors.read().decode())

    def _started(self) -> socket.socket:
        if self._here is None:
            self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with there:
                # Without -P the folder of this file would be the first to be searched.
                command = [sys.executable, "-P", __file__, str(there.fileno())]
                # One thread, which is what may fork.
                env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                self._server = subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=env)
        return self._here


def _answer(here: socket.socket) -> int:
    data = here.recv(8)
    if not data:
        raise ConnectionError("the server of warm commands is gone")
    return int.from_bytes(data, "little", signed=True)


def serve(there: socket.socket) -> None:
    """Fork for each request until the other end is gone; in the fork, run the command and do not return."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(there, _REQUEST_BYTES, 2)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            there.close()
            _become_command(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        there.send(pid.to_bytes(8, "little", signed=True))
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(BrokenPipeError):
            there.send(os.waitstatus_to_exitcode(status).to_bytes(8, "little", signed=True))


def _become_command(request: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, env = request["arguments"], request["env"]
    assert isinstance(arguments, list)
    assert isinstance(env, dict)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["tachograph", *arguments]
    from tachograph.start import run

    run()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
