"""The bar that says how far a long command has come: on a terminal only, and gone when the command is done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..recording.opened import Watcher

AFTER_S = 1.0
"""What takes less shows no bar."""


@contextmanager
def progress() -> Iterator[Watcher | None]:
    """A watcher that draws a bar on standard error; None where it would not be seen."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar()
    try:
        yield bar
    finally:
        bar.close()


class _Bar:
    """Nothing is drawn, nor even imported, before ``AFTER_S`` have passed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._what, self._done, self._of = "reading", 0, 0
        self._drawn: Progress | None = None
        self._timer = threading.Timer(AFTER_S, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def step(self, what: str) -> None:
        """Says what is being done."""
        with self._lock:
            self._what, self._done, self._of = what, 0, 0
            self._update()

    def read(self, table: str, done: int, of: int) -> None:
        """Says how far a table has been read."""
        with self._lock:
            self._what, self._done, self._of = f"reading {table}", done, of
            self._update()

    def close(self) -> None:
        """Removes the bar."""
        self._timer.cancel()
        self._timer.join()
        if self._drawn is not None:
            self._drawn.stop()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        # What is printed meanwhile is left alone: standard output may be a file.
        drawn = Progress(
            *columns,
            console=console,
            transient=True,
            refresh_per_second=5,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        drawn.add_task(self._what, total=None)
        with self._lock:
            self._drawn = drawn
            self._update()
        drawn.start()

    def _update(self) -> None:
        if self._drawn is not None:
            (task,) = self._drawn.tasks
            task.description, task.completed, task.total = self._what, self._done, self._of or None
