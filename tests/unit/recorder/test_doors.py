"""How a process can be attached to: which door, and the one line where there is none."""

import os
import sys

import pytest

from integration import support
from tachograph.recorder.attached.doors import PENDING_CALL, REMOTE_EXEC, Closed, door_of, may_trace
from tachograph.recorder.attached.running_processes import Process, look

OWN = look(os.getpid())


def state_of(process: Process, *, stands_by: bool = False) -> str:
    door = door_of(process, stands_by=stands_by)
    if isinstance(door, str):
        return door
    assert isinstance(door, Closed)
    assert "\n" not in door.message
    assert door.message.startswith(f"process {process.pid} ")
    return door.state


def test_this_interpreter_can_be_entered() -> None:
    assert door_of(OWN, stands_by=False) == (REMOTE_EXEC if sys.version_info >= (3, 14) else PENDING_CALL)


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({"user": OWN.user + 1}, "another user's"),
        ({"elsewhere": True}, "in a container"),
        ({"bits": 32}, "32 bits"),
        ({"version": None, "executable": "/bin/sleep"}, "not Python"),
    ],
)
def test_what_no_standby_helps_with(changed: dict[str, object], state: str) -> None:
    for stands_by in (False, True):
        assert state_of(OWN._replace(**changed), stands_by=stands_by) == state  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "state", "words"),
    [
        ({"recorded": True}, "is recorded", "is being recorded already"),
        ({"version": None, "executable": "/bin/python"}, "no standby", "tachograph standby"),
        ({"version": (3, 10)}, "other version", "tachograph records 3.11 to"),
        ({"version": (3, 11 + (sys.version_info[1] == 11))}, "other version", "use a tachograph that runs under its"),
        ({"stopped": True}, "is stopped", "kill -CONT"),
        ({"tracer": 4711}, "is traced", "by process 4711"),
    ],
)
def test_what_a_standby_helps_with(changed: dict[str, object], state: str, words: str) -> None:
    process = OWN._replace(**changed)  # type: ignore[arg-type]
    assert state_of(process, stands_by=True) == "standby"
    assert state_of(process) == state
    door = door_of(process, stands_by=False)
    assert isinstance(door, Closed)
    assert words in door.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_right_to_trace_is_asked_of_the_kernel() -> None:
    pid = os.getpid()
    assert may_trace(pid)
    assert support.as_user(65534, lambda: may_trace(pid)) == "False"
