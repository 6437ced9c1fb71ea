"""Where native code of a library begins below the innermost Python frame."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ...recording.call_tree import NOTHING
from ...recording.native_names import short_library
from ...recording.opened import Recording
from ...recording.text import printable
from ..pools.submitters import NO_LIBRARY, PoolFrames
from .kernels import BUILDING, CONCATENATING, COPYING, ITERATING, READING, is_dispatch

DEEPEST = 64
"""Frames of a native path that are shown."""

_OF_COPIES = re.compile(r"(gemm|symm|hemm|trmm|trsm|syrk|herk)(3m)?_kernel")
"""The innermost loops of products of matrices in OpenBLAS, such as ``dgemm_kernel_HASWELL``: they load what ``_oncopy``
and its like have copied into a buffer. ``dgemm_small_kernel`` loads the operands themselves."""

_PACKING = re.compile(
    r"^[sdczq](gemm|symm|hemm|trmm|trsm|syrk|herk|trti|potrf|lauum)\w*copy|^(inner_(advanced_)?thread|exec_blas\w*|blas_\w+)$"
)
"""Functions of OpenBLAS that fill its buffers, and those of its threads: what they hold is no result."""

_STATE_OF_ITERATORS = re.compile(r"^(NpyIter|npyiter|PyArray_MapIter|mapiter_fill|arraymapiter)")
"""Functions of NumPy's iterators: in their memory are strides and places of operands, and no result."""

_BRIDGES = re.compile(r"_ctypes\b|_cffi_backend|libffi")
"""Libraries that only lead to others."""

_Ids = NDArray[np.int64]


