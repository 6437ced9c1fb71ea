"""The recordings that a user named: an assistant knows them by name, and can open nothing else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tachograph.format import FormatError

from ...profile.build import build_profile
from ...profile.profile import Profile
from ...profile.question import Question
from ...recording.opened import Recording
from ...recording.text import printable

ENDS = (".tacho.zip", ".tacho")
MOST = 1_000
"""Recordings of a folder that are listed."""

KEPT = 4
"""Profiles that are kept for further questions."""


class Shelf:
    """Recordings by name. A folder among ``places`` stands for the recordings that are in it when they are asked for.

    Errors:
        FormatError: one of the places is not there.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = tuple(places)
        self._profiles: OrderedDict[tuple[Path, int, Question], Profile] = OrderedDict()
        for place in self._places:
            if not place.exists():
                raise FormatError(f"there is no recording or folder {printable(str(place))}")

    def recordings(self) -> dict[str, Path]:
        """The paths by name: the file's name without its end, and a number where several have the same."""
        found: dict[str, Path] = {}
        for path in self._paths():
            stem = next((path.name.removesuffix(end) for end in ENDS if path.name.endswith(end)), path.name)
            name, number = stem, 1
            while name in found:
                number += 1
                name = f"{stem}~{number}"
            found[name] = path
        return found

    def path(self, name: str) -> Path:
        """The path of a recording.

        Errors:
            FormatError: there is none of that name.
        """
        found = self.recordings()
        if name not in found:
            known = ", ".join(printable(each, 80) for each in list(found)[:20])
            raise FormatError(f"there is no recording {printable(name, 80)!r}; there are: {known or 'none'}")
        return found[name]

    def profile(self, name: str, question: Question) -> Profile:
        """The answer to a question.

        Errors:
            FormatError: there is no such recording, it is damaged, or the question does not fit it.
        """
        path = self.path(name)
        with Recording.open(path) as recording:
            if recording.being_written:
                return build_profile(recording, question)
            key = (path, path.stat().st_mtime_ns, question)
            if key not in self._profiles:
                self._profiles[key] = build_profile(recording, question)
        self._profiles.move_to_end(key)
        while len(self._profiles) > KEPT:
            self._profiles.popitem(last=False)
        return self._profiles[key]

    def _paths(self) -> Iterator[Path]:
        for place in self._places:
            if place.is_file() or (place / "manifest.json").is_file():
                yield place
            else:
                inside = sorted(path for path in place.iterdir() if path.name.endswith(ENDS))
                yield from inside[:MOST]
