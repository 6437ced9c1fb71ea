"""The pages of several recordings: their index, the report of each, and the diff of any two.

The totals of the index take a while for many recordings: a thread adds them up, the newest first, and the page asks for
them until it has all.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from tachograph.format import FormatError

from ..diff.comparison import diff
from ..profile.build import build_profile
from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.opened import Recording
from ..recording.text import printable
from ..render.html.diff_page import page as diff_page
from ..render.html.index_page import IndexRow, Totals, index_page, message_page
from ..render.html.report_page import report
from ..report_data.report_data import build_report_data, build_views
from .page_server import Page
from .shelf import Shelf


class Pages:
    """Makes the pages of the recordings of a shelf, one at a time, when they are asked for."""

    def __init__(self, shelf: Shelf, question: Question) -> None:
        self._shelf, self._question = shelf, question
        self._one_at_a_time = threading.Lock()
        self._totals: dict[tuple[Path, int], Totals] = {}
        self._ended = threading.Event()
        self._begun = threading.Event()

    def names(self) -> list[str]:
        """The names of the recordings."""
        return list(self._shelf.recordings())

    def begin(self) -> None:
        """Starts to add up the totals."""
        threading.Thread(target=self._add_up, name="totals", daemon=True).start()

    def end(self) -> None:
        """Stops that after the recording at hand."""
        self._ended.set()
        self._begun.set()

    def page(self, names: tuple[str, ...], options: Mapping[str, str]) -> Page | None:
        """The page at an address: see the module."""
        try:
            match names:
                case ("",):
                    return Page(self._index())
                case ("totals",):
                    totals = self._computed(self._shelf.recordings())
                    return Page(json.dumps({name: asdict(each) for name, each in totals.items()}), "application/json")
                case ("report", name):
                    return self._report(name)
                case ("diff", base, new):
                    return self._diff(base, new, anyway=options.get("anyway") == "1")
        except FormatError as error:
            again = None
            if names[0] == "diff" and "anyway" not in options:
                again = "?anyway=1", "Compare them anyway"
            return Page(message_page("This cannot be shown", str(error), again), status=HTTPStatus.CONFLICT)
        return None

    def _index(self) -> str:
        recordings = self._shelf.recordings()
        with self._one_at_a_time:
            rows = [self._row(name, path) for name, path in recordings.items()]
        self._begun.set()
        return index_page(rows, self._computed(recordings))

    def _row(self, name: str, path: Path) -> IndexRow:
        try:
            with Recording.open(path) as recording:
                manifest = recording.manifest
                return IndexRow(
                    address(name),
                    printable(name),
                    printable(" ".join(manifest.argv), 200),
                    manifest.created_utc,
                    {printable(key, 60): printable(value, 200) for key, value in manifest.labels.items()},
                    recording.size,
                    being_written=recording.being_written,
                )
        except FormatError as error:
            return IndexRow(address(name), printable(name), "", None, {}, None, error=printable(str(error), 400))

    def _report(self, name: str) -> Page | None:
        path = self._shelf.recordings().get(name)
        if path is None:
            return None

        def build(recording: Recording) -> str:
            data = build_report_data(recording, self._question)
            return report(data, views=build_views(recording, self._question, data))

        with self._one_at_a_time:
            return Page(self._shelf.answer(path, "report", self._question, build))

    def _diff(self, base: str, new: str, *, anyway: bool) -> Page | None:
        paths = self._shelf.recordings()
        if base not in paths or new not in paths:
            return None
        with self._one_at_a_time:
            return Page(diff_page(diff([paths[base]], [paths[new]], self._question, anyway=anyway)))

    def _add_up(self) -> None:
        """Adds up the totals of recordings that have none yet, at each look at the index."""
        while not self._ended.is_set():
            self._begun.wait()
            self._begun.clear()
            for path in self._newest_first():
                if self._ended.is_set():
                    return
                self._add(path)

    def _newest_first(self) -> Iterator[Path]:
        dated = [(when, path) for path in self._shelf.recordings().values() if (when := _changed(path)) is not None]
        yield from (path for _, path in sorted(dated, reverse=True))

    def _add(self, path: Path) -> None:
        changed = _changed(path)
        if changed is None or (path, changed) in self._totals:
            return
        with self._one_at_a_time:
            try:
                with Recording.open(path) as recording:
                    if recording.being_written:
                        return
                    totals = _totals(build_profile(recording, self._question))
            except FormatError:
                totals = Totals()  # the index says why
            self._totals[path, changed] = totals

    def _computed(self, recordings: Mapping[str, Path]) -> dict[str, Totals]:
        """The totals that are known, by the address of the recording."""
        keys = {name: (path, changed) for name, path in recordings.items() if (changed := _changed(path)) is not None}
        return {address(name): self._totals[key] for name, key in keys.items() if key in self._totals}


def address(name: str) -> str:
    """A recording's name as a part of an address."""
    return quote(name, safe="", errors="surrogateescape")


def _changed(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None  # it has gone


def _totals(profile: Profile) -> Totals:
    totals = profile.totals
    peak = None if profile.memory is None else profile.memory.peak_bytes
    values = (
        None if value is None or math.isnan(value) else float(value)
        for value in (
            totals.wall_s,
            totals.cpu_s,
            totals.main_wait_s,
            peak,
        )
    )
    return Totals(*values)
