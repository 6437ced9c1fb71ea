"""The Python stacks that submit work to each pool, found in a pass over the stacks' own CPU samples.

``PoolFrames`` reads native frames: the library of a pool, and whether a worker waits for work. ``Submitters`` combines
them with the samples of the whole recording.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct, ids

from ...recording.call_tree import NOTHING
from ...recording.native_names import rust_name, short_name
from ...recording.opened import Recording
from ...samples.counter_classes import RECORDER, RUNTIME
from ...samples.groups import Keys
from ...samples.stream import CpuBatch, Stream, WaitBatch

NO_LIBRARY = -1

_CXX = re.compile(r"lib(stdc\+\+|gcc_s|c\+\+(abi)?)(?=[.-])")
"""Names of the C++ runtimes: threads of std::thread begin in them."""

OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")
"""Names of the OpenMP runtimes."""

_GOMP = re.compile(r"libgomp\b")
"""GNU's: each team belongs to the thread that created it, as long as that lives. LLVM's and Intel's give threads of one
team to another's when that has no more use for them."""

WAITS = re.compile(
    r"gomp_\w*(wait|barrier|thread_start)|do_(spin|wait)\b|blas_thread_server|__kmp_\w*(wait|barrier|suspend|yield|fork_)"
    r"|__kmp_launch|rayon_core::(sleep|registry::(WorkerThread::wait_until|ThreadBuilder|main_loop))|crossbeam_deque"
    r"|tbb::\w+(::\w+)*::(\w*wait\w*|receive_or_steal)|mkl_\w*_wait|Eigen::\w*ThreadPool\w*::(WaitForWork|Steal|NonEmpty)"
)
"""Functions in which workers spin until there is work, or until the others of their team are through."""


def _readable(symbol: str) -> str:
    """A name to match with ``WAITS``: of Rust without generic arguments and traits."""
    rust = rust_name(symbol)
    return symbol if rust is None else short_name(rust)


class PoolFrames:
    """Facts by row of ``native_frames`` and of ``native_stacks``; each array has one entry more, for none."""

    def __init__(self, recording: Recording) -> None:
        frames, modules = recording.table("native_frames"), recording.table("modules")
        paths = modules.column("path").to_pylist()
        interpreters = {
            path for path, own in zip(paths, modules.column("interpreter").to_pylist(), strict=True) if own is True
        }
        self.paths: list[str] = []
        """Path of each library, by its number."""
        numbers: dict[str, int] = {}
        of_module, c_library = [], []
        for path in paths:
            name = PurePosixPath(path).name
            c_library.append(RUNTIME.match(name) is not None or RECORDER.match(path) is not None)
            if c_library[-1] or _CXX.match(name) or path in interpreters or path.startswith("["):
                of_module.append(NO_LIBRARY)
                continue
            of_module.append(numbers.setdefault(path, len(numbers)))
        self.paths = list(numbers)
        module = ids(frames.column("module"), len(paths))
        self.libraries: NDArray[np.int64] = np.append(np.array([*of_module, NO_LIBRARY], np.int64)[module], NO_LIBRARY)
        """The library that a frame is in; NO_LIBRARY for C and C++ runtimes, the interpreter and unknown ones."""
        self.openmp: NDArray[np.bool_] = np.array(
            [*(OPENMP.match(PurePosixPath(path).name) is not None for path in self.paths), False]
        )
        """True for libraries that are OpenMP runtimes; the last entry is for none."""
        self.keeps_teams: NDArray[np.bool_] = np.array(
            [*(_GOMP.match(PurePosixPath(path).name) is not None for path in self.paths), False]
        )
        """True for libraries whose workers serve only the thread that created them; the last entry is for none."""
        symbols: list[str | None] = [*frames.column("symbol").to_pylist(), None]
        symbol_numbers: dict[str, int] = {}
        names = [
            NOTHING if symbol is None else symbol_numbers.setdefault(symbol, len(symbol_numbers)) for symbol in symbols
        ]
        self._symbol: NDArray[np.int64] = np.array(names, np.int64)
        self._c_library = np.append(np.array([*c_library, False], np.bool_)[module], False)
        waits = [symbol is not None and WAITS.search(_readable(symbol)) is not None for symbol in symbols]
        self.waits: NDArray[np.bool_] = np.array(waits, np.bool_) | self.openmp[self.libraries]
        """True if a worker with this innermost frame (the C library's aside) waits for work."""
        stacks = recording.table("native_stacks")
        self.parent: NDArray[np.int64] = ids(stacks.column("parent"), NOTHING)
        self._frame = ids(stacks.column("native_frame"), frames.num_rows)
        self.own, self.first = self._along_paths()

    def _along_paths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Innermost frame outside the C library, and outermost library, of each row of ``native_stacks``.

        The first is the number of frames where there is none.
        """
        none = len(self._symbol) - 1
        own: list[int] = []
        first: list[int] = []
        library, c_library = self.libraries[self._frame].tolist(), self._c_library[self._frame].tolist()
        for parent, frame, of, plain in zip(
            self.parent.tolist(), self._frame.tolist(), library, c_library, strict=True
        ):
            above = parent != NOTHING
            own.append(frame if not plain and frame != none else own[parent] if above else none)
            first.append(first[parent] if above and first[parent] != NO_LIBRARY else of)
        return np.array([*own, none], np.int64), np.array([*first, NO_LIBRARY], np.int64)

    def holds(self, library: int) -> NDArray[np.bool_]:
        """True for rows of ``native_stacks`` with the library on the path; the last entry, for none, is False."""
        on_path: list[bool] = []
        of_library = (self.libraries[self._frame] == library).tolist()
        for parent, mine in zip(self.parent.tolist(), of_library, strict=True):
            on_path.append(mine or (parent != NOTHING and on_path[parent]))
        return np.array([*on_path, False], np.bool_)

    def waiting(self, frame: NDArray[np.int64], path: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for samples of workers that wait for work; ids are NOTHING where there is none.

        That is so where the innermost frame that is not the C library's is a function that waits, or the routine that
        the thread was created to run: a worker's work is in functions that this calls. ``start`` are start routines.
        """
        own = np.where(self._c_library[frame] | (frame == NOTHING), self.own[path], frame)
        begins = (self._symbol[own] == self._symbol[start]) & (self._symbol[own] != NOTHING)
        begins &= self.libraries[own] == self.libraries[start]
        return np.asarray(self.waits[own] | begins, np.bool_)


Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MOST_LIBRARIES = 64
"""Libraries with pools; threads of further ones are charged to nothing."""


