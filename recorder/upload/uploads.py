"""The recordings of one run on their way to a store: windows while the program runs, the last one at the end.

A recording is removed here when the store has it. What the store does not take is kept, and tried again: windows with
growing pauses as long as the program runs, and all that is left a few times at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder.collect.removal import drop_window
from tachograph.recorder.upload.destination import without_secrets
from tachograph.recorder.upload.sender import Answer, Sender

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
"""Pauses between tries while the program runs; each is twice as long as the one before."""

LAST_PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Pauses before the tries at the end, for which the caller waits."""

MOST_WAITING = 1000
"""Windows that wait for the store; beyond that the oldest are deleted, and counted."""


class Delivery(NamedTuple):
    """What became of the recordings of a run.

    ``url`` is where the last one is, None if it was not sent; ``sent`` counts the others. ``left`` are those that the
    store did not take, for the reason ``problem``. ``dropped`` were deleted as too many waited. ``wanted`` is the URL
    that was typed, and ``folder`` that of the folder, both as they may be shown.
    """

    wanted: str
    folder: str
    url: str | None
    sent: int
    left: tuple[Path, ...]
    problem: str
    dropped: int


class Uploads:
    """Sends windows beside the program, and the rest at its end. ``add`` may be called by any thread."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._changed = threading.Condition()
        self._waiting: dict[Path, str] = {}
        self._ending = False
        self._thread: threading.Thread | None = None
        self._sent = self._dropped = 0
        self._problem = ""

    def owns(self, pid: int) -> bool:
        """Whether a child is the process that sends."""
        return self._sender.pid == pid

    def add(self, window: Path, uuid: str) -> None:
        """Send the recording of a closed window; returns at once."""
        with self._changed:
            self._waiting[window] = uuid
            while len(self._waiting) > MOST_WAITING:
                oldest = next(iter(self._waiting))
                self._dropped += 1
                drop_window(oldest, self._waiting.pop(oldest))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tachograph uploads", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def finish(self, last: Path | None) -> Delivery:
        """Send what is left, and the last recording; None if it is unfinished. Waits a while for the store."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        left, url = [*self._waiting, *([] if last is None else [last])], None
        for pause in LAST_PAUSES_S:
            if not left:
                break
            time.sleep(pause)
            answers = self._send(left, aside=False)
            url = next((answer.url for answer in answers if answer.path == last and answer.url), url)
            left = [answer.path for answer in answers if answer.url is None]
            if not any(answer.again for answer in answers if answer.url is None):
                break
        sent = self._sent - (url is not None)
        wanted = self._sender.destination
        shown = without_secrets(wanted.url)
        return Delivery(shown, wanted.folder, url, sent, tuple(left), self._problem, self._dropped)

    def _run(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if self._ending:
                    return
                waiting = list(self._waiting)
            answers = self._send(waiting, aside=True)
            if all(answer.url is not None for answer in answers):
                pause = FIRST_PAUSE_S
                continue
            with self._changed:
                if self._changed.wait_for(lambda: self._ending, pause):
                    return
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _send(self, recordings: Sequence[Path], *, aside: bool) -> list[Answer]:
        answers = self._sender.send(recordings, aside=aside)
        for answer in answers:
            if answer.url is None:
                self._problem = answer.problem
                continue
            with self._changed:
                expected = self._waiting.pop(answer.path, answer.uuid)
                self._sent += 1
            # Something else may have taken its place meanwhile: only what was sent is deleted.
            if expected is not None and expected == answer.uuid:
                drop_window(answer.path, expected)
        return answers
