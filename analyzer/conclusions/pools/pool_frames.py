"""What native frames tell of a pool: which library it is of, and whether a worker waits for work."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ...recording.native_names import short_name
from ...recording.opened import Recording
from ...recording.rust_names import rust_name
from ...recording.tree import NOTHING
from ...samples.native_frames import RECORDER, RUNTIME

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
    """A name as ``WAITS`` has it: of Rust without generic arguments and traits."""
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
        """By library: whether it is an OpenMP runtime; one more at the end for none."""
        self.keeps_teams: NDArray[np.bool_] = np.array(
            [*(_GOMP.match(PurePosixPath(path).name) is not None for path in self.paths), False]
        )
        """By library: whether only the thread that created a worker ever asks it; one more at the end for none."""
        symbols: list[str | None] = [*frames.column("symbol").to_pylist(), None]
        known: dict[str, int] = {}
        names = [NOTHING if symbol is None else known.setdefault(symbol, len(known)) for symbol in symbols]
        self._symbol: NDArray[np.int64] = np.array(names, np.int64)
        self._c_library = np.append(np.array([*c_library, False], np.bool_)[module], False)
        waits = [symbol is not None and WAITS.search(_readable(symbol)) is not None for symbol in symbols]
        self.waits: NDArray[np.bool_] = np.array(waits, np.bool_) | self.openmp[self.libraries]
        """Whether a worker whose own innermost frame this is (the C library's aside) waits for work."""
        stacks = recording.table("native_stacks")
        self.parent: NDArray[np.int64] = ids(stacks.column("parent"), NOTHING)
        self._frame = ids(stacks.column("native_frame"), frames.num_rows)
        self.own, self.first = self._along_paths()

    def _along_paths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """By row of ``native_stacks``: its innermost frame that is not the C library's, and its outermost library.

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
        """By row of ``native_stacks``, and one more for none: whether the library is on the path."""
        found: list[bool] = []
        here = (self.libraries[self._frame] == library).tolist()
        for parent, mine in zip(self.parent.tolist(), here, strict=True):
            found.append(mine or (parent != NOTHING and found[parent]))
        return np.array([*found, False], np.bool_)

    def waiting(self, frame: NDArray[np.int64], path: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether samples of workers are of waiting ones; ids are NOTHING where there is none.

        That is so where the innermost frame that is not the C library's is a function that waits, or the routine that
        the thread was created to run: a worker's work is in functions that this calls. ``start`` are start routines.
        """
        own = np.where(self._c_library[frame] | (frame == NOTHING), self.own[path], frame)
        begins = (self._symbol[own] == self._symbol[start]) & (self._symbol[own] != NOTHING)
        begins &= self.libraries[own] == self.libraries[start]
        return np.asarray(self.waits[own] | begins, np.bool_)
