from __future__ import annotations

import os
import pty
import subprocess
import sys

PROGRAM = """
import sys
from tachograph.recorder.command.messages import waiting
with waiting("recovering a recording", float(sys.argv[1])):
    sys.stdin.readline()
print("done", file=sys.stderr)
"""


def test_a_terminal_is_told_and_nothing_is_left_of_it() -> None:
    terminal, stderr = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr, env={**os.environ, "TERM": "xterm"})
    os.close(stderr)
    told = b""
    while b" 0 s" not in told and b" 1 s" not in told:  # waits as long as it takes
        told += os.read(terminal, 4096)
    assert told.startswith(b"\r\x1b[Krecovering a recording ")
    process.communicate(b"\n", timeout=60)
    rest = b""
    while b"done" not in rest:
        rest += os.read(terminal, 4096)
    os.close(terminal)
    assert rest.endswith(b"\r\x1b[Kdone\r\n")


def test_it_fits_into_a_narrow_terminal_and_waits_before_it_says_something() -> None:
    terminal, stderr = pty.openpty()
    for after, columns, expected in (("0", "12", b"\r\x1b[Krecover 0 s"), ("1000", "80", b"")):
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": columns}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, after], stdin=subprocess.PIPE, stderr=stderr, env=environment
        )
        told = b""
        while expected not in told:
            told += os.read(terminal, 4096)
        process.communicate(b"\n", timeout=60)
        while b"done" not in told:
            told += os.read(terminal, 4096)
        assert told.startswith(expected)
        assert bool(expected) or told == b"done\r\n"
    os.close(stderr)
    os.close(terminal)


def test_a_pipe_is_told_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, "0"], input="\n", capture_output=True, text=True, check=True)
    assert done.stderr == "done\n"
