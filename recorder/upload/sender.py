"""Sends recordings in a process of its own, and takes its answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder.problems import one_line
from tachograph.recorder.upload.destination import Destination, without_secrets

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
    """What became of a recording: ``url`` and ``uuid`` if the store has it, else ``problem``.

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
            self._process = process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CODE, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            return [Answer(path, problem=f"no process can be started: {error.strerror}") for path in recordings]
        try:
            told, errors = process.communicate(json.dumps(order).encode(), timeout=patience)
            problem = _last_line(errors) if process.returncode else "it was not sent"
        except subprocess.TimeoutExpired:
            process.kill()
            told, _ = process.communicate()
            problem = f"the store did not take it within {patience:.0f} s"
        self._process = None  # not before: until then it is known by its id
        answers = dict(map(_answer, told.splitlines()))
        # Keys that are missing do not come by themselves.
        other = Answer(Path(), problem=problem, again="Credentials" not in problem)
        return [answers.get(str(path.absolute()), other)._replace(path=path) for path in recordings]


def patience_s(recordings: Sequence[Path]) -> float:
    """How many seconds sending these recordings may take."""
    return min(LONGEST_S, PATIENCE_S + sum(map(_size, recordings)) / SLOWEST)


def _answer(line: bytes) -> tuple[str, Answer]:
    document = json.loads(line)
    problem, again = str(document.get("problem", "")), bool(document.get("again", True))
    answer = Answer(Path(), document.get("url"), document.get("uuid"), one_line(problem), again)
    return str(document["path"]), answer


def _last_line(errors: bytes) -> str:
    """What ended the process."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return one_line(without_secrets(lines[-1]))[:300] if lines else "the process that sends it was killed"


def _size(recording: Path) -> int:
    try:
        if recording.is_dir():
            return sum(each.lstat().st_size for each in recording.iterdir())
        return recording.stat().st_size
    except OSError:
        return 0
