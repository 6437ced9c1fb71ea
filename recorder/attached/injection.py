"""Has a process stand by for one client that was not started so: it is entered (doors.py)."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tachograph
from tachograph.recorder import clock
from tachograph.recorder.attached.connection import Connection, connect
from tachograph.recorder.attached.doors import REMOTE_EXEC, Closed, door_of
from tachograph.recorder.attached.entry_code import START
from tachograph.recorder.attached.pending_call import PendingCall, alone, run_in_main
from tachograph.recorder.attached.running_processes import Process
from tachograph.recorder.problems import Refused, one_line

PATIENCE_S = 10.0
"""How long the main thread is waited for: it runs what it is given when it next runs Python."""

LOOK_AGAIN_S = 1.0
BEGINNING_S = 30.0
"""How long the standby may take to begin, once the main thread has taken the call."""

# Removes itself, so that none is left that runs later than it is waited for. Then the standby ends after ten seconds.
# Whatever goes wrong is reported here: the program must not see it.
SCRIPT = """\
def stand_by():
    import os, sys
    os.unlink({script!r})
    try:
        try:
            import tachograph
        except ModuleNotFoundError:
            # Not by sys.path: other threads would see it longer meanwhile.
            from _frozen_importlib import _load
            from _frozen_importlib_external import spec_from_file_location
            _load(spec_from_file_location("tachograph", {package!r}, submodule_search_locations=[{place!r}]))
            # In an editable installation the native parts lie elsewhere.
            import tachograph.recorder
            tachograph.recorder.__path__.append({native!r})
        from tachograph.recorder.attached import standby
        standby.begin(once=True)
    except BaseException as error:
        with open({report!r}, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{{type(error).__name__}}: {{error}}")
    finally:
        try:
            os.rmdir({folder!r})
        except OSError:
            pass
"""
# The main thread is not kept, and is free for the program's signals: imports take some milliseconds. A child that it
# forks before it runs the file has been told to run it, too.
_IN_A_THREAD = "if c.getpid()=={pid}:start(stand_by)\n"

_STAYS = "stays"
"""The file beside a script that is left to the process, which has yet to run it; the process's id is in it."""
_NOTHING = "[__import__('os').unlink(path) for path in {files!r}]; __import__('os').rmdir({folder!r})\n"
"""What is left: it takes itself away, and the program's names stay as they are."""


def entered(process: Process) -> Connection:
    """A connection to a process that can be asked. Refused, in one line, if it neither stands by nor can be entered."""
    connection = connect(process.pid)
    door = door_of(process, stands_by=connection is not None)
    if isinstance(door, Closed):
        if connection is not None:
            connection.close()
        raise Refused(door.message)
    if connection is not None:
        return connection
    limit = time.monotonic() + PATIENCE_S
    with alone(process.pid, limit), _files(process.pid, in_a_thread=door == REMOTE_EXEC) as (script, report):
        if door == REMOTE_EXEC:
            return _by_remote_exec(process.pid, script, report)
        return _by_pending_call(process.pid, script, report, limit)


def _by_remote_exec(pid: int, script: Path, report: Path) -> Connection:
    try:
        if not run_in_main(pid, script):
            sys.remote_exec(pid, os.fspath(script))  # type: ignore[attr-defined]  # of 3.14
    except (OSError, RuntimeError) as error:
        raise Refused(why_not_entered(pid, error)) from None
    _take_away_what_stayed(pid)
    try:
        connection = _wait(pid, report, time.monotonic() + PATIENCE_S)
        if connection is None:
            raise Refused(_does_not_run(pid))
    except BaseException:  # an interrupt as well
        if Path(f"/proc/{pid}").exists():
            _leave_nothing_to_do(pid, script)
        raise
    return connection


def why_not_entered(pid: int, error: OSError | RuntimeError) -> str:
    """Why ``sys.remote_exec`` failed: it takes the newest interpreter, which may have no thread at the moment."""
    does_not = f"process {pid} does not stand by and cannot be entered ({one_line(str(error))})"
    if "main thread" in str(error) or "specified thread" in str(error):
        return f"{does_not}: it has more than one interpreter; start it with 'tachograph standby'"
    return f"{does_not}: that takes the right to trace it (ptrace), or start it with 'tachograph standby'"


def _leave_nothing_to_do(pid: int, script: Path) -> None:
    """Leaves a script that takes itself and its folder away, for the interpreter that was told to run one.

    It would complain on the program's standard error, when it goes on, of a script that is not there.
    """
    mark, other = script.with_name(_STAYS), script.with_name("other.py")
    mark.write_text(f"{pid}", encoding="utf-8")
    files = [os.fspath(script), os.fspath(mark)]
    other.write_text(_NOTHING.format(files=files, folder=os.fspath(script.parent)), encoding="utf-8")
    other.replace(script)


def _take_away_what_stayed(pid: int) -> None:
    """Scripts that were left to this process, which knows the latest only, or to one that has ended."""
    for mark in (mark for folder in _folders() for mark in Path(folder).glob(f"tachograph-*/{_STAYS}")):
        with suppress(OSError):
            if mark.parent.is_symlink() or mark.parent.stat().st_uid != os.geteuid():
                continue
            left_to = mark.read_text(encoding="utf-8", errors="replace")
            if left_to == f"{pid}" or not Path("/proc", left_to, "stat").exists():
                shutil.rmtree(mark.parent, ignore_errors=True)


def _by_pending_call(pid: int, script: Path, report: Path, limit: float) -> Connection:
    call = PendingCall(pid, script)
    call.add(limit)
    try:
        while time.monotonic() < limit:
            connection = _wait(pid, report, min(limit, time.monotonic() + LOOK_AGAIN_S))
            if connection is not None:
                return connection
            call.remind()
    except BaseException:
        call.take_back()
        raise
    if call.take_back():
        raise Refused(_does_not_run(pid))
    connection = _wait(pid, report, time.monotonic() + BEGINNING_S)
    if connection is None:
        raise Refused(
            f"process {pid} has not begun to stand by for {BEGINNING_S:g} s: it has become another program, or"
            " something keeps its interpreter"
        )
    return connection


def _does_not_run(pid: int) -> str:
    return (
        f"process {pid} has not run Python in its main thread for {PATIENCE_S:g} s, and could not be entered:"
        " it waits for something; start it with 'tachograph standby' to attach to it at any time"
    )


@contextmanager
def _files(pid: int, *, in_a_thread: bool) -> Iterator[tuple[Path, Path]]:
    """Makes the file that the process is to run, and the one that it reports errors in."""
    folder = _new_folder()
    script, report = folder / "enter.py", folder / "report"
    from tachograph.recorder import _native

    package = Path(tachograph.__file__).resolve()
    text = SCRIPT.format(
        script=str(script),
        report=str(report),
        folder=str(folder),
        package=str(package),
        place=str(package.parent),
        native=os.path.dirname(os.path.abspath(str(_native.__file__))),
    )
    script.write_text(
        text + (START + _IN_A_THREAD.format(pid=pid) if in_a_thread else "stand_by()\n"), encoding="utf-8"
    )
    try:
        yield script, report
    finally:
        for file in (report,) if (folder / _STAYS).exists() else (script, report):
            with suppress(OSError):
                file.unlink()
        with suppress(OSError):
            folder.rmdir()


def _new_folder() -> Path:
    for place in _folders():
        with suppress(OSError):
            return Path(tempfile.mkdtemp(prefix="tachograph-", dir=place))
    raise Refused(
        "no folder for temporary files can be written to, and what a process is to run must be in one: set TMPDIR, or"
        " start the program with 'tachograph standby'"
    )


def _folders() -> Iterator[str]:
    """Where the files may be: first where no other user can put one in their place, once a cleaner has removed them."""
    runtime = (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.geteuid()}", "/run")
    yield from filter(_is_own, runtime)
    with suppress(OSError):
        yield tempfile.gettempdir()


def _is_own(folder: str) -> bool:
    try:
        status = os.stat(folder)
    except OSError:
        return False
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return os.path.isabs(folder) and status.st_uid == os.geteuid() and not others_write


def _has_ended(pid: int) -> bool:
    """Nothing runs in it any more, though its parent may not have taken notice yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def _wait(pid: int, report: Path, limit: float) -> Connection | None:
    while time.monotonic() < limit:
        connection = connect(pid)
        if connection is not None:
            return connection
        if report.exists() and (text := report.read_text(encoding="utf-8", errors="replace")):
            more = "; start it with 'tachograph standby'" if "subinterpreters" in text else ""
            raise Refused(f"process {pid} cannot stand by: {one_line(text)}{more}")
        if _has_ended(pid):
            raise Refused(f"process {pid} has ended")
        clock.rest(0.02)
    return None
