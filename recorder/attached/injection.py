"""Has a process stand by for one client that was not started so: through sys.remote_exec, since CPython 3.14."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import tachograph
from tachograph.recorder.attached.connection import Connection, connect
from tachograph.recorder.attached.processes import Process
from tachograph.recorder.problems import Refused, one_line

OLDEST = (3, 14)
PATIENCE_S = 10.0
"""How long the main thread is waited for: it runs what it is given when it next runs Python."""

# Removes itself, so that none is left that runs later than it is waited for. Then the standby ends after a minute.
# Whatever goes wrong is reported here: the program must not see it.
SCRIPT = """\
def stand_by():
    import os, sys
    os.unlink({script!r})
    sys.path.append({place!r})
    try:
        from tachograph.recorder.attached import standby
        standby.begin(once=True)
    except BaseException as error:
        with open({report!r}, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{{type(error).__name__}}: {{error}}")
    finally:
        sys.path.remove({place!r})
        try:
            os.rmdir({folder!r})
        except OSError:
            pass
stand_by()
"""


def entered(process: Process) -> Connection:
    """A connection to a process that can be asked. Refused, in one line, if it neither stands by nor can be entered."""
    connection = connect(process.pid)
    if connection is not None:
        return connection
    if process.recorded:  # from its start, by the command
        raise Refused(f"process {process.pid} is being recorded already, and does not stand by")
    return enter(process)


def enter(process: Process) -> Connection:
    """A connection to a process that did not stand by. Refused, in one line, if it cannot be entered."""
    if process.version is None or process.version < OLDEST:
        known = "CPython" if process.version is None else "CPython {}.{}".format(*process.version)
        raise Refused(
            f"process {process.pid} does not stand by, and only 3.14 and later can be entered (it is {known}): "
            "start it with 'tachograph standby', or with TACHOGRAPH_STANDBY=1"
        )
    if sys.version_info[:2] != process.version:
        raise Refused(
            f"process {process.pid} does not stand by: to enter it, use a tachograph that runs under its CPython"
            " {}.{}, or start it with 'tachograph standby'".format(*process.version)
        )
    folder = Path(tempfile.mkdtemp(prefix="tachograph-"))
    script, report = folder / "enter.py", folder / "report"
    place = os.fspath(Path(tachograph.__file__).resolve().parents[1])
    text = SCRIPT.format(script=str(script), report=str(report), folder=str(folder), place=place)
    script.write_text(text, encoding="utf-8")
    try:
        sys.remote_exec(process.pid, os.fspath(script))  # type: ignore[attr-defined]  # of 3.14
        connection = _wait(process, report)
    except (OSError, RuntimeError) as error:
        with suppress(OSError):
            script.unlink()
        raise Refused(
            f"process {process.pid} does not stand by and cannot be entered ({one_line(str(error))}): that takes the"
            " right to trace it (ptrace), or start it with 'tachograph standby'"
        ) from None
    finally:
        with suppress(OSError):
            report.unlink()
        with suppress(OSError):  # the script is still in it if it has not been run
            folder.rmdir()
    return connection


def _wait(process: Process, report: Path) -> Connection:
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        connection = connect(process.pid)
        if connection is not None:
            return connection
        if report.exists() and (text := report.read_text(encoding="utf-8", errors="replace")):
            raise Refused(f"process {process.pid} cannot stand by: {one_line(text)}")
        if not Path(f"/proc/{process.pid}").exists():
            raise Refused(f"process {process.pid} has ended")
        time.sleep(0.02)
    raise Refused(
        f"process {process.pid} has not run Python in its main thread for {PATIENCE_S:g} s, and could not be entered:"
        " it waits for something; start it with 'tachograph standby' to attach to it at any time"
    )
