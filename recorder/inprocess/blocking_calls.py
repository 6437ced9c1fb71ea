"""The calls that the signal sampler replaces while it runs (Scalene 2023, section 2.2).

The published algorithm replaces blocking calls by ones that mark their thread as sleeping, and gives joins of the
main thread timeouts, so that it comes back to the interpreter and takes its signals. That is the least that makes the
method work: joins, condition variables (events, queues, semaphores and barriers wait on them) and ``time.sleep``.
``os.execv`` and ``os.execve`` are there for another reason: see SignalSampler. The native sampler patches nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class BlockingCalls:
    """Replaces the calls, knows which threads are inside one, and puts the originals back."""

    def __init__(self) -> None:
        self._sleeping: set[int] = set()
        self._originals: list[tuple[Any, str, Any, Any]] = []

    def install(self, *, before_exec: Callable[[], None], exec_failed: Callable[[], None]) -> None:
        """Replace the calls; ``before_exec`` is called before the process becomes another program, or fails to."""
        join = threading.Thread.join
        self._replace(threading.Thread, "join", self._join_with_timeouts(join))
        self._replace(threading.Condition, "wait", self._marked(threading.Condition.wait))
        self._replace(time, "sleep", self._marked(time.sleep))
        for name in ("execv", "execve"):
            self._replace(os, name, _announced(getattr(os, name), before_exec, exec_failed))

    def remove(self) -> None:
        """Put the originals back, except where the program has replaced ours by its own."""
        for owner, name, original, replacement in self._originals:
            if getattr(owner, name) is replacement:
                setattr(owner, name, original)
        self._originals.clear()

    def is_sleeping(self, ident: int | None) -> bool:
        """Whether that thread is inside one of the calls."""
        return ident in self._sleeping

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        self._originals.append((owner, name, getattr(owner, name), replacement))
        setattr(owner, name, replacement)

    def _marked(self, original: Callable[P, R]) -> Callable[P, R]:
        sleeping = self._sleeping

        @wraps(original)
        def wait(*args: P.args, **kwargs: P.kwargs) -> R:
            ident = threading.get_ident()
            sleeping.add(ident)
            try:
                return original(*args, **kwargs)
            finally:
                sleeping.discard(ident)

        return wait

    def _join_with_timeouts(self, original: Callable[..., None]) -> Callable[..., None]:
        marked = self._marked(original)

        @wraps(original)
        def join(self: threading.Thread, timeout: float | None = None) -> None:
            if threading.current_thread() is not threading.main_thread():
                return marked(self, timeout)
            deadline = None if timeout is None else time.monotonic() + timeout
            while True:
                left = None if deadline is None else deadline - time.monotonic()
                step = sys.getswitchinterval()
                marked(self, step if left is None else min(step, left))
                if not self.is_alive() or (left is not None and left <= step):
                    return None

        return join


def _announced(original: Callable[P, R], before: Callable[[], None], failed: Callable[[], None]) -> Callable[P, R]:
    @wraps(original)
    def execute(*args: P.args, **kwargs: P.kwargs) -> R:
        before()
        try:
            return original(*args, **kwargs)
        finally:
            failed()  # exec returns only if it failed

    return execute
