"""Threads and processes of a recording as typed arrays: each definition table is read once, each column at first use.

A process is named after the script, module or program that it runs.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import filled, ids, known

from .frame import WholeNumbers
from .text import printable

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


class Threads:
    """The threads by id; the length is their number. Times are monotonic nanoseconds, an unknown one is null.

    Arrays are shared by all readers and cannot be written to.
    """

    def __init__(self, table: pa.Table, processes: int) -> None:
        self._table = table
        self._processes = processes

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def process(self) -> Ids:
        """The process that each thread belongs to; never null."""
        return _ids(self._table, "process")

    @cached_property
    def per_process(self) -> Ids:
        """Number of threads of each process."""
        return _fixed(np.bincount(self.process, minlength=self._processes))

    @cached_property
    def tid(self) -> WholeNumbers:
        """The operating system's ids."""
        return _whole_numbers(self._table, "tid")

    @property
    def name(self) -> list[str | None]:
        """Python's names, else the system's, as recorded: not yet fit to be shown. None is unknown.

        Made at each use: there may be millions of threads, and few readers need their names.
        """
        return _texts(self._table, "name")

    @cached_property
    def main(self) -> Mask:
        """True for the main thread of each process; False where unknown, as for a thread with only an id left."""
        return _mask(self._table, "main", unknown=False)

    @cached_property
    def native(self) -> Mask:
        """True for a thread that is neither main nor named by Python; False where it is unknown if it is main."""
        main = _mask(self._table, "main", unknown=True)
        return _fixed(~main & ~_mask(self._table, "python_name", unknown=False))

    @cached_property
    def creator(self) -> Ids:
        """The thread that created each; NOTHING where it is unknown."""
        return _ids(self._table, "creator")

    @cached_property
    def start_frame(self) -> Ids:
        """The routine that each was created to run: a row of ``native_frames``; NOTHING where it is unknown."""
        return _ids(self._table, "start_frame")

    @cached_property
    def start_ns(self) -> WholeNumbers:
        """Times at which recording of each began."""
        return _whole_numbers(self._table, "start_ns")

    @cached_property
    def end_ns(self) -> WholeNumbers:
        """Times at which each ended; null if that was not seen."""
        return _whole_numbers(self._table, "end_ns")

    @cached_property
    def cpu_ns(self) -> WholeNumbers:
        """CPU nanoseconds of each while it was recorded, by its own clock; null if that was not read at its end."""
        return _whole_numbers(self._table, "cpu_ns")


class Processes:
    """The processes by id, parents before children; the length is their number. Times are monotonic nanoseconds.

    What is unknown is null. Texts are as recorded, not yet fit to be shown, but for the names. Arrays are shared by all
    readers and cannot be written to.
    """

    def __init__(self, table: pa.Table, argv: Sequence[str]) -> None:
        self._table = table
        self._argv = argv

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @cached_property
    def name(self) -> list[str]:
        """Names of the processes, printable and never null: from their command, their parent or their executable."""
        names: list[str] = []
        columns = (self.parent.tolist(), self.command, self.executable, self.origin)
        for number, (parent, command, executable, origin) in enumerate(zip(*columns, strict=True)):
            words = _words(command[:MAX_COMMAND]) if command else []
            if not words and (origin == "first" or (origin is None and number == 0)):
                words = list(self._argv)
            name = name_of(words) if words else None
            if name is None and origin in ("fork", None) and parent is not None and parent < number:
                name = names[parent]
            names.append(printable(name or _base(executable or "") or "unnamed", MAX_NAME))
        return names

    @cached_property
    def parent(self) -> WholeNumbers:
        """The process that created each one; null where none is known."""
        return _whole_numbers(self._table, "parent")

    @cached_property
    def pid(self) -> Ids:
        """The operating system's ids; never null."""
        return _ids(self._table, "pid")

    @cached_property
    def parent_pid(self) -> WholeNumbers:
        """The operating system's ids of the parents."""
        return _whole_numbers(self._table, "parent_pid")

    @cached_property
    def start_ns(self) -> Ids:
        """Times at which recording began in each, or at which one began that was not recorded; never null."""
        return _ids(self._table, "start_ns")

    @cached_property
    def end_ns(self) -> WholeNumbers:
        """Times at which each ended; null if that was not seen."""
        return _whole_numbers(self._table, "end_ns")

    @cached_property
    def exiting_ns(self) -> WholeNumbers:
        """Times at which each interpreter began to shut down; null if that was not seen."""
        return _whole_numbers(self._table, "exiting_ns")

    @cached_property
    def exit_status(self) -> WholeNumbers:
        """Exit statuses, negative for the signal that killed a process."""
        return _whole_numbers(self._table, "exit_status")

    @cached_property
    def executable(self) -> list[str | None]:
        """Paths of the programs; of recorded processes their interpreters."""
        return _texts(self._table, "executable")

    @cached_property
    def command(self) -> list[str | None]:
        """Command lines, as a shell would take them."""
        return _texts(self._table, "command")

    @cached_property
    def python_version(self) -> list[str | None]:
        """Versions of Python, for instance 3.13.0."""
        return _texts(self._table, "python_version")

    @cached_property
    def sampler(self) -> list[str | None]:
        """Their samplers: ``native`` or ``signal``."""
        return _texts(self._table, "sampler")

    @cached_property
    def recorded(self) -> list[str | None]:
        """Recording method of each: ``python``, ``native`` or ``listed``; null in recordings of 1.0 (all Python)."""
        return _texts(self._table, "recorded")

    @cached_property
    def origin(self) -> list[str | None]:
        """Start of each: ``first``, ``fork`` or ``exec``."""
        return _texts(self._table, "origin")

    @cached_property
    def user_ns(self) -> WholeNumbers:
        """CPU nanoseconds in user mode of each whole process; null if that was not seen."""
        return _whole_numbers(self._table, "user_ns")

    @cached_property
    def system_ns(self) -> WholeNumbers:
        """CPU nanoseconds in the kernel of each whole process; null if that was not seen."""
        return _whole_numbers(self._table, "system_ns")

    @cached_property
    def max_resident_bytes(self) -> WholeNumbers:
        """The largest resident set of each; null if that was not seen."""
        return _whole_numbers(self._table, "max_resident_bytes")

    @cached_property
    def spans_followed(self) -> Mask:
        """True where rows say by themselves in which span they were."""
        return _mask(self._table, "spans_followed", unknown=False)

    @cached_property
    def resource(self) -> list[dict[str, str | int]]:
        """Attributes of OpenTelemetry's resource that each has published; empty where there are none."""
        return [_attributes(text) for text in self._table.column("resource").to_pylist()]

    @cached_property
    def pyarrow_live_bytes(self) -> WholeNumbers:
        """What pyarrow's default memory pool had allocated when the interpreter began to shut down."""
        return _whole_numbers(self._table, "pyarrow_live_bytes")

    @cached_property
    def jit(self) -> Mask:
        """True if CPython's own JIT compiler was on; False where that is unknown."""
        return _mask(self._table, "jit", unknown=False)


