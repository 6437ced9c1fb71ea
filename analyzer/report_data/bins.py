"""The spans of equal length into which a recording is divided to be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.opened import Recording
from ..recording.time_window import Window

BINS = 120
"""Spans at most: enough to see what happened when, few enough to keep a value of each line in each."""


FINEST = 4
"""Sampling intervals in a span, at least."""


@dataclass(frozen=True, slots=True)
class Bins:
    """``count`` spans of ``width_ns`` from ``start_ns`` on; ``offset_ns`` is where they begin in the recording."""

    start_ns: int
    width_ns: float
    count: int
    offset_ns: int

    @property
    def width_s(self) -> float:
        """Seconds of one span."""
        return self.width_ns / 1e9

    @property
    def start_s(self) -> float:
        """Seconds from the start of the recording to the first span."""
        return self.offset_ns / 1e9

    @property
    def end_s(self) -> float:
        """Seconds from the start of the recording to the end of the last span."""
        return self.start_s + self.count * self.width_s

    def index(self, time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The span of each moment; what lies outside is put into the nearest."""
        number = np.floor((time_ns - self.start_ns) / self.width_ns).astype(np.int64)
        clipped: NDArray[np.int64] = np.clip(number, 0, self.count - 1)
        return clipped

    def middles_s(self) -> NDArray[np.float64]:
        """The middle of each span, seconds from the start of the recording."""
        return np.asarray(self.start_s + (np.arange(self.count) + 0.5) * self.width_s, np.float64)


def make_bins(recording: Recording, window: Window, count: int = BINS) -> Bins:
    """Divides the part of a recording that lies in ``window``; a span is never shorter than four sampling intervals.

    In shorter ones the chance of a sample more would look like more cores than there are.
    """
    start = max(recording.start_ns, window.start_ns)
    end = recording.end_ns
    if end is None:
        end = _last_seen(recording)
    end = max(min(end, window.end_ns), start + 1)
    interval = recording.interval_ns or 10_000_000
    fitting = max(1, min(count, (end - start) // (FINEST * interval)))
    return Bins(start, (end - start) / fitting, int(fitting), start - recording.start_ns)


def _last_seen(recording: Recording) -> int:
    """The latest moment that the tables know of, for a recording that does not tell when it ended."""
    last = recording.start_ns
    for table, column in (("cpu", "time_ns"), ("waits", "end_ns")):
        for batch in recording.batches(table, [column]):
            if batch.num_rows:
                last = max(last, int(batch.column(column).to_numpy().max()))
    return last
