"""Commands of the tests, each in a process of its own, without waiting for the same imports each time.

A server that has imported what a command needs forks for every one. So a command has its own folder, environment,
input, output and exit status, as if started from a shell, for a fraction of the time: most tests record a program and
read what they recorded. What the imports themselves do is tested where ``python -m tachograph`` is started.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

KINDS = {**dict.fromkeys(("analyze", "diff", "export", "info", "recover", "scrub"), "read"), "record": "record"}
"""Which server runs a command: what records does without much that readers need. The other commands start programs or
stay, or have a process in their tests for its own sake."""

IMPORTED = {
    "read": (
        "numpy",
        "pandas",
        "pyarrow.parquet",
        "tachograph.cli",
        "tachograph.analyzer.commands.analyze",
        "tachograph.analyzer.commands.diff",
        "tachograph.analyzer.commands.export",
        "tachograph.analyzer.commands.info",
        "tachograph.analyzer.diff.comparison",
        "tachograph.analyzer.profile.build",
        "tachograph.analyzer.render.html.report_page",
        "tachograph.analyzer.render.json_document",
        "tachograph.analyzer.render.terminal.diff_lines",
        "tachograph.analyzer.render.terminal.report",
    ),
    "record": (
        "tachograph.project",
        "tachograph.recorder.collect.output",
        "tachograph.recorder.command.command_line",
        "tachograph.recorder.command.launch",
        "tachograph.recorder.command.manifests",
        "tachograph.recorder.command.record",
        "tachograph.recorder.command.session",
        "tachograph.recorder.command.messages",
        "tachograph.recorder.fd_broker.socket_name",
    ),
}
"""What the servers import. What is missing here is only slower."""

COMMAND = [sys.executable, "-m", "tachograph"]

_REQUEST_BYTES = 1 << 20
_START_S = 120.0
"""How long it takes at most until the server answers: on a busy machine its imports take seconds."""


def run_command(
    arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run ``tachograph ARGUMENTS`` to its end, by a server if there is one for it.

    Raises `subprocess.TimeoutExpired` after ``timeout`` seconds.
    """
    kind = KINDS.get(arguments[0]) if arguments else None
    run = _server(kind).run if kind else run_alone
    return run(arguments, cwd, env, timeout, stdin)


def run_alone(
    arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run ``tachograph ARGUMENTS`` to its end in an interpreter of its own."""
    command = [*COMMAND, *arguments]
    return subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )


class WarmCommand:
    """The server of this process of tests, for what reads or for what records; it starts with the first command."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._here: socket.socket | None = None

    def run(
        self, arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run ``tachograph ARGUMENTS`` to its end; raises `subprocess.TimeoutExpired` after ``timeout`` seconds.

        Several threads may do so at once.
        """
        request = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": env}).encode()
        assert len(request) < _REQUEST_BYTES
        end = time.monotonic() + timeout
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, _Streams(stdin) as streams:
            with there, self._lock:
                socket.send_fds(self._started(), [request], [*streams.theirs, there.fileno()])
            streams.close_theirs()
            here.settimeout(_START_S)
            pid = _answer(here)
            in_time = streams.read(end)
            here.settimeout(max(0.001, end - time.monotonic()))
            try:
                status = _answer(here)
            except TimeoutError:
                in_time = False
                os.kill(pid, signal.SIGKILL)
                here.settimeout(_START_S)
                _answer(here)
            if not in_time:
                raise subprocess.TimeoutExpired(list(arguments), timeout)
            return subprocess.CompletedProcess(list(arguments), status, *streams.texts())

    def _started(self) -> socket.socket:
        if self._here is None:
            self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with there:
                # Without -P the folder of this file would be the first to be searched.
                command = [sys.executable, "-P", __file__, str(there.fileno()), self._kind]
                # One thread, which is what may fork.
                env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                self._server = subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, env=env)
        return self._here


@cache
def _server(kind: str) -> WarmCommand:
    return WarmCommand(kind)


class _Streams:
    """Pipes to and from a command: what it reads is written ahead, what it writes is kept."""

    def __init__(self, stdin: str) -> None:
        input_read, input_write = os.pipe()
        with open(input_write, "wb") as file:
            assert len(stdin.encode()) <= 1 << 16, "more than a pipe holds"
            file.write(stdin.encode())
        pairs = [os.pipe() for _ in range(2)]
        self.theirs = [input_read, *(write for _, write in pairs)]
        self._ours = {read: bytearray() for read, _ in pairs}

    def __enter__(self) -> "_Streams":
        return self

    def __exit__(self, *_: object) -> None:
        self.close_theirs()
        for descriptor in self._ours:
            os.close(descriptor)

    def close_theirs(self) -> None:
        """The other ends, once the command has them."""
        while self.theirs:
            os.close(self.theirs.pop())

    def read(self, end: float) -> bool:
        """All that is written until no process can write any more; False if that was not until ``end``."""
        with selectors.DefaultSelector() as selector:
            for descriptor in self._ours:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in selector.select(left):
                    data = os.read(key.fd, 1 << 16)
                    self._ours[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
        return True

    def texts(self) -> tuple[str, str]:
        """Standard output and standard error, with line ends as `subprocess` makes them."""
        output, errors = (_text(data) for data in self._ours.values())
        return output, errors


def _text(data: bytearray) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def _answer(here: socket.socket) -> int:
    data = here.recv(8)
    if not data:
        raise ConnectionError("the server of warm commands is gone")
    return int.from_bytes(data, "little", signed=True)


def serve(there: socket.socket, kind: str) -> None:
    """Fork for each request until the other end is gone; in a fork of the fork, run the command and do not return.

    The first fork answers: it says the process id of the command, waits for its end, and says how it ended.
    """
    for name in IMPORTED[kind]:
        importlib.import_module(name)
    if kind == "record":
        from tachograph.recorder.command.session import import_for_the_end, leave_unneeded_out

        leave_unneeded_out()
        import_for_the_end()
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(there, _REQUEST_BYTES, 4)
        if not request:
            return
        if os.fork() == 0:
            there.close()
            _answer_request(json.loads(request), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue


def _answer_request(request: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    *streams, answers = descriptors
    pid = os.fork()
    if pid == 0:
        os.close(answers)
        _become_command(request, streams)
    for descriptor in streams:
        os.close(descriptor)
    os.write(answers, pid.to_bytes(8, "little", signed=True))
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):
        os.write(answers, os.waitstatus_to_exitcode(status).to_bytes(8, "little", signed=True))
    os._exit(0)


def _become_command(request: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, env = request["arguments"], request["env"]
    assert isinstance(arguments, list)
    assert isinstance(env, dict)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["tachograph", *arguments]
    sys.orig_argv = [*COMMAND, *arguments]
    from tachograph.start import run

    run()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
