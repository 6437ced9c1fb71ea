"""Requests that OpenTelemetry traced: the trace and the span, of the program's own, that each row was in."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .opened import Recording
from .recorded_spans import read_spans
from .span_tracks import NOWHERE, Tracks, follows
from .time_window import TimeRanges

TRACE_ID, SPAN_ID = "trace_id", "span_id"
"""Fields of a span that began a request: 32 and 16 hexadecimal digits."""


@dataclass(frozen=True)
class TracedRequests:
    """The requests of a recording."""

    ids: list[tuple[bytes, bytes]]
    """The trace, 16 bytes, and the span, 8 bytes, of each."""
    tracks: Tracks
    """The tracks of rows: those of a request are behind the threads, in the order of ``ids``."""

    def of(self, track: NDArray[np.integer]) -> NDArray[np.int64]:
        """The request of each row; -1 where it was in none."""
        return np.where(track >= self.tracks.first, track.astype(np.int64) - self.tracks.first, -1)


def read_traced_requests(recording: Recording) -> TracedRequests | None:
    """The requests; None where there are none, or no row says in which span it was."""
    followed = follows(recording)
    if not followed.any() or not recording.rows("spans"):
        return None
    spans, first = read_spans(recording), len(followed)
    requests: dict[tuple[bytes, bytes], int] = {}
    track = np.full(len(spans) + 1, NOWHERE, np.int64)
    for row, (parent, fields) in enumerate(zip(spans.parent.tolist(), spans.fields, strict=True)):
        mine = None if fields is None or TRACE_ID not in fields else _ids(fields)
        if mine is not None:
            track[row] = first + requests.setdefault(mine, len(requests))
        elif 0 <= parent < row:
            track[row] = track[parent]
    if not requests:
        return None
    nothing = TimeRanges.of([])
    return TracedRequests(list(requests), Tracks(first, np.append(followed, False), track, (nothing, nothing), nothing))


def _ids(fields: str) -> tuple[bytes, bytes] | None:
    """The ids among the fields of a span; None where they are not both there, or are nothing but zeros."""
    try:
        values = json.loads(fields)
        trace, span = (bytes.fromhex(values[name]) for name in (TRACE_ID, SPAN_ID))
    except (ValueError, RecursionError, KeyError, TypeError):  # of another kind, or written by another recorder
        return None
    return (trace, span) if len(trace) == 16 and len(span) == 8 and any(trace) and any(span) else None
