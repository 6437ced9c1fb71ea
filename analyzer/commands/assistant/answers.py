"""What an assistant can ask, and the answers: Markdown of bounded length, text from recordings marked as data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from tachograph.format import FormatError

from ...diff import diff
from ...profile.path_frame import path_frame
from ...profile.question import Question
from ...recording.opened import Recording
from ...recording.question_options import DEFAULT_TOKENS, LEAST_TOKENS, Sort
from ...recording.text import printable
from ...render.markdown.difference import summary as difference_summary
from ...render.markdown.document import MAX_NAME, Row, Section, compose
from ...render.markdown.profile import PARTS_ALONE, part, summary
from ...report_data.numbers import seconds, size, when
from .shelf import Shelf
from .sql import select

MOST_TOKENS = 20_000
MOST_FUNCTIONS = 30
"""Functions of a call path that are shown, the innermost."""


class Answers:
    """The answers about the recordings of a shelf. One is worked out at a time.

    Errors (everywhere): FormatError, one line: no such recording, damaged, or the question does not fit it.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._one_at_a_time = threading.Lock()

    def recordings(self) -> str:
        """The names of the recordings, and what each is of."""
        with self._one_at_a_time:
            rows = [Row(f"{printable(name, MAX_NAME)}: {self._about(name)}") for name in self._shelf.recordings()]
        told = "The name stands before the colon." if rows else "There are none."
        return compose("tachograph: recordings", [Section("Recordings", told, rows)], MOST_TOKENS)

    def summary(self, recording: str, question: Question, *, memory: bool = False, tokens: int = DEFAULT_TOKENS) -> str:
        """What ``tachograph analyze --markdown`` writes."""
        with self._one_at_a_time:
            profile = self._shelf.profile(recording, question)
            return summary(profile, _bound(tokens), sort="live" if memory else "cpu")

    def part(
        self, recording: str, name: str, question: Question, *, sort: str = "cpu", top: int | None = None,
        tokens: int = DEFAULT_TOKENS,
    ) -> str:  # fmt: skip
        """One part of it alone, with all the room: ``PARTS_ALONE``."""
        if name not in PARTS_ALONE:
            raise FormatError(f"there is no part {printable(name, 40)!r}; there are: {', '.join(PARTS_ALONE)}")
        if sort not in [*map(str, Sort)]:
            raise FormatError(f"lines cannot be sorted by {printable(sort, 40)!r}, but by: {', '.join(Sort)}")
        with self._one_at_a_time:
            profile = self._shelf.profile(recording, question)
            return part(profile, name, _bound(tokens), sort=sort, top=None if top is None else max(1, top))

    def call_paths(self, recording: str, question: Question, *, tokens: int = DEFAULT_TOKENS) -> str:
        """Paths through Python and native code, the most CPU time first."""
        with self._one_at_a_time:
            profile = self._shelf.profile(recording, question)
            frame = path_frame(profile.paths, waits_known=profile.totals.wait_s is not None)
        rows = [Row(text) for text in _paths(frame.head(1000).to_dict("records"))]
        told = "CPU time and waiting that ended on each path, sampled. The innermost function first, then its callers."
        return compose("tachograph: call paths", [Section("Call paths", told, rows)], _bound(tokens))

    def difference(self, base: str, new: str, question: Question, *, anyway: bool = False, tokens: int) -> str:
        """What ``tachograph diff --markdown`` writes of two recordings."""
        with self._one_at_a_time:
            paths = [self._shelf.path(name) for name in (base, new)]
            result = diff([paths[0]], [paths[1]], question, anyway=anyway)
            return difference_summary(result, _bound(tokens))

    def query(self, recording: str, sql: str, *, rows: int = 100, tokens: int = DEFAULT_TOKENS) -> str:
        """The rows of a SELECT over the recording's tables (format-spec/SPEC.md)."""
        with self._one_at_a_time, Recording.open(self._shelf.path(recording)) as opened:
            found = [Row(text) for text in select(opened, sql, max(1, rows))]
        return compose("tachograph: query", [Section("Rows", "Columns are divided by bars.", found)], _bound(tokens))

    def tables(self, recording: str) -> str:
        """The tables that were recorded, with their columns and numbers of rows."""
        with self._one_at_a_time, Recording.open(self._shelf.path(recording)) as opened:
            rows = [
                Row(f"{name} ({opened.rows(name):,} rows): {', '.join(table.schema.names)}")
                for name, table in opened.specification.tables.items()
                if opened.recorded(name)
            ]
        told = "Times end in _ns (one monotonic clock), sizes in _bytes; ids are rows of the table of that name."
        return compose("tachograph: tables", [Section("Tables", told, rows)], MOST_TOKENS)

    def _about(self, name: str) -> str:
        try:
            with Recording.open(self._shelf.path(name)) as recording:
                manifest, end_ns = recording.manifest, recording.end_ns
                length = "" if end_ns is None else f", {seconds((end_ns - recording.start_ns) / 1e9)} long"
                program = " ".join(manifest.argv) or "unknown program"
                state = ", still being written" if recording.being_written else ""
                return f"{printable(program, MAX_NAME)}, {when(manifest.created_utc) or 'no date'}{length}{state}"
        except FormatError as error:
            return f"cannot be read: {printable(str(error), MAX_NAME)}"


def _bound(tokens: int) -> int:
    return min(max(tokens, LEAST_TOKENS), MOST_TOKENS)


def _paths(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        wait = f", waiting {seconds(row['wait_s'])}" if row["wait_s"] >= 0.0005 else ""
        held = f", allocated {size(round(row['allocated_bytes']))}" if row["allocated_bytes"] >= 1000 else ""
        names = [printable(name, 60) for name in row["path"][: -MOST_FUNCTIONS - 1 : -1]]
        yield f"CPU {seconds(row['cpu_s'])}{wait}{held} | {' < '.join(names)}"
