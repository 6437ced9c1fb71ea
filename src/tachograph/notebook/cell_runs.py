"""The recordings of a session: where they are kept, and which of them are runs of one cell."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder.collect.output import SPOOL
from tachograph.recorder.collect.running import is_being_recorded

PREFIX = "tachograph-session-"
LOCK = "lock"
MOST_KEPT = 50
"""Recordings that a session keeps in its own folder; older ones are deleted."""


class Run(NamedTuple):
    """A recording: the number of the cell that began it, the id of that cell if it has one, and where it is."""

    cell: int
    cell_id: str | None
    path: Path

    @property
    def name(self) -> str:
        """The name of the run, for the user."""
        return f"In [{self.cell}]"


class Runs:
    """The recordings of a session, oldest first.

    Those that were not given a place are in a folder in the temporary directory, which is made for the first of them
    and is deleted at the session's end. The session holds a lock in it: a folder without one is of a session that was
    killed, and the next session deletes it.
    """

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._folder: Path | None = None
        self._lock: int | None = None
        self._made = 0

    def new_path(self, cell: int) -> Path:
        """A place for a recording that was given none.

        Errors:
            OSError: the folder cannot be made.
        """
        self._made += 1
        return self._own_folder() / f"In-{cell}-{self._made:03}.tacho"

    def add(self, run: Run) -> None:
        """A recording is complete; of those in the session's own folder the oldest may go."""
        self._runs = [each for each in self._runs if each.path != run.path] + [run]
        own = [each for each in self._runs if each.path.parent == self._folder]
        for old in own[: max(0, len(own) - MOST_KEPT)]:
            shutil.rmtree(old.path, ignore_errors=True)
            self._runs.remove(old)

    def of_cell(self, number: int) -> Run | None:
        """The newest recording under a number."""
        return next((run for run in reversed(self._runs) if run.cell == number), None)

    def before(self, run: Run) -> Run | None:
        """The newest recording before ``run`` of the same cell; where the cell is not known, the one before it."""
        earlier = self._runs[: self._runs.index(run)]
        if run.cell_id is not None:
            return next((each for each in reversed(earlier) if each.cell_id == run.cell_id), None)
        return earlier[-1] if earlier else None

    @property
    def newest(self) -> Run | None:
        """The last one."""
        return self._runs[-1] if self._runs else None

    @property
    def names(self) -> str:
        """All of them, for the user."""
        return ", ".join(dict.fromkeys(run.name for run in self._runs))

    def close(self) -> None:
        """Delete the session's folder."""
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        self._runs = [run for run in self._runs if run.path.parent != folder]

    def _own_folder(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            if self._lock is not None:
                os.close(self._lock)
            self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = os.open(self._folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return self._folder


def delete_left_over() -> None:
    """Delete the folders of this user's sessions that were killed."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                _delete_left_over(folder)


def _delete_left_over(folder: Path) -> None:
    """Delete a session's folder, if it is one and no session has it."""
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return
    lock = os.open(folder / LOCK, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # What the killed session was recording is being completed still.
        if not any(is_being_recorded(path / SPOOL) for path in folder.glob("*.tacho")):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
