"""Runs one command and measures it from outside: wall clock, CPU time of it and its children, peak memory."""

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """What a process cost. Times in seconds; `start_ns` and `end_ns` on the monotonic clock, which is system-wide."""

    status: int
    timed_out: bool
    start_ns: int
    end_ns: int
    cpu_s: float
    peak_rss_bytes: int
    stderr: str

    @property
    def elapsed_s(self) -> float:
        """Wall-clock time from before the process was made until it was reaped."""
        return (self.end_ns - self.start_ns) / 1e9


def run(command: list[str], environment: dict[str, str], folder: Path, errors: Path, timeout_s: float) -> Finished:
    """Runs `command` in `folder`, a session of its own, and kills the session if it takes longer than `timeout_s`.

    What it says on its standard error goes to the file `errors`.
    """
    timed_out = threading.Event()
    with errors.open("wb") as stderr:
        start_ns = time.monotonic_ns()
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

        def give_up() -> None:
            timed_out.set()
            os.killpg(process.pid, signal.SIGKILL)

        guard = threading.Timer(timeout_s, give_up)
        guard.start()
        # wait4 rather than Popen.wait: it gives the resources that this child, and those it waited for, have used.
        _, status, usage = os.wait4(process.pid, 0)
        end_ns = time.monotonic_ns()
        guard.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return Finished(
        status=process.returncode,
        timed_out=timed_out.is_set(),
        start_ns=start_ns,
        end_ns=end_ns,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_rss_bytes=usage.ru_maxrss * 1024,
        stderr=errors.read_text(encoding="utf-8", errors="replace").strip(),
    )