def _ids(table: pa.Table, name: str) -> Ids:
    return _fixed(ids(table.column(name)))


def _mask(table: pa.Table, name: str, *, unknown: bool) -> Mask:
    return _fixed(np.array(filled(table.column(name), otherwise=unknown), np.bool_))


def _attributes(text: str | None) -> dict[str, str | int]:
    """A JSON object whose values are texts or whole numbers; anything else is none."""
    try:
        values = {} if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {
        printable(key, 100): printable(value, 200) if isinstance(value, str) else value
        for key, value in values.items()
        if isinstance(value, str | int)
    }


def _whole_numbers(table: pa.Table, name: str) -> WholeNumbers:
    column = table.column(name)
    return WholeNumbers(_fixed(ids(column, 0)), _fixed(~known(column)))


def _fixed(values: NDArray[T]) -> NDArray[T]:
    """The same array, which can no longer be written to: one reader cannot change what another one reads."""
    values.flags.writeable = False
    return values


def _texts(table: pa.Table, name: str) -> list[str | None]:
    texts: list[str | None] = table.column(name).to_pylist()
    return texts


_PYTHON = re.compile(r"(python|pypy)[\d.]*t?(\.exe)?$")
_WITH_VALUE = ("--check-hash-based-pycs",)
_MULTIPROCESSING = re.compile(r"from (multiprocessing\.\w+) import ")
"""The command line of multiprocessing's own processes: ``-c 'from multiprocessing.spawn import spawn_main; ...'``."""

MAX_NAME = 60
MAX_COMMAND = 4000
"""Characters read of a command, which has at most 400 (SPEC.md, "processes")."""


def name_of(words: Sequence[str]) -> str | None:
    """The name of a command: of an interpreter's the script or module, of any other its program's; None for nothing."""
    if not words:
        return None
    if not (_PYTHON.search(_base(words[0])) or words[0].startswith("-")):
        return _base(words[0])
    rest = iter(words if words[0].startswith("-") else words[1:])
    for option in rest:
        if not option.startswith("-") or option == "-":
            return _base(option)
        if option.startswith("--"):
            if option in _WITH_VALUE:
                next(rest, None)
            continue
        run = re.match(r"-[^cmWX]*(?:([WX])|([cm]))(.*)", option, re.DOTALL)
        if run is None:
            continue
        value = run[3] or next(rest, "")
        if run[2] is not None:
            return (value or None) if run[2] == "m" else _of_code(value)
    return "python"


def _of_code(text: str) -> str:
    match = _MULTIPROCESSING.match(text)
    return match[1] if match else "-c"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # it was cut in the middle of a quoted word
        return command.replace("'", "").split()


def _base(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
