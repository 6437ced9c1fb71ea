"""Spans by row, where rows say so themselves: those of tasks, greenlets and threads that take turns.

A row that says in which span it was (``cpu.span`` and others) has, in place of its thread, a *track*: a number behind
those of the threads, for all spans of one name within spans of the same names. A track's time ranges have neither
beginning nor end, so that code which weighs rows by time ranges of threads need not know of tracks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .opened import Recording
from .recorded_spans import Spans
from .time_window import OPEN_END, OPEN_START, TimeRanges

NOWHERE = -2
"""The track of what was in no span: no range is of it."""

_Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tracks:
    """The tracks of a recording."""

    first: int
    """The number of threads, and of the first track."""
    followed: NDArray[np.bool_]
    """True for threads whose rows say in which span they were; the last entry, False, is for no thread."""
    of_span: _Ids
    """The track of each span; the last entry is for none."""
    ranges: tuple[TimeRanges, TimeRanges]
    """The ranges of tracks, by the number of the name: of spans themselves, and with the spans within them."""
    chosen: TimeRanges
    """The ranges of the tracks in or below chosen spans."""

    def of(self, thread: NDArray[np.integer], span: NDArray[np.integer]) -> NDArray[np.integer]:
        """The thread or the track of each row; ``span`` is -1 where it was in none, ``thread`` where it is of none."""
        return np.where(self.followed[thread], self.of_span[span], thread)

    def threads_of(self, ranges: TimeRanges) -> TimeRanges:
        """Those of the ranges that are of threads."""
        return ranges.only(ranges.thread < self.first)


def follows(recording: Recording) -> NDArray[np.bool_]:
    """Mask of the threads whose rows say in which span they were."""
    return recording.all_processes.spans_followed[recording.all_threads.process]


def make_tracks(recording: Recording, spans: Spans, chosen: Iterable[int] = ()) -> Tracks | None:
    """The tracks of all spans of a recording; None where no row says in which span it was.

    ``chosen`` are the numbers of spans that a question is about.
    """
    followed = follows(recording)
    if not len(spans) or not followed.any():
        return None
    first, wanted = len(followed), set(chosen)
    # Spans whose names, and those of the spans around them, are alike have one track.
    known: dict[tuple[int, frozenset[int], bool], int] = {}
    track = np.full(len(spans) + 1, NOWHERE, np.int64)
    kinds: list[tuple[int, frozenset[int], bool]] = []
    unions: dict[tuple[frozenset[int], int], frozenset[int]] = {}
    nothing: frozenset[int] = frozenset()
    for row, (parent, name) in enumerate(zip(spans.parent.tolist(), spans.name.tolist(), strict=True)):
        _, around, inside = kinds[track[parent] - first] if 0 <= parent < row else (0, nothing, False)
        names = around if name in around else unions.setdefault((around, name), around | {name})
        kind = (name, names, inside or row in wanted)
        number = known.setdefault(kind, len(kinds))
        if number == len(kinds):
            kinds.append(kind)
        track[row] = first + number
    own = [(first + number, OPEN_START, OPEN_END, name) for number, (name, _, _) in enumerate(kinds)]
    total = [
        (first + number, OPEN_START, OPEN_END, name) for number, (_, names, _) in enumerate(kinds) for name in names
    ]
    selected = [(first + number, OPEN_START, OPEN_END, 0) for number, (_, _, inside) in enumerate(kinds) if inside]
    return Tracks(
        first,
        np.append(followed, False),
        track,
        (TimeRanges.of(own), TimeRanges.of(total)),
        TimeRanges.of(selected),
    )
