"""Time in which a thread was held up: it waited for a processor, or its process was stopped.

What a program does in a third of a second takes seconds on a busy machine. Only time in which it went on, or waited for
something of its own, says how it goes on.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tachograph.format.enumerations import StackState

from ...recording.opened import Recording
from ...samples.stream import CPU, Stream


class HeldUp:
    """Answers by thread; the waits are read when the first is asked for."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def between(self, thread: int, begin_ns: float, end_ns: float) -> float:
        """Nanoseconds of this time in which the thread was held up, as far as waiting was recorded."""
        threads, starts, ends, lost = self._waits
        first, last = np.searchsorted(threads, (thread, thread + 1))
        start, end = starts[first:last], ends[first:last]
        inside = np.clip(np.minimum(end, end_ns) - np.maximum(start, begin_ns), 0.0, None)
        return float((lost[first:last] * inside / np.maximum(end - start, 1.0)).sum())

    @cached_property
    def _waits(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Thread, begin, end and time off the CPU, by thread.

        Of a process that was stopped all that is known is that its threads did not run. Stacks of waits that the
        program asked for are mostly seen.
        """
        stream = Stream(self._recording)
        columns: list[tuple[NDArray[np.float64], ...]] = [(np.empty(0),) * 4]
        for batch in stream.waits() if stream.waits_known else ():
            unseen = (batch.stack == batch.nodes) & (batch.state == StackState.UNSEEN)
            held = batch.only((batch.kind == CPU) | unseen)
            columns.append(
                tuple(each.astype(np.float64) for each in (held.thread, held.start_ns, held.end_ns, held.whole_ns))
            )
        thread, start, end, lost = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        order = np.argsort(thread, kind="stable")
        return thread[order].astype(np.int64), start[order], end[order], lost[order]
