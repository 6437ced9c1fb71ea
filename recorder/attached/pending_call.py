"""Enters a process: has its main thread make one call, or run a file, when it next runs Python.

That is CPython 3.11 to 3.13; later ones have sys.remote_exec, which does not find the main interpreter among several.

What ``Py_AddPendingCall`` would write is written from here, while the process's threads are stopped for a moment
(native/extension/entering.cpp): nothing is called in the process, and what is asked runs where handlers of signals
would. No debugger is needed; the right to trace is. The process must run the same interpreter's file as this one, so
that all is where it is here.
"""

from __future__ import annotations

import fcntl
import filecmp
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder import clock
from tachograph.recorder.attached.entry_code import entry, simple_entry
from tachograph.recorder.problems import Refused, reason

_STAND_BY = "start it with 'tachograph standby'"
PAUSE_S = 0.02
Places = tuple[int, int, int, int, int]
"""_PyRuntime, PyRun_SimpleString, a place for a text, one for code (0: there is none), and the bytes of the first."""

ROOM_KEPT = 8
"""Bytes of that which are used otherwise."""


class _Mapping(NamedTuple):
    start: int
    end: int
    offset: int
    path: str


class PendingCall:
    """One call that a process is to make: runs the file ``script`` there, in a thread of its own."""

    def __init__(self, pid: int, script: Path) -> None:
        """Raises Refused, in one line, if the process runs another interpreter."""
        from tachograph.recorder import _native

        self._pid, self._script, self._enter, self._places = pid, script, _native.enter, places_in(pid)
        path, room = os.fspath(script), self._places[4] - ROOM_KEPT
        self._code, self._simple = entry(path, pid), simple_entry(path, pid, room)

    def add(self, limit: float) -> None:
        """Add it. Raises Refused, in one line, if that is not possible until ``limit``, of the monotonic clock."""
        while (outcome := self._step("add")) == "busy" and time.monotonic() < limit:
            clock.rest(PAUSE_S)
        pid = self._pid
        match outcome:
            case "done":
                return
            case "gone":
                raise Refused(f"process {pid} has ended")
            case "busy":
                raise Refused(f"process {pid} has not made the calls that were asked of its main thread: {_STAND_BY}")
            case "not allowed":
                raise Refused(f"process {pid} is traced already, or may not be (CAP_SYS_PTRACE): {_STAND_BY}")
            case "too long":
                raise Refused(f"the name of the folder for temporary files (TMPDIR) is too long: {_STAND_BY}")
            case _:
                raise Refused(f"process {pid} cannot be entered: it begins or ends at this moment; try again")

    def remind(self) -> None:
        """Have the main thread check for calls again: it may have missed this one while it was added."""
        if self._step("remind") == "made" and self._script.exists():
            self._step("add")  # nothing could be called where the program was then

    def take_back(self) -> bool:
        """Cancels the call; True if it was not made, and will not be."""
        return self._step("take back") == "done"

    def _step(self, step: str) -> str:
        return self._enter(step, self._pid, self._places, self._code, self._simple)


@contextmanager
def alone(pid: int, limit: float) -> Iterator[None]:
    """Keeps others out that would enter the process at the same time. Raises Refused if one does until ``limit``.

    Only those that may trace the process can hold this lock: to open its memory takes the same right.
    """
    try:
        memory = open(f"/proc/{pid}/mem", "rb", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise Refused(f"process {pid} cannot be entered: {reason(error)}") from None
    with memory:
        while True:
            try:
                fcntl.flock(memory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > limit:
                    raise Refused(f"process {pid} is being entered by another tachograph: try again") from None
                clock.rest(PAUSE_S)
        yield


def places_in(pid: int) -> Places:
    """Where a process has them. Refused, in one line, if it runs another interpreter's file than this process."""
    try:
        from tachograph.recorder._native import own_places
    except ImportError:
        raise Refused(
            f"tachograph was installed without its native parts, which enter processes: {_STAND_BY}"
        ) from None
    own = own_places()
    if own is None:
        raise Refused(f"this build of CPython is not one that can be entered: {_STAND_BY}")
    runtime, function, text = (_there(pid, address) for address in own[:3])
    return runtime, function, text, own[3] and _there(pid, own[3]), own[4]


def run_in_main(pid: int, script: Path) -> bool:
    """Have the main thread of the main interpreter run a file, in a process of several interpreters (3.14 and later).

    False if it has one, or runs another interpreter's file than this process. Refused, in one line, if it fails.
    """
    from tachograph.recorder import _native

    try:
        runtime = _there(pid, _native.own_runtime())
    except Refused:
        return False
    if not _native.has_several_interpreters(pid, runtime):
        return False
    match _native.run_in_main(pid, runtime, os.fspath(script)):
        case "done":
            return True
        case "gone":
            raise Refused(f"process {pid} has ended")
        case "not allowed":
            raise Refused(
                f"process {pid} is traced already, or may not be entered (CAP_SYS_PTRACE, PYTHON_DISABLE_REMOTE_DEBUG):"
                f" {_STAND_BY}"
            )
        case "too long":
            raise Refused(f"the name of the folder for temporary files (TMPDIR) is too long: {_STAND_BY}")
        case _:
            raise Refused(f"process {pid} cannot be entered: it begins or ends at this moment; try again")


def _there(pid: int, address: int) -> int:
    """Where a process has what this one has at an address, in the interpreter's file. Refused if that is another."""
    ours, theirs = _mappings("self"), _mappings(str(pid))
    file = next((each for each in ours if each.start <= address < each.end and each.path), None)
    if file is None:
        raise Refused(f"this build of CPython is not one that can be entered: {_STAND_BY}")
    begins = min(each.start - each.offset for each in ours if each.path == file.path)
    path = next((path for path in dict.fromkeys(each.path for each in theirs) if _is_same(path, file.path)), None)
    if path is None:
        raise Refused(
            f"process {pid} does not stand by, and runs another build of CPython than this command ({file.path}):"
            f" use its own tachograph, or {_STAND_BY}"
        )
    return address - begins + min(each.start - each.offset for each in theirs if each.path == path)


def _mappings(process: str) -> list[_Mapping]:
    """The mappings of files that still exist."""
    mappings = []
    try:
        lines = Path("/proc", process, "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        raise Refused(f"process {process} has ended") from None
    for line in lines:
        addresses, _, offset, _, inode, *path = line.split(maxsplit=5)
        start, end = (int(each, 16) for each in addresses.split("-"))
        if path and int(inode):
            mappings.append(_Mapping(start, end, int(offset, 16), path[0]))
    return mappings


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other) or filecmp.cmp(path, other, shallow=False)
    except OSError:  # replaced since the program began
        return False
