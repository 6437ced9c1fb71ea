"""The heap within a window: exact books, sampled blocks that agree with them, and the moments that matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording import Recording
from ..sites import Sites
from ..window import Window
from .blocks import Blocks, read_blocks
from .books import Books, read_books
from .calibration import calibrate
from .lasting import lasting
from .moments import Moment, footprint_at, highest


@dataclass(frozen=True)
class Heap:
    """What is known of a recording's memory. Times are monotonic; the window is cut to the recording."""

    sites: Sites
    books: Books
    blocks: Blocks
    """All sampled blocks, of all times and threads; ``Blocks.bytes`` agrees with the books."""
    held: Blocks
    """The same blocks as they count for what is held at a moment (``lasting``)."""
    kept: NDArray[np.bool_]
    """By block, whether it outlived the rows of the books between which it was born."""
    unseen: NDArray[np.float64]
    """By domain, bytes allocated that no sampled block stands for."""
    window: Window
    """What was asked for."""
    zero_ns: int
    """The start of the recording, from which seconds are counted."""
    start_ns: int
    end_ns: int
    start: Moment
    """What was held at the beginning of the window, or of the recording."""
    peak: Moment
    ends_ns: NDArray[np.int64]
    """By process, when it was over: its interpreter began to shut down, or it ended, or the window does."""
    end: Moment
    """What all processes held, each at its own end; the time is that of the last one."""

    @property
    def whole(self) -> bool:
        """Whether the window leaves nothing out."""
        return self.window.whole

    def of_threads(self, chosen: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which blocks threads of ``chosen`` (None: all) allocated, within the spans of the window if it has any."""
        blocks = self.blocks
        mine = np.ones(len(blocks), np.bool_)
        if chosen is not None:
            # A block of no thread of the program's has the thread -1, the last entry here.
            mine &= np.append(chosen, False)[blocks.thread]
        if self.window.spans is not None:
            mine &= self.window.spans.contains(blocks.thread, blocks.birth_ns)
        return mine

    def allocated_in_window(self) -> NDArray[np.bool_]:
        """Which blocks were allocated in the window."""
        inside: NDArray[np.bool_] = (self.blocks.birth_ns >= self.start_ns) & (self.blocks.birth_ns <= self.end_ns)
        return inside

    def freed_in_window(self) -> NDArray[np.bool_]:
        """Which blocks are known to have been released in the window."""
        blocks = self.blocks
        inside: NDArray[np.bool_] = (blocks.death_ns >= self.start_ns) & (blocks.death_ns <= self.end_ns)
        return inside & blocks.followed

    def alive_at_end(self) -> NDArray[np.bool_]:
        """Which blocks their process held at its end."""
        # By their own deaths: at the end every sampled block was looked at, so nothing needs to be spread.
        return self.blocks.alive(self.ends_ns[self.blocks.process])


def read_heap(recording: Recording, window: Window) -> Heap | None:
    """The heap of the part of a recording that lies in ``window``; None if memory was not recorded."""
    if not recording.recorded("memory") and not recording.recorded("allocations"):
        return None
    sites, books = Sites(recording), read_books(recording)
    calibrated = calibrate(read_blocks(recording, sites), books)
    blocks, held = calibrated.blocks, lasting(calibrated.blocks)
    begin = recording.start_ns
    last = recording.end_ns
    if last is None:
        last = max([begin, *books.time_ns[-1:].tolist(), *blocks.birth_ns[-1:].tolist()])
    start_ns = max(begin, window.start_ns)
    # The window is open at its end; the recording is not.
    end_ns = max(start_ns, last if window.end_ns > last else window.end_ns - 1)
    ends_ns = _ends(recording, end_ns)
    threads = np.bincount(
        recording.table("threads").column("process").to_numpy().astype(np.int64), minlength=len(ends_ns)
    )
    processes = np.unique(books.process).tolist()
    at_end = [footprint_at(books, blocks, process, int(ends_ns[process])) for process in processes]
    before = float(sum(books.before().values()))
    at_start = [footprint_at(books, held, process, start_ns) for process in processes] if start_ns > begin else [before]
    return Heap(
        sites=sites,
        books=books,
        blocks=blocks,
        held=held,
        kept=calibrated.kept,
        unseen=calibrated.unseen,
        window=window,
        zero_ns=begin,
        start_ns=start_ns,
        end_ns=end_ns,
        start=Moment(start_ns, float(np.sum(at_start)) if processes else np.nan),
        peak=highest(books, held, start_ns, end_ns, threads),
        ends_ns=ends_ns,
        end=Moment(
            int(max((ends_ns[process] for process in processes), default=end_ns)),
            float(np.sum(at_end)) if processes else np.nan,
        ),
    )


def _ends(recording: Recording, end_ns: int) -> NDArray[np.int64]:
    """By process, when it was over, no later than ``end_ns``."""
    processes = recording.table("processes")
    ends = []
    for exiting, ended in zip(
        processes.column("exiting_ns").to_pylist(), processes.column("end_ns").to_pylist(), strict=True
    ):
        known = [moment for moment in (exiting, ended) if moment is not None]
        ends.append(min(end_ns, *known) if known else end_ns)
    return np.array(ends, np.int64)
