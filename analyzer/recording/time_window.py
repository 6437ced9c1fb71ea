"""The part of a recording that a question is about: ``--from`` and ``--to``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from .time_ranges import TimeRanges

_OPEN_START = -(1 << 62)
_OPEN_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Window:
    """Monotonic times, ``start_ns <= time < end_ns``, and perhaps only ranges of threads within them (``spans``)."""

    start_ns: int = _OPEN_START
    end_ns: int = _OPEN_END
    spans: TimeRanges | None = None

    @property
    def whole(self) -> bool:
        """Whether the window leaves nothing out."""
        return self == Window()

    def contains(self, time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which moments lie in the window."""
        return (time_ns >= self.start_ns) & (time_ns < self.end_ns)

    def selects(self, thread: NDArray[np.integer], time_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which moments of threads lie in the window, and in its spans."""
        inside = self.contains(time_ns)
        return inside if self.spans is None else inside & self.spans.contains(thread, time_ns)

    def part(
        self, thread: NDArray[np.integer], start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The part (0..1) of each span of time of a thread that lies in the window, and in its spans."""
        if self.spans is None:
            return self.fraction(start_ns, end_ns)
        return self.spans.part(thread, start_ns, end_ns)

    def fraction(self, start_ns: NDArray[np.int64], end_ns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The part (0..1) of each span that lies in the window; a span without length counts whole or not at all."""
        inside = np.minimum(end_ns, self.end_ns) - np.maximum(start_ns, self.start_ns)
        length = end_ns - start_ns
        part = np.clip(inside / np.maximum(length, 1), 0.0, 1.0)
        return np.where(length > 0, part, self.contains(start_ns).astype(np.float64))


def make_window(start_s: float | None, end_s: float | None, recording_start: int, recording_end: int | None) -> Window:
    """A window from seconds since the start of the recording; negative ones count from its end.

    Errors:
        FormatError: it is empty, or counts from an end that is not known.
    """

    def moment(seconds: float | None, otherwise: int) -> int:
        if seconds is None:
            return otherwise
        base = recording_start
        if seconds < 0:
            if recording_end is None:
                raise FormatError("the recording does not tell when it ended: give --from and --to from its start")
            base = recording_end
        return max(_OPEN_START, min(_OPEN_END, base + round(seconds * 1e9)))

    window = Window(moment(start_s, _OPEN_START), moment(end_s, _OPEN_END))
    if window.start_ns >= window.end_ns:
        raise FormatError("--from is not before --to: the window is empty")
    if recording_end is not None and (window.start_ns > recording_end or window.end_ns <= recording_start):
        length = (recording_end - recording_start) / 1e9
        raise FormatError(f"the window lies outside of the recording, which is {length:.3f} s long")
    return window
