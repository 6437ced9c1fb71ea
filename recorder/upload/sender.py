"""Uploads the recordings of one run to a store: windows while the program runs, the last one at the end.

They are sent in a process of its own. A recording is removed here when the store has it. What the store does not take
is kept, and tried again: windows with growing pauses as long as the program runs, and all that is left a few times at
the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder import clock
from tachograph.recorder.collect.child_process import ChildProcess
from tachograph.recorder.collect.removal import drop_window
from tachograph.recorder.problems import one_line
from tachograph.recorder.upload.destination import Destination, without_secrets

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
"""Pauses between tries while the program runs; each is twice as long as the one before."""

LAST_PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Pauses before the tries at the end, for which the caller waits."""

MOST_WAITING = 1000
"""Windows that wait for the store; beyond that the oldest are deleted, and counted."""

PATIENCE_S, SLOWEST, LONGEST_S = 60.0, 100_000, 7 * 86400.0
"""How long sending may take: seconds for all, bytes in each second after that, and seconds at most."""

# The path is the command's own, which has found this package there; nothing is to come from the working folder.
_CODE = """
import sys
sys.path[:] = sys.argv[1:]
from tachograph.recorder.upload.archive import serve
serve()
"""


class Answer(NamedTuple):
    """The result of sending a recording: ``url`` and ``uuid`` if the store has it, else ``problem``.

    ``again`` says whether another try may do.
    """

    path: Path
    url: str | None = None
    uuid: str | None = None
    problem: str = ""
    again: bool = True


class Sender:
    """Sends recordings to one destination; ``stem`` begins their names, their own where it is None."""

    def __init__(self, destination: Destination, stem: str | None, *, force: bool) -> None:
        self.destination = destination
        self._stem, self._force = stem, force
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process that sends, if there is one."""
        process = self._process
        return None if process is None else process.pid

    def send(self, recordings: Sequence[Path], *, aside: bool) -> list[Answer]:
        """Send recordings, each once; ``aside``: a program is running, and comes first."""
        order = {
            "url": self.destination.url,
            "stem": self._stem,
            "force": self._force,
            "aside": aside,
            "recordings": [str(path.absolute()) for path in recordings],
        }
        patience = patience_s(recordings)
        try:
            # The URL goes through a pipe: it may hold a password, and command lines can be read by all.
            self._process = process = ChildProcess(
                [sys.executable, "-I", "-c", _CODE, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            return [Answer(path, problem=f"no process can be started: {error.strerror}") for path in recordings]
        try:
            output, errors = process.communicate(json.dumps(order).encode(), timeout=patience)
            problem = _last_line(errors) if process.returncode else "it was not sent"
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            problem = f"the store did not take it within {patience:.0f} s"
        self._process = None  # not before: until then it is known by its id
        answers = dict(map(_answer, output.splitlines()))
        # Keys that are missing do not come by themselves.
        other = Answer(Path(), problem=problem, again="Credentials" not in problem)
        return [answers.get(str(path.absolute()), other)._replace(path=path) for path in recordings]


def patience_s(recordings: Sequence[Path]) -> float:
    """The seconds that sending these recordings may take."""
    return min(LONGEST_S, PATIENCE_S + sum(map(_size, recordings)) / SLOWEST)


def _answer(line: bytes) -> tuple[str, Answer]:
    document = json.loads(line)
    problem, again = str(document.get("problem", "")), bool(document.get("again", True))
    answer = Answer(Path(), document.get("url"), document.get("uuid"), one_line(problem), again)
    return str(document["path"]), answer


def _last_line(errors: bytes) -> str:
    """The last line of an output, or how the process ended without one."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return one_line(without_secrets(lines[-1]))[:300] if lines else "the process that sends it was killed"


def _size(recording: Path) -> int:
    try:
        if recording.is_dir():
            return sum(each.lstat().st_size for each in recording.iterdir())
        return recording.stat().st_size
    except OSError:
        return 0


class Delivery(NamedTuple):
    """The results of sending the recordings of a run.

    ``url`` is where the last one is, None if it was not sent; ``sent`` counts the others. ``left`` are those that the
    store did not take, for the reason ``problem``. ``dropped`` were deleted as too many waited. ``destination`` is the
    URL that was typed, and ``folder`` that of the folder, both as they may be shown.
    """

    destination: str
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
        self._ending, self._over = False, clock.Flag()
        self._thread: threading.Thread | None = None
        self._sent = self._dropped = 0
        self._problem = ""

    def is_helper(self, pid: int) -> bool:
        """True if a child is the process that sends."""
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
            self._over.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        left, url = [*self._waiting, *([] if last is None else [last])], None
        for pause in LAST_PAUSES_S:
            if not left:
                break
            clock.rest(pause)
            answers = self._send(left, aside=False)
            url = next((answer.url for answer in answers if answer.path == last and answer.url), url)
            left = [answer.path for answer in answers if answer.url is None]
            if not any(answer.again for answer in answers if answer.url is None):
                break
        sent = self._sent - (url is not None)
        destination = self._sender.destination
        shown = without_secrets(destination.url)
        return Delivery(shown, destination.folder, url, sent, tuple(left), self._problem, self._dropped)

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
            if self._over.wait(pause):
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
