"""Which Python stacks ask for the work of which pools: known from the stacks' own CPU samples, in a pass before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct, ids, numbers

from ...recording.opened import Recording
from ...recording.tree import NOTHING
from .pool_frames import NO_LIBRARY, PoolFrames

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST_LIBRARIES = 64
"""Libraries with pools; threads of further ones are charged to nothing."""


class Submitters:
    """What is known of workers and of Python stacks over the whole recording.

    A Python stack *calls* a library if one of its CPU samples has the library in its native call path. Stacks are told
    apart down to the instruction, so the stack of a sleep behind a call is another one than that of the call.
    """

    def __init__(self, recording: Recording, frames: PoolFrames, workers: Mask) -> None:
        self._frames = frames
        threads = recording.table("threads")
        self.start: Ids = ids(threads.column("start_frame"))
        """By thread: the routine that it was created to run."""
        self.creator = _creators(ids(threads.column("creator")), workers)
        """By thread: the thread without the workers in between that created it; NOTHING where it is not known."""
        self._nodes = recording.rows("stacks")
        seen = _Seen(recording, workers, self._nodes)
        self.libraries = self._libraries(workers, seen)
        """By thread: the library whose pool it belongs to, NO_LIBRARY for none."""
        self.unsampled = ~seen.stacks
        """By node of the call tree: whether it has no CPU sample."""
        wanted = distinct(self.libraries[self.libraries != NO_LIBRARY])[:_MOST_LIBRARIES]
        self._calls = {library: self._callers(library, seen) for library in wanted.tolist()}

    def calls(self, library: Ids, stack: Ids) -> Mask:
        """Whether each stack calls the library beside it."""
        found = np.zeros(len(stack), np.bool_)
        for number, callers in self._calls.items():
            mine = library == number
            found[mine] = callers[stack[mine]]
        return found

    def _libraries(self, workers: Mask, seen: _Seen) -> Ids:
        """From the start routine; of a thread that begins in a runtime, the outermost library on most of its paths."""
        library = self._frames.libraries[self.start]
        library[~workers] = NO_LIBRARY
        first = self._frames.first[seen.worker_path]
        first = np.where(first == NO_LIBRARY, self._frames.libraries[seen.worker_frame], first)
        for thread in distinct(seen.worker[library[seen.worker] == NO_LIBRARY]).tolist():
            found = first[(seen.worker == thread) & (first != NO_LIBRARY)]
            if len(found):
                library[thread] = int(np.bincount(found).argmax())
        return library

    def _callers(self, library: int, seen: _Seen) -> Mask:
        callers = np.zeros(self._nodes + 1, np.bool_)
        callers[seen.stack_of_path[self._frames.holds(library)[seen.path]]] = True
        callers[seen.stack_of_frame[self._frames.libraries[seen.frame] == library]] = True
        callers[self._nodes] = False
        return callers


class _Seen:
    """The distinct pairs of stacks and native frames, and of stacks and native paths, among all CPU samples.

    Of workers: the distinct threads, frames and paths together.
    """

    def __init__(self, recording: Recording, workers: Mask, nodes: int) -> None:
        frames, paths = recording.rows("native_frames") + 1, recording.rows("native_stacks") + 1
        self.stacks: Mask = np.zeros(nodes + 1, np.bool_)
        with_frame, with_path = np.empty(0, np.int64), np.empty(0, np.int64)
        of_workers = np.empty((0, 3), np.int64)
        for batch in recording.batches("cpu", ("thread", "stack", "native_frame", "native_stack")):
            thread = numbers(batch.column("thread"))
            stack, frame, path = (
                ids(batch.column(name), none)
                for name, none in (("stack", nodes), ("native_frame", frames - 1), ("native_stack", paths - 1))
            )
            self.stacks[stack] = True
            python, worker = stack != nodes, (stack == nodes) & workers[thread]
            with_frame = distinct(np.concatenate((with_frame, (stack * frames + frame)[python])))
            with_path = distinct(np.concatenate((with_path, (stack * paths + path)[python])))
            rows = np.stack([thread[worker], frame[worker], path[worker]], axis=1, dtype=np.int64)
            of_workers = np.unique(np.concatenate([of_workers, rows]), axis=0)
        self.stack_of_frame, self.frame = np.divmod(with_frame, frames)
        self.stack_of_path, self.path = np.divmod(with_path, paths)
        self.worker, self.worker_frame, self.worker_path = of_workers.T


def _creators(creator: Ids, workers: Mask) -> Ids:
    """Follows threads of pools that created threads; creators come before what they created, or the chain ends."""
    found = creator.copy()
    for _ in range(8):
        nested = (found != NOTHING) & workers[found]
        if not nested.any():
            break
        found[nested] = creator[found[nested]]
    found[(found != NOTHING) & workers[found]] = NOTHING
    return found
