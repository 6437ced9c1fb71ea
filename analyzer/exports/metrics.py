"""The rows of each metric that can be exported how much of it there was on which stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.filter import Mask
from ..recording.opened import Recording
from ..recording.question_options import Metric
from ..recording.time_window import Window
from ..samples.stream import Stream
from .memory_rows import allocated_rows, copied_rows, end_rows, live_rows, resident_rows
from .rows import NONE, STATE_LABELS, Rows


def read_rows(recording: Recording, metric: Metric, window: Window, processes: Mask | None = None) -> Iterator[Rows]:
    """The rows of a metric that lie in the window, in batches; of some processes at least, where it says which.

    Errors:
        FormatError: it was not recorded, or the recording is damaged.
    """
    return _READERS[metric](recording, window, processes)


def cpu_rows(recording: Recording, window: Window, _: Mask | None = None) -> Iterator[Rows]:
    """CPU samples with their CPU time."""
    stream = Stream(recording, window)
    for batch in stream.cpu(times=True):
        yield Rows(
            time_ns=batch.time_ns,
            end_ns=batch.time_ns,
            thread=batch.thread.astype(np.int64),
            stack=_ids(batch.stack, stream),
            native=batch.native,
            state=batch.state.astype(np.int64),
            weight=batch.weight_ns,
            labels=STATE_LABELS,
            native_stack=batch.native_stack,
            native_path=batch.native_path,
        )


def wait_rows(recording: Recording, window: Window, _: Mask | None = None) -> Iterator[Rows]:
    """Waits, with the part of each that lies in the window; not those for a processor."""
    stream = Stream(recording, window)
    if not stream.waits_known:
        raise FormatError("waiting was not recorded: there is no metric 'wait' to export")
    for each in stream.waits():
        batch = each.for_the_world()
        yield Rows(
            time_ns=np.maximum(batch.start_ns, window.start_ns),
            end_ns=np.minimum(batch.end_ns, window.end_ns),
            thread=batch.thread,
            stack=_ids(batch.stack, stream),
            native=batch.native,
            state=batch.state,
            weight=batch.weight_ns,
            labels=STATE_LABELS,
            native_stack=batch.native_stack,
            native_path=batch.native_path,
        )


def _ids(stack: NDArray[np.integer], stream: Stream) -> NDArray[np.int64]:
    return np.where(stack == stream.nodes, NONE, stack.astype(np.int64))


_READERS: Mapping[Metric, Callable[[Recording, Window, Mask | None], Iterator[Rows]]] = {
    Metric.CPU: cpu_rows,
    Metric.WAIT: wait_rows,
    Metric.ALLOCATED: allocated_rows,
    Metric.LIVE: live_rows,
    Metric.RESIDENT: resident_rows,
    Metric.END: end_rows,
    Metric.COPIED: copied_rows,
}
