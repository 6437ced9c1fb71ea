"""Names, source files and lines of native program counters, from the libraries on this machine."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from tachograph.recorder.collect.debug_files import DebugError, debug_file_of, line_tables

if TYPE_CHECKING:
    from tachograph.format import NativePlace
    from tachograph.recorder.collect.debug_files import LineTables

MOST_BYTES = 256 << 20
"""Bytes of tables of lines that are read for one recording."""

MOST_KEPT = 16 << 20
"""Bytes of them that are kept for the next question: whole tables, which were compressed. The C library's has 1 MB."""


class NativePlaces:
    """Resolves the program counters of one recording, library by library.

    With ``lines`` also to source files and lines, where debug information is on this machine: in the library itself, or
    in the file that its distribution keeps it in.
    """

    def __init__(self, *, lines: bool = True) -> None:
        self._room = MOST_BYTES if lines else 0
        self._kept_room = MOST_KEPT
        self._unread: set[str] = set()
        self._known: dict[str, dict[int, NativePlace]] = {}
        self._tables_of: dict[str, LineTables] = {}

    @property
    def unread(self) -> int:
        """The number of libraries whose debug information is damaged, or too large to be read."""
        return len(self._unread)

    def resolve(self, path: str, offsets: list[int]) -> list[NativePlace]:
        """The places at ``offsets`` of the file of a mapping; what is unknown of them is None.

        Each is looked for once: the file may be replaced, and looking takes its time.
        """
        places = self._known.setdefault(path, {})
        new = [offset for offset in dict.fromkeys(offsets) if offset not in places]
        if new:
            places.update(zip(new, self._resolved(path, new), strict=True))
        return [places[offset] for offset in offsets]

    def _resolved(self, path: str, offsets: list[int]) -> list[NativePlace]:
        from tachograph.format import NativePlace

        nowhere = [NativePlace()] * len(offsets)
        try:
            from tachograph.recorder import _native
        except ImportError:
            return nowhere
        if not path.startswith("/"):
            return nowhere  # the kernel's name for a mapping without a file
        debug_path = debug_file_of(path) if self._room > 0 else ""
        try:
            functions = _native.resolve(path, debug_path if debug_path != path else "", offsets)
        except (RuntimeError, OSError):
            return nowhere  # the file has been replaced or removed since
        addresses = [address or 0 for _, address, _ in functions]
        entries = [start or 0 for _, _, start in functions]
        tables = self._tables(debug_path, {*addresses, *entries})
        if tables is None:
            return [NativePlace(name) for name, _, _ in functions]
        lines = _native.source_lines(tables.line, tables.line_text, addresses, entries)
        return [
            NativePlace(name, *_place(lines[at]), *_place(lines[len(functions) + at]))
            for at, (name, _, _) in enumerate(functions)
        ]

    def _tables(self, path: str, addresses: Collection[int]) -> LineTables | None:
        if not path or path in self._tables_of:
            return self._tables_of.get(path)
        try:
            tables = line_tables(path, addresses)
        except DebugError:
            self._unread.add(path)
            return None
        except OSError:
            return None
        if tables is not None:
            size = len(tables.line) + len(tables.line_text)
            if size > self._room:
                self._unread.add(path)
                return None
            self._room -= size
            if tables.whole and size <= self._kept_room:
                self._kept_room -= size
                self._tables_of[path] = tables
        return tables


def _place(found: tuple[str, int] | None) -> Sequence[Any]:
    return (None, None) if found is None else (posixpath.normpath(found[0]), found[1])
