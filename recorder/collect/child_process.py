"""A child process whose end is waited for by the kernel's clock."""

from __future__ import annotations

import subprocess

from tachograph.recorder import clock


class ChildProcess(subprocess.Popen[bytes]):
    """``subprocess.Popen``; ``wait`` and ``communicate`` keep their time limit whatever library replaces the clock."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises ``subprocess.TimeoutExpired`` if the process lives longer."""
        if timeout is None:
            return super().wait()
        limit = clock.monotonic_ns() + timeout * 1e9
        pause = 0.0005
        while (status := self.poll()) is None:
            if clock.monotonic_ns() >= limit:
                raise subprocess.TimeoutExpired(self.args, timeout)
            clock.rest(pause)
            pause = min(2 * pause, 0.05)
        return status
