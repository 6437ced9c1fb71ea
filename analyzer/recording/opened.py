"""A recording, opened for reading: lazy, validated, never written to.

A recording that was never finished is read from its spool (``unfinished``, loaded only then).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa

from tachograph.format import Container, Manifest, Specification, load_specification, open_container

from .definitions import Processes, Threads
from .sources import with_main_files
from .tables import BATCH_ROWS, Tables

DEFINITIONS = (
    "processes",
    "threads",
    "files",
    "codes",
    "stacks",
    "modules",
    "native_frames",
    "native_stacks",
    "gpu_devices",
)
"""Tables of definitions: small, read whole, addressed by their ids, which are their row numbers."""


class Watcher(Protocol):
    """Receives the progress of a long command, from any thread."""

    def step(self, what: str) -> None:
        """A step begins that reports no progress."""
        ...

    def read(self, table: str, done: int, of: int) -> None:
        """So many rows of a table have been read."""
        ...


class Recording:
    """One recording: its manifest and its tables. Use it as a context manager, or call ``close``.

    A recording that was never finished (the program or the recorder was killed, or is still running) is read from its
    spool; the original is left as it is.

    Errors (everywhere): FormatError, one line that names the table, and the column where it is one column's fault.
    """

    def __init__(self, path: Path | str) -> None:
        """Opens the recording at ``path``: a ``.tacho`` directory or a zip archive of one."""
        self.path = Path(path)
        self.watcher: Watcher | None = None
        """Receives the progress of reading."""
        self.specification: Specification = load_specification()
        self._definitions: dict[str, pa.Table] = {}
        with ExitStack() as stack:
            self.container: Container = stack.enter_context(open_container(self.path))
            self.manifest: Manifest = self.container.manifest()
            self.unfinished = self.manifest.state == "recording"
            """True if the recording is read from its spool: it is still running, or was left by a crash."""
            self.being_written = False
            """True if more data is known to be coming."""
            whole = self.container
            if self.unfinished:
                import tempfile

                from .unfinished import finish, is_being_written

                self.being_written = is_being_written(self.container)
                directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tachograph-")))
                self.manifest = finish(self.container, self.manifest, directory, self.specification)
                whole = stack.enter_context(open_container(directory))
            self.tables = Tables(whole, self.specification, self.manifest.tables)
            stack.callback(self.tables.close)
            self._stack = stack.pop_all()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Opens the recording at ``path``; the same as ``Recording(path)``."""
        return cls(path)

    @property
    def size(self) -> int:
        """Bytes of the recording, archives unpacked."""
        return sum(map(self.container.size, self.container.names()))

    def table(self, name: str) -> pa.Table:
        """A table of definitions, whole, in the order of its ids; it is read once.

        Code objects of a file that has several paths name the row of ``files`` that stands for it (``main_files``).
        """
        if name not in DEFINITIONS:
            raise ValueError(f"{name} is not a table of definitions: read it in batches")
        if name not in self._definitions:
            table = self.tables.read(name)
            self._definitions[name] = with_main_files(table, self.table("files")) if name == "codes" else table
        return self._definitions[name]

    def verify(self) -> tuple[int, int]:
        """Reads all tables whole and checks them; returns how many there are, and how many have a checksum.

        Errors:
            FormatError: the first table that is not as the specification or the manifest says.
        """
        tables = [name for name in self.specification.tables if self.tables.has(name)]
        checked = 0
        for name in tables:
            checked += self.tables.verify(name)
            if name in DEFINITIONS:
                self.tables.read(name)
            else:
                for _ in self.tables.batches(name, self.specification.tables[name].schema.names):
                    pass
        return len(tables), checked

    @cached_property
    def all_threads(self) -> Threads:
        """The threads as typed arrays."""
        return Threads(self.table("threads"), len(self.all_processes))

    @cached_property
    def all_processes(self) -> Processes:
        """The processes as typed arrays."""
        return Processes(self.table("processes"), self.manifest.argv)

    def batches(self, name: str, columns: Sequence[str], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, a batch of at most ``rows`` rows at a time."""
        batches = self.tables.batches(name, columns, rows)
        return batches if self.watcher is None else self._watched(self.watcher, name, batches)

    def step(self, what: str) -> None:
        """Report the current step to the watcher."""
        if self.watcher is not None:
            self.watcher.step(what)

    def _watched(self, watcher: Watcher, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done, rows = 0, self.rows(name)
        for batch in batches:
            watcher.read(name, done, rows)
            yield batch
            done += batch.num_rows
        watcher.step("adding up")

    def rows(self, name: str) -> int:
        """The number of rows of a table."""
        return self.tables.rows(name)

    def recorded(self, name: str) -> bool:
        """True if the facts of a table were recorded: otherwise they are unknown, not absent."""
        return self.rows(name) > 0 or self.specification.recorded(
            name, self.manifest.parameters, self.manifest.format_version
        )

    @property
    def start_ns(self) -> int:
        """Monotonic time at which recording began: second 0 of ``--from`` and ``--to``."""
        return min(self.all_processes.start_ns.tolist(), default=0)

    @property
    def end_ns(self) -> int | None:
        """Monotonic time at which recording ended, None if it is unknown."""
        ends = [*self.all_processes.end_ns.tolist(), self.manifest.ended_ns]
        return max((end for end in ends if end is not None), default=None)

    @property
    def rotated_from_ns(self) -> int | None:
        """When the window of a rotated recording began that it holds; None of the first one, and where none is."""
        window = self.manifest.window or {}
        return window.get("start_ns") if window.get("number") != window.get("first") else None

    @property
    def rotated_on(self) -> bool:
        """True if a later window of the same run was begun: processes without an end went on in it."""
        return (self.manifest.window or {}).get("end_ns") is not None

    @property
    def interval_ns(self) -> int | None:
        """The sampling interval (the paper's quantum q), None if the manifest does not have it."""
        interval = self.manifest.parameters.get("interval_ns")
        return interval if type(interval) is int and 0 < interval < 1 << 62 else None

    def close(self) -> None:
        """Closes the files and removes the temporary ones."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
