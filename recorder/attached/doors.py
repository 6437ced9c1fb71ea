"""The attach methods of a running process, or why there is none: standby, ``sys.remote_exec``, a pending call."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from tachograph.recorder.attached.pending_call import places_in
from tachograph.recorder.attached.running_processes import Process, user_name
from tachograph.recorder.collect.unrecorded_pythons import NEWEST, OLDEST
from tachograph.recorder.problems import Refused, one_line

STANDBY, REMOTE_EXEC, PENDING_CALL = "standby", "remote_exec", "pending_call"
_REMOTE_EXEC = (3, 14)
_STAND_BY = "start it with 'tachograph standby', or with TACHOGRAPH_STANDBY=1"


class Closed(NamedTuple):
    """Why a process cannot be attached to: ``state`` in a word or two, ``message`` in one line."""

    state: str
    message: str


def door_of(process: Process, *, stands_by: bool) -> str | Closed:
    """STANDBY, REMOTE_EXEC or PENDING_CALL, or why there is none."""
    closed = _never(process)
    if closed is not None:
        return closed
    if stands_by:
        return STANDBY
    pid = process.pid
    if process.recorded:  # from its start, by the command, or by itself
        return Closed("is recorded", f"process {pid} is being recorded already, and does not stand by")
    return _way_in(process)


def check_can_be_asked(process: Process) -> None:
    """Refuse, in one line, a process that cannot be asked anything from here: what it is, and what to do."""
    closed = _never(process)
    if closed is not None:
        raise Refused(closed.message)


def _never(process: Process) -> Closed | None:
    pid = process.pid
    if process.user != os.geteuid():
        return Closed("another user's", f"process {pid} is {user_name(process.user)}'s: run this command as that user")
    if process.elsewhere:
        message = f"process {pid} runs in another container: run this command there (docker exec, kubectl exec)"
        return Closed("in a container", message)
    if process.bits == 32:
        return Closed("32 bits", f"process {pid} is a program of 32 bits, and tachograph records those of 64")
    if not process.is_python:
        name = one_line(os.path.basename(process.executable) or "?")
        message = f"process {pid} ({name}) is not Python: 'tachograph ps' lists what can be attached to"
        return Closed("not Python", message)
    return None


def _way_in(process: Process) -> str | Closed:
    pid, version = process.pid, process.version
    does_not = f"process {pid} does not stand by"
    if version is None:
        return Closed("no standby", f"{does_not}, and its version of CPython is not known: {_STAND_BY}")
    name = "CPython {}.{}".format(*version)
    if not OLDEST <= version <= NEWEST:
        supported = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
        return Closed("other version", f"process {pid} is {name}, and tachograph records {supported}")
    if sys.version_info[:2] != version:
        message = f"{does_not}: to enter it, use a tachograph that runs under its {name}, or {_STAND_BY}"
        return Closed("other version", message)
    if process.stopped:
        return Closed("is stopped", f"process {pid} is stopped: let it go on first (kill -CONT {pid})")
    if process.tracer:
        return Closed("is traced", f"{does_not}, and is traced already, by process {process.tracer}: end that first")
    if not may_trace(pid):
        message = (
            f"{does_not}, and this command may not trace it, which takes CAP_SYS_PTRACE, or 0 in"
            f" /proc/sys/kernel/yama/ptrace_scope: {_STAND_BY}"
        )
        return Closed("may not trace", message)
    if version >= _REMOTE_EXEC:
        return REMOTE_EXEC
    try:
        places_in(pid)
    except Refused as refused:
        return Closed("other build", refused.message)
    return PENDING_CALL


def may_trace(pid: int) -> bool:
    """True if the kernel lets this process trace that one, as gdb and strace do; nothing is done to it."""
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True
