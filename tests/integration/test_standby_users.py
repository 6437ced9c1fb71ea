"""A server on standby that acts as another user for a moment: it serves neither that user nor its own then."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import STANDBY, attach, is_complete, running
from tachograph import __version__
from tachograph.recorder.attached.connection import standing_by

pytestmark = [
    pytest.mark.native,
    pytest.mark.recording,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
]

NOBODY = 65534

ACTS_AS_ANOTHER_USER = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    os.seteuid(int(line))
    print(os.geteuid(), flush=True)
"""
"""A server of root's that does something with a user's rights, as file servers do."""


def tell(process: "subprocess.Popen[str]", user: int) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{user}\n")
    process.stdin.flush()
    assert process.stdout.readline() == f"{user}\n"


def ask_when_told(name: str, request: Mapping[str, object], told: int, answer: int) -> None:
    """Connect, ask when something comes through one pipe, and write what is answered into another one."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(f"\0{name}")
        os.read(told, 1)
        try:
            client.sendall(json.dumps(request).encode() + b"\n")
            os.write(answer, repr(client.recv(1000)).encode())
        except OSError:
            os.write(answer, b"b''")


def test_a_user_that_a_server_acts_as_is_not_answered(tmp_path: Path) -> None:
    """It connects while the server has its rights, and asks when the server is root again."""
    wanted = tmp_path / "made.tacho"
    request = {"tachograph": __version__, "do": "start", "path": str(wanted), "options": {}}
    with running([sys.executable, "-c", ACTS_AS_ANOTHER_USER], tmp_path, STANDBY) as process:
        support.wait_for(lambda: process.pid in standing_by(), "the standby")
        (name,) = standing_by()[process.pid]
        # What it asks while the server acts as the user is refused as well.
        for asks_as in (0, NOBODY):
            tell(process, NOBODY)
            reader, writer = os.pipe()

            pid, answers = support.fork_as(NOBODY, partial(ask_when_told, name, request, reader))
            time.sleep(0.3)  # it is accepted
            tell(process, asks_as)
            os.write(writer, b".")
            with open(answers, "rb") as file:
                assert file.read() == b"b''"
            os.waitpid(pid, 0)
            os.close(reader)
            os.close(writer)
        assert not wanted.exists()
        support.one_line(attach(process.pid, cwd=tmp_path), "'s: run this command as that user")
        tell(process, 0)
        assert attach(process.pid, "--duration", "100ms", "-o", "run.tacho", cwd=tmp_path).status == 0
        assert is_complete(tmp_path / "run.tacho")


def test_root_is_not_answered_while_its_server_acts_as_another_user(tmp_path: Path) -> None:
    request = {"tachograph": __version__, "do": "dump"}
    with running([sys.executable, "-c", ACTS_AS_ANOTHER_USER], tmp_path, STANDBY) as process:
        support.wait_for(lambda: process.pid in standing_by(), "the standby")
        (name,) = standing_by()[process.pid]
        for user, is_answered in ((0, True), (NOBODY, False), (0, True)):
            tell(process, user)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(f"\0{name}")
                client.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(client.makefile("rb").readline())
            assert ("threads" in answer) == is_answered
            assert ("acts as another user" in answer.get("problem", "")) != is_answered
