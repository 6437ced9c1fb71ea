"""A recording, opened for reading: lazy, validated, never written to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from tachograph.format import Manifest, Specification, load_specification

from .storage import MANIFEST, Storage, open_storage
from .tables import Tables
from .unfinished import finish
from .validation import check_parents_first, in_id_order

UNSORTED = ("processes", "threads", "files", "codes", "stacks", "modules", "native_frames")
"""Tables of definitions: small, read whole, addressed by their ids."""


class Recording:
    """One recording: its manifest and its tables. Use it as a context manager, or call ``close``.

    A recording that was never finished (the program or the recorder was killed, or is still running) is read from
    its spool; the original is left as it is.

    Errors (everywhere): FormatError, one line that names the table and the column.
    """

    def __init__(self, path: Path, storage: Storage, specification: Specification) -> None:
        self.path = path
        self.size = storage.size
        """Bytes of the recording on disk, as it was found."""
        self.specification = specification
        self._storage = storage
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        directory = storage.directory
        self.manifest = Manifest.read(directory / MANIFEST)
        self.unfinished = self.manifest.state == "recording"
        """Whether the recording is read from its spool: it is still running, or was left by a crash."""
        if self.unfinished:
            self._temporary = tempfile.TemporaryDirectory(prefix="tachograph-")
            directory = Path(self._temporary.name)
            self.manifest = finish(storage.directory, self.manifest, directory, specification)
        self.tables = Tables(directory, specification)

    @classmethod
    def open(cls, path: Path | str) -> Recording:
        """Opens the recording at ``path``: a ``.tacho`` directory or a zip archive of one.

        Errors:
            FormatError: it is not a recording, or not one that this version can read.
        """
        storage = open_storage(Path(path))
        try:
            return cls(Path(path), storage, load_specification())
        except BaseException:
            storage.close()
            raise

    def table(self, name: str) -> pa.Table:
        """A table of definitions, whole, in the order of its ids."""
        return self._definitions[name] if name in self._definitions else self._read(name)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, a batch of rows at a time."""
        return self.tables.batches(name, columns)

    def rows(self, name: str) -> int:
        """The number of rows of a table."""
        return self.tables.rows(name)

    @property
    def start_ns(self) -> int:
        """Monotonic time at which recording began: second 0 of ``--from`` and ``--to``."""
        starts = [start for start in self.table("processes").column("start_ns").to_pylist() if start is not None]
        return min(starts, default=0)

    @property
    def end_ns(self) -> int | None:
        """Monotonic time at which recording ended, None if nothing tells."""
        processes = self.table("processes").column("end_ns").to_pylist()
        ends = [end for end in [*processes, self.manifest.ended_ns] if end is not None]
        return max(ends, default=None)

    @property
    def interval_ns(self) -> int | None:
        """The sampling interval (the paper's quantum q), None if the manifest does not tell."""
        interval = self.manifest.parameters.get("interval_ns")
        return interval if isinstance(interval, int) and 0 < interval < 1 << 62 else None

    def close(self) -> None:
        """Removes the temporary files of archives and unfinished recordings."""
        self._storage.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _definitions(self) -> dict[str, pa.Table]:
        return {}

    def _read(self, name: str) -> pa.Table:
        if name not in UNSORTED:
            raise ValueError(f"{name} is not a table of definitions: read it in batches")
        table = in_id_order(self.tables.read(name), self.tables.spec(name))
        if name == "stacks":
            check_parents_first(table)
        self._definitions[name] = table
        return table
