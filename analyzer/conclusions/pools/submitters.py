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

    A Python stack *calls* a library if one of its CPU samples or waits has the library in its native call path. Stacks
    are told apart down to the instruction, so the stack of a sleep behind a call is another one than that of the call.
    A stack without any of them *may call* a library if the instruction of its innermost frame does in another stack.
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
        stacks = recording.table("stacks")
        self._sites = _numbered(ids(stacks.column("code")), ids(stacks.column("instruction")))
        self.libraries = self._libraries(workers, seen)
        """By thread: the library whose pool it belongs to, NO_LIBRARY for none."""
        self.unsampled = ~seen.stacks
        """By node of the call tree: whether it has no CPU sample."""
        wanted = distinct(self.libraries[self.libraries != NO_LIBRARY])[:_MOST_LIBRARIES]
        self._calls = {library: self._callers(library, seen) for library in wanted.tolist()}
        self._may_call = {library: self._at_sites_of(callers) & ~seen.known for library, callers in self._calls.items()}

    def calls(self, library: Ids, stack: Ids) -> Mask:
        """Whether each stack calls the library beside it."""
        return _looked_up(self._calls, library, stack)

    def may_call(self, library: Ids, stack: Ids) -> Mask:
        """Whether each stack may call the library beside it."""
        return _looked_up(self._may_call, library, stack)

    def _at_sites_of(self, callers: Mask) -> Mask:
        """By node, and one more for none: whether the instruction of its innermost frame is that of a caller."""
        sites = np.zeros(int(self._sites.max(initial=0)) + 1, np.bool_)
        sites[self._sites[callers[:-1]]] = True
        return np.append(sites[self._sites], False)

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


def _looked_up(masks: dict[int, Mask], library: Ids, stack: Ids) -> Mask:
    found = np.zeros(len(stack), np.bool_)
    for number, mask in masks.items():
        mine = library == number
        found[mine] = mask[stack[mine]]
    return found


def _numbered(first: Ids, second: Ids) -> Ids:
    """Pairs as numbers from 0 on, equal where both are."""
    width = int(second.max(initial=0)) + 2
    numbered: Ids = np.unique((first + 1) * width + second + 1, return_inverse=True)[1].astype(np.int64)
    return numbered


class _Seen:
    """The distinct pairs of stacks and native frames, and of stacks and native paths, of all CPU samples and waits.

    Of workers: the distinct threads, frames and paths together, of CPU samples.
    """

    def __init__(self, recording: Recording, workers: Mask, nodes: int) -> None:
        frames, paths = recording.rows("native_frames") + 1, recording.rows("native_stacks") + 1
        self.stacks: Mask = np.zeros(nodes + 1, np.bool_)
        """By node, and one more for none: whether it has a CPU sample."""
        self.known: Mask = np.zeros(nodes + 1, np.bool_)
        """Whether it has a CPU sample or a wait."""
        with_frame, with_path = np.empty(0, np.int64), np.empty(0, np.int64)
        of_workers = np.empty((0, 3), np.int64)
        for table in ("cpu", "waits"):
            for batch in recording.batches(table, ("thread", "stack", "native_frame", "native_stack")):
                thread = numbers(batch.column("thread"))
                stack, frame, path = (
                    ids(batch.column(name), none)
                    for name, none in (("stack", nodes), ("native_frame", frames - 1), ("native_stack", paths - 1))
                )
                self.known[stack] = True
                python = stack != nodes
                with_frame = distinct(np.concatenate((with_frame, (stack * frames + frame)[python])))
                with_path = distinct(np.concatenate((with_path, (stack * paths + path)[python])))
                if table == "waits":
                    continue
                self.stacks[stack] = True
                worker = ~python & workers[thread]
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