class Submitters:
    """Libraries of workers, and Python stacks that submit work to them, over the whole recording.

    A Python stack *calls* a library if one of its CPU samples or waits has the library in its native call path. Stacks
    are told apart down to the instruction, so the stack of a sleep behind a call is another one than that of the call.
    A stack without any of them *may call* a library if the instruction of its innermost frame does in another stack.
    """

    def __init__(self, stream: Stream, frames: PoolFrames, workers: Mask) -> None:
        recording = stream.recording
        self._frames = frames
        threads = recording.all_threads
        self.start = threads.start_frame
        """By thread: the routine that it was created to run."""
        self.creator = _creators(threads.creator, workers)
        """By thread: the thread without the workers in between that created it; NOTHING where it is not known."""
        self._nodes = recording.rows("stacks")
        sampled = _see(stream.whole(), workers)
        stacks = recording.table("stacks")
        self._sites = _numbered(ids(stacks.column("code")), ids(stacks.column("instruction")))
        self.libraries = self._libraries(workers, sampled)
        """By thread: the library whose pool it belongs to, NO_LIBRARY for none."""
        self.unsampled = ~sampled.stacks
        """True for nodes of the call tree without a CPU sample."""
        libraries = distinct(self.libraries[self.libraries != NO_LIBRARY])[:_MOST_LIBRARIES]
        self._calls = {library: self._callers(library, sampled) for library in libraries.tolist()}
        self._may_call = {
            library: self._at_sites_of(callers) & ~sampled.has_path for library, callers in self._calls.items()
        }

    def calls(self, library: Ids, stack: Ids) -> Mask:
        """True for stacks that call the library beside them."""
        return _looked_up(self._calls, library, stack)

    def may_call(self, library: Ids, stack: Ids) -> Mask:
        """True for stacks that may call the library beside them."""
        return _looked_up(self._may_call, library, stack)

    def _at_sites_of(self, callers: Mask) -> Mask:
        """True for nodes whose innermost frame is at an instruction of a caller; the last entry is for no node."""
        sites = np.zeros(int(self._sites.max(initial=0)) + 1, np.bool_)
        sites[self._sites[callers[:-1]]] = True
        return np.append(sites[self._sites], False)

    def _libraries(self, workers: Mask, sampled: _SampledPaths) -> Ids:
        """From the start routine; of a thread that begins in a runtime, the outermost library on most of its paths."""
        library = self._frames.libraries[self.start]
        library[~workers] = NO_LIBRARY
        first = self._frames.first[sampled.worker_path]
        first = np.where(first == NO_LIBRARY, self._frames.libraries[sampled.worker_frame], first)
        for thread in distinct(sampled.worker[library[sampled.worker] == NO_LIBRARY]).tolist():
            candidates = first[(sampled.worker == thread) & (first != NO_LIBRARY)]
            if len(candidates):
                library[thread] = int(np.bincount(candidates).argmax())
        return library

    def _callers(self, library: int, sampled: _SampledPaths) -> Mask:
        callers = np.zeros(self._nodes + 1, np.bool_)
        callers[sampled.stack_of_path[self._frames.holds(library)[sampled.path]]] = True
        callers[sampled.stack_of_frame[self._frames.libraries[sampled.frame] == library]] = True
        callers[self._nodes] = False
        return callers


