"""Says on a terminal that something takes its time."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

AFTER_S = 1.0
"""What takes less says nothing."""

_CLEAR = "\r\x1b[K"


@contextmanager
def waiting(text: str, after_s: float = AFTER_S) -> Iterator[None]:
    """Shows ``text`` and the seconds so far on standard error, if that is a terminal, and removes it at the end."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(text, after_s, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(text: str, after_s: float, done: threading.Event) -> None:
    began = time.monotonic()
    if done.wait(after_s):
        return
    while not done.is_set():
        seconds = f" {time.monotonic() - began:.0f} s"
        room = max(shutil.get_terminal_size().columns - len(seconds) - 1, 0)
        sys.stderr.write(_CLEAR + text[:room] + seconds)
        sys.stderr.flush()
        done.wait(1.0)
    sys.stderr.write(_CLEAR)
    sys.stderr.flush()
