"""The recordings that a long-running command may open: those of the places that the user named, and no others.

``mcp`` and ``view`` hand out names, and take names: no path comes from an assistant or a browser.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from tachograph.format import FormatError

from ..fleet.store import local_recordings
from ..profile.build import build_profile
from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.opened import Recording
from ..recording.text import printable

ENDS = (".tacho.zip", ".tacho")
MOST = 1_000
"""Recordings of a place that are listed."""

KEPT = 4
"""Answers of one kind that are kept for further questions."""

T = TypeVar("T")


def without_end(name: str) -> str:
    """The name of a recording without ``.tacho`` or ``.tacho.zip``."""
    return next((name.removesuffix(end) for end in ENDS if name.endswith(end)), name)


class Shelf:
    """Recordings by name. A folder among ``places`` stands for the recordings at any depth below it, at each request.

    Errors:
        FormatError: one of the places is not there.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)
        self._answers: OrderedDict[tuple[object, ...], object] = OrderedDict()
        for place in self._places:
            if not place.exists():
                raise FormatError(f"there is no recording or folder {printable(str(place))}")

    def recordings(self) -> dict[str, Path]:
        """The paths by name: that below the folder without its end, and a number where several have the same."""
        recordings: dict[str, Path] = {}
        for stem, path in self._named():
            name, number = stem, 1
            while name in recordings:
                number += 1
                name = f"{stem}~{number}"
            recordings[name] = path
        return recordings

    def path(self, name: str) -> Path:
        """The path of a recording; its name may have its end.

        Errors:
            FormatError: there is none of that name.
        """
        recordings = self.recordings()
        path = recordings.get(name) or recordings.get(without_end(name))
        if path is None:
            names = ", ".join(printable(each, 80) for each in list(recordings)[:20])
            raise FormatError(f"there is no recording {printable(name, 80)!r}; there are: {names or 'none'}")
        return path

    def profile(self, name: str, question: Question) -> Profile:
        """The answer to a question.

        Errors:
            FormatError: there is no such recording, it is damaged, or the question does not fit it.
        """
        return self.answer(self.path(name), "profile", question, lambda recording: build_profile(recording, question))

    def answer(self, path: Path, kind: str, question: Question, build: Callable[[Recording], T]) -> T:
        """The result of ``build`` for a recording; it is kept as long as the recording is the same.

        Errors:
            FormatError: the recording cannot be read, or one of ``build``.
        """
        with Recording.open(path) as recording:
            if recording.being_written:
                return build(recording)
            key = (kind, path, path.stat().st_mtime_ns, question)
            if key not in self._answers:
                self._answers[key] = build(recording)
        self._answers.move_to_end(key)
        same = [each for each in self._answers if each[0] == kind]
        for old in same[:-KEPT]:
            del self._answers[old]
        answer: T = self._answers[key]  # type: ignore[assignment]
        return answer

    def _named(self) -> Iterator[tuple[str, Path]]:
        for place in self._places:
            if place.is_file() or (place / "manifest.json").is_file():
                yield without_end(place.name), place
            else:
                for path in local_recordings(place)[:MOST]:
                    yield without_end(path.relative_to(place).as_posix()), path