def _looked_up(masks: dict[int, Mask], library: Ids, stack: Ids) -> Mask:
    values = np.zeros(len(stack), np.bool_)
    for number, mask in masks.items():
        mine = library == number
        values[mine] = mask[stack[mine]]
    return values


def _numbered(first: Ids, second: Ids) -> Ids:
    """Pairs as numbers from 0 on, equal where both are."""
    width = int(second.max(initial=0)) + 2
    numbered: Ids = np.unique((first + 1) * width + second + 1, return_inverse=True)[1].astype(np.int64)
    return numbered


@dataclass(frozen=True)
class _SampledPaths:
    """The distinct pairs of stacks and native frames, and of stacks and native paths, of all CPU samples and waits.

    Of workers: the distinct threads, frames and paths together, of CPU samples. Frames and paths are NOTHING for none.
    """

    stacks: Mask
    """True for nodes with a CPU sample; the last entry is for none."""
    has_path: Mask
    """True if it has a CPU sample or a wait."""
    stack_of_frame: Ids
    frame: Ids
    stack_of_path: Ids
    path: Ids
    worker: Ids
    worker_frame: Ids
    worker_path: Ids


class _WaitPlaces:
    """The sink for the distinct stacks, native frames and native paths of waits. Those of CPU samples are groups."""

    times = False

    def __init__(self, stream: Stream) -> None:
        frames, paths = stream.recording.rows("native_frames") + 1, stream.recording.rows("native_stacks") + 1
        self._nodes = stream.nodes
        self._keys = Keys({"stack": stream.nodes + 1, "native": frames, "native_stack": paths})

    def cpu(self, batch: CpuBatch) -> None:
        """CPU samples are taken by group."""

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        # NOTHING is -1, and keys are counted from 0 on.
        self._keys.of({"stack": batch.stack, "native": batch.native + 1, "native_stack": batch.native_stack + 1})

    def columns(self) -> tuple[Ids, Ids, Ids]:
        """Stacks, native frames and native paths; NOTHING for none."""
        columns = self._keys.columns()
        stack = np.where(columns["stack"] == self._nodes, NOTHING, columns["stack"])
        return stack, columns["native"] - 1, columns["native_stack"] - 1


def _see(stream: Stream, workers: Mask) -> _SampledPaths:
    """Reads a whole recording."""
    waits = _WaitPlaces(stream)
    stream.feed(waits)
    groups = stream.groups.columns
    stacks, has_path = np.zeros((2, stream.nodes + 1), np.bool_)
    stacks[groups["stack"]] = True
    has_path[groups["stack"]] = True
    wait_stack, wait_frame, wait_path = waits.columns()
    has_path[wait_stack] = True
    stack = np.concatenate([groups["stack"], wait_stack])
    frame = np.concatenate([groups["native"], wait_frame])
    path = np.concatenate([groups["native_stack"], wait_path])
    python = stack != NOTHING
    of_workers = (groups["stack"] == NOTHING) & workers[groups["thread"]]
    return _SampledPaths(
        stacks,
        has_path,
        *_distinct_rows(stack[python], frame[python]),
        *_distinct_rows(stack[python], path[python]),
        *_distinct_rows(*(groups[name][of_workers] for name in ("thread", "native", "native_stack"))),
    )


def _distinct_rows(*columns: Ids) -> Ids:
    """The columns of the rows that differ from one another."""
    rows: Ids = np.unique(np.stack(columns, axis=1), axis=0).T
    return rows


def _creators(creator: Ids, workers: Mask) -> Ids:
    """Follow threads of pools that created threads; creators come before their threads, or the chain ends."""
    root = creator.copy()
    for _ in range(8):
        nested = (root != NOTHING) & workers[root]
        if not nested.any():
            break
        root[nested] = creator[root[nested]]
    root[(root != NOTHING) & workers[root]] = NOTHING
    return root
