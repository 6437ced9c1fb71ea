"""The parts of a recording to remove, and those to keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.filter import make_filter, with_threadless
from ...recording.opened import Recording
from ...recording.question_options import DROPPABLE, WITHOUT
from ...recording.time_window import Window, make_window


@dataclass(frozen=True)
class Request:
    """A request that fits a recording."""

    drop: frozenset[str]
    """Of DROPPABLE."""
    without: frozenset[str]
    """Of WITHOUT."""
    window: Window
    threads: NDArray[np.bool_]
    """Mask of the threads that are kept."""
    processes: NDArray[np.bool_]
    """Mask of the processes that are kept."""
    typed: dict[str, Any]
    """The request as written to the manifest."""

    @property
    def tables_left_out(self) -> set[str]:
        """Long tables that are not kept at all."""
        return {table for name in self.without for table in WITHOUT[name]}


def make_request(
    recording: Recording,
    *,
    drop: Iterable[str] = DROPPABLE,
    without: Iterable[str] = (),
    thread: str | None = None,
    process: Sequence[str] = (),
    start_s: float | None = None,
    end_s: float | None = None,
) -> Request:
    """A request for ``recording``; threads, processes and the window are named as for ``export``.

    Errors:
        FormatError: the recording has no such thread, process or window, its threads cannot be taken apart, or there
            is nothing to do.
    """
    dropped = frozenset(drop)
    # Memory counters are of whole processes: for some of its threads they would not be true.
    left_out = frozenset(without) | ({"memory"} if thread is not None else set())
    if not (dropped or left_out or thread is not None or process or (start_s, end_s) != (None, None)):
        raise FormatError("there is nothing to remove: say what with --drop, --without, --thread or --from and --to")
    window = make_window(start_s, end_s, recording.start_ns, recording.end_ns)
    if not window.whole and "memory" not in left_out and recording.recorded("memory"):
        window = between_readings(recording, window)
    if thread is not None and "signal" in recording.all_processes.sampler:
        # Its rows hold the time of the whole process, to be shared out among all of them.
        raise FormatError("the signal sampler's threads share their time: none of them can be kept without the others")
    rows = len(recording.all_threads)
    selected = with_threadless(recording, make_filter(recording, thread, process))
    processes = selected[rows:].copy()
    processes[recording.all_threads.process[selected[:rows]]] = True
    return Request(
        drop=dropped,
        without=left_out,
        window=window,
        threads=selected[:rows],
        processes=processes,
        typed={
            "dropped": sorted(dropped),
            "without": sorted(left_out),
            "window_s": None if window.whole else _seconds(recording, window),
            "only_some_threads": thread is not None,
            "only_some_processes": bool(process),
        },
    )


def between_readings(recording: Recording, window: Window) -> Window:
    """The window, widened so that it begins and ends with a reading of the memory counters.

    Counters say what happened between two readings. For a part of that time nothing exact is known.
    """
    before, after = [window.start_ns], [window.end_ns]
    for batch in recording.batches("memory", ["time_ns"]):
        times = batch.column("time_ns").to_numpy()
        before += times[times <= window.start_ns][-1:].tolist()
        after += (times[times >= window.end_ns - 1][:1] + 1).tolist()
    # Both are sorted by time: the last one before is the nearest, and so is the first one after.
    return Window(before[-1], after[1] if len(after) > 1 else after[0])


def _seconds(recording: Recording, window: Window) -> list[float]:
    end = window.end_ns if recording.end_ns is None else min(window.end_ns, recording.end_ns)
    start = max(window.start_ns, recording.start_ns)
    return [(moment - recording.start_ns) / 1e9 for moment in (start, end)]