class Borders:
    """Where native code of a library begins below the innermost Python frame, by row of ``native_stacks``."""

    def __init__(self, recording: Recording) -> None:
        self._libraries = PoolFrames(recording)
        table = recording.table("native_stacks")
        self.parent: list[int] = ids(table.column("parent")).tolist()
        self.frame: list[int] = ids(table.column("native_frame")).tolist()
        self.activation: list[int] = ids(table.column("stack")).tolist()
        frames = recording.table("native_frames")
        symbols = frames.column("symbol").to_pylist()
        self.names = ["?" if name is None else printable(name, 200) for name in symbols]
        numbers: dict[tuple[int, str | None], int] = {}
        modules = ids(frames.column("module")).tolist()
        functions = [numbers.setdefault(each, len(numbers)) for each in zip(modules, symbols, strict=True)]
        self._function = np.array([*functions, NOTHING], np.int64)
        self._of_copies = np.array([name is not None and bool(_OF_COPIES.search(name)) for name in [*symbols, None]])
        self._packing = np.array([name is not None and bool(_PACKING.search(name)) for name in [*symbols, None]])
        self._iterators = np.array(
            [name is not None and bool(_STATE_OF_ITERATORS.search(name)) for name in [*symbols, None]]
        )
        self._copies = np.array([name is not None and bool(COPYING.search(name)) for name in [*symbols, None]])
        concatenates = [CONCATENATING.search(name) is not None for name in self.names]
        builds = [BUILDING.search(name) is not None for name in self.names]
        # Outermost library below the nearest activation of the evaluation loop, and the Python stack of that.
        reads = [READING.search(name) is not None for name in self.names]
        library, stack, iterated, concatenated, built = [NO_LIBRARY], [NOTHING], [False], [False], [False]
        read = [False]
        for parent, frame, own in zip(self.parent, self.frame, self.activation, strict=True):
            if own != NOTHING:
                library.append(NO_LIBRARY)
                stack.append(own)
                iterated.append(False)
                concatenated.append(False)
                built.append(False)
                read.append(False)
                continue
            read.append(read[parent + 1] or (frame != NOTHING and reads[frame]))
            concatenated.append(concatenated[parent + 1] or (frame != NOTHING and concatenates[frame]))
            built.append(built[parent + 1] or (frame != NOTHING and builds[frame]))
            iterated.append(
                iterated[parent + 1] or (frame != NOTHING and ITERATING.search(self.names[frame]) is not None)
            )
            above = library[parent + 1]
            own_library = int(self._libraries.libraries[frame])
            library.append(above if above != NO_LIBRARY else own_library)
            stack.append(stack[parent + 1])
        self._library, self._stack = np.array(library, np.int64), np.array(stack, np.int64)
        self._iterated = np.array(iterated, np.bool_)
        self._concatenated = np.array(concatenated, np.bool_)
        self._concatenates = np.array([*concatenates, False], np.bool_)
        self._built = np.array(built, np.bool_)
        self._builds = np.array([*builds, False], np.bool_)
        self._read = np.array(read, np.bool_)
        self._reads = np.array([*reads, False], np.bool_)
        self._frame_of = np.array([*self.frame, NOTHING], np.int64)
        self._parent_of = np.array([*self.parent, NOTHING], np.int64)

    def called_library(self, stack: _Ids, frame: _Ids, path: _Ids) -> _Ids:
        """The library that Python code called; NO_LIBRARY where it runs itself, or calls the interpreter alone.

        The interpreter counts as one (``interpreter``) where it goes through all the elements of other objects.

        Ids are NOTHING where there is none. The innermost frame is not in its path: if the path's nearest activation
        runs another Python frame, the innermost frame is that of the evaluation loop.
        """
        own = self._libraries.libraries[frame]
        below = self._library[path + 1]
        library = np.where(below != NO_LIBRARY, below, own)
        builds = self.concatenates(frame, path) | self._builds[frame] | self._built[path + 1] | self.reads(frame, path)
        library = np.where((library == NO_LIBRARY) & builds, self.interpreter, library)
        return np.where((self._stack[path + 1] == stack) & (stack != NOTHING), library, NO_LIBRARY)

    @property
    def interpreter(self) -> int:
        """The number of the interpreter, as if it were a library."""
        return len(self._libraries.paths)

    def concatenates(self, frame: _Ids, path: _Ids) -> NDArray[np.bool_]:
        """True where the interpreter makes a new object of two of its own: ``bytes``, ``str``, ``tuple``, ``list``."""
        return np.asarray(self._concatenates[frame] | self._concatenated[path + 1], np.bool_)

    def reads(self, frame: _Ids, path: _Ids) -> NDArray[np.bool_]:
        """True where a built-in function goes through elements and keeps none of them: ``sum``, or ``x in items``."""
        return np.asarray(self._reads[frame] | self._read[path + 1], np.bool_)

    def in_library(self, frame: _Ids) -> NDArray[np.bool_]:
        """True for frames of a library itself: not of the interpreter, of the C library or of the recorder."""
        return np.asarray(self._libraries.libraries[frame] != NO_LIBRARY, np.bool_)

    def is_iterated(self, path: _Ids) -> NDArray[np.bool_]:
        """True where a built-in function, such as ``sum``, called the library one element at a time."""
        return np.asarray(self._iterated[path + 1], np.bool_)

    def accessing(self, frame: _Ids, path: _Ids) -> tuple[_Ids, _Ids]:
        """The same frames and paths; of ``memcpy`` and its like those of the library's function that called it."""
        caller = np.where(path == NOTHING, NOTHING, self._frame_of[path])
        of_caller = self._copies[frame] & (self._libraries.libraries[caller] != NO_LIBRARY)
        return np.where(of_caller, caller, frame), np.where(of_caller, self._parent_of[path], path)

    def functions(self, frame: _Ids) -> _Ids:
        """The number of the function that each frame is in."""
        return np.asarray(self._function[frame], np.int64)

    def same_function(self, frame: _Ids, other: _Ids) -> NDArray[np.bool_]:
        """True if frames are of one function; where none has a name, of one library."""
        return np.asarray(self._function[frame] == self._function[other], np.bool_)

    def loads_copies(self, frame: _Ids) -> NDArray[np.bool_]:
        """True for frames of functions that load what their own library copied, call by call, into a buffer."""
        return np.asarray(self._of_copies[frame], np.bool_)

    def is_packing(self, frame: _Ids) -> NDArray[np.bool_]:
        """True for frames of functions whose memory is a buffer of their library's own, and no result."""
        return np.asarray(self._packing[frame], np.bool_)

    def is_iterator(self, frame: _Ids) -> NDArray[np.bool_]:
        """True for frames of functions that work with the state of an iterator of NumPy's."""
        return np.asarray(self._iterators[frame], np.bool_)

    def is_dispatch(self, frame: _Ids) -> NDArray[np.bool_]:
        """True for frames of functions that come before the work; NOTHING is none."""
        numbers, place = np.unique(frame, return_inverse=True)
        dispatch = [number != NOTHING and is_dispatch(self.names[number]) for number in numbers.tolist()]
        return np.array(dispatch, np.bool_)[place]

    def name_of_library(self, number: int) -> str:
        """The name of a library, as in all parts of a report."""
        if number == self.interpreter:
            return "the interpreter"
        return printable(short_library(self._libraries.paths[number]), 100)

    def own_library(self, frames: _Ids, called: int) -> int:
        """The library that most accesses are in, where a bridge for all libraries was called: ``ctypes``, ``cffi``."""
        if called == self.interpreter or not _BRIDGES.match(PurePosixPath(self._libraries.paths[called]).name):
            return called
        inner = self._libraries.libraries[frames]
        inner = inner[(inner != NO_LIBRARY) & (inner != called)]
        others = [
            each for each in inner.tolist() if not _BRIDGES.match(PurePosixPath(self._libraries.paths[each]).name)
        ]
        return max(set(others), key=others.count) if others else called

    def path(self, frame: int, path: int) -> list[str]:
        """The functions from the innermost one out to the one that Python code called."""
        names = [] if frame == NOTHING else [self.names[frame]]
        while path != NOTHING and self.activation[path] == NOTHING and len(names) < DEEPEST:
            names.append("?" if self.frame[path] == NOTHING else self.names[self.frame[path]])
            path = self.parent[path]
        return names
