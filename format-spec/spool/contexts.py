"""Builds the tables files, codes and stacks: equal code objects and equal contexts of all processes become one row."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..clean_text import clean_text
from ..schema import MAX_STACK_DEPTH, Specification
from .arrow_columns import table_of
from .layout import NONE, Code, Stack
from .line_table import reduce_line_table
from .process_definitions import ProcessFacts
from .told_texts import ToldText

if TYPE_CHECKING:
    import pyarrow as pa

ReadSource = Callable[[str], bytes | None]
_Node = tuple[int | None, int | None, int | None, str | None]


class ContextTree:
    """The files, codes and stacks of a recording."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._codes: dict[tuple[str, str, int, int, bytes | None, str], int] = {}
        self._nodes: dict[_Node, int] = {}
        self._depths: list[int] = []

    def add(self, process: ProcessFacts) -> dict[int, int]:
        """Add the stacks of a process that its rows mention, and their callers.

        Returns the map from its stack ids to the recording's. Counts its lost references.
        """
        codes: dict[int, int | None] = {NONE: None}
        ids: dict[int, int] = {}
        for stack in sorted(process.mentions["stack"]):
            if stack not in ids:
                self._add_path(process, stack, ids, codes)
        return ids

    def _add_path(self, process: ProcessFacts, stack: int, ids: dict[int, int], codes: dict[int, int | None]) -> None:
        """Add a node after its callers, so that every parent comes before its children."""
        path: list[tuple[int, Stack | None]] = []
        on_path: set[int] = set()
        node = stack
        while node != NONE and node not in ids and node not in on_path:
            record = process.stacks.get(node)
            path.append((node, record))
            on_path.add(node)
            node = NONE if record is None else record.parent
        looped = node in on_path
        process.references_lost += looped
        parent = None if node == NONE or looped else ids[node]
        for node, record in reversed(path):
            if parent is not None and self._depths[parent] == MAX_STACK_DEPTH:
                # No recorder writes stacks as deep as this; the innermost levels stay.
                process.references_lost += 1
                parent = None
            if record is None:
                process.references_lost += 1
                # Not merged with another: two lost contexts need not be the same one.
                parent = ids[node] = self._append((None, None, -1 - len(self._nodes), None))
                continue
            if record.code not in codes:
                codes[record.code] = self._code(process.codes.get(record.code))
                process.references_lost += codes[record.code] is None
            instruction = record.instruction if record.instruction >= 0 else None
            parent = ids[node] = self._append((parent, codes[record.code], instruction, record.task))

    def _append(self, node: _Node) -> int:
        number = self._nodes.setdefault(node, len(self._nodes))
        if number == len(self._depths):
            self._depths.append(1 if node[0] is None else self._depths[node[0]] + 1)
        return number

    def _code(self, code: Code | None) -> int | None:
        if code is None:
            return None
        key = (code.filename, code.qualname, code.first_line, code.flags, code.line_table, code.template_lines)
        return self._codes.setdefault(key, len(self._codes))

    def _instructions_seen(self) -> dict[int, set[int]]:
        seen: dict[int, set[int]] = {}
        for _, code, instruction, _ in self._nodes:
            if code is not None and instruction is not None:
                seen.setdefault(code, set()).add(instruction)
        return seen

    def tables(
        self,
        spec: Specification,
        read_source: ReadSource | None,
        store_sources: bool,
        told: Mapping[str, ToldText],
    ) -> dict[str, pa.Table]:
        """The three tables; ``read_source`` is asked once for every file whose text was not ``told``."""
        files = [self._files.setdefault(key[0], len(self._files)) for key in self._codes]
        seen = self._instructions_seen()
        codes = [
            (
                code,
                file,
                clean_text(qualname),
                line,
                flags - (flags >> 31 << 32),
                None if table is None else reduce_line_table(table, seen.get(code, ())),
                clean_text(template_lines) or None,
            )
            for code, file, (_, qualname, line, flags, table, template_lines) in zip(
                range(len(files)), files, self._codes, strict=True
            )
        ]
        sources = [_source(path, told.get(path), read_source, store_sources) for path in self._files]
        nodes = [
            (
                stack,
                parent,
                code,
                None if instruction is None or instruction < 0 else instruction,
                None if task is None else clean_text(task),
            )
            for stack, (parent, code, instruction, task) in enumerate(self._nodes)
        ]

        def table(name: str, rows: Iterable[tuple[object, ...]]) -> pa.Table:
            return table_of(rows, spec.tables[name].schema)

        return {
            "files": table(
                "files",
                [
                    (file, clean_text(path), *source)
                    for file, (path, source) in enumerate(zip(self._files, sources, strict=True))
                ],
            ),
            "codes": table("codes", codes),
            "stacks": table("stacks", nodes),
        }


_Source = tuple[str | None, int | None, str | None, int | None, str | None]
"""The columns of ``files`` from ``sha256`` on."""


def _source(path: str, told: ToldText | None, read_source: ReadSource | None, store: bool) -> _Source:
    if told is not None:
        data = told.data
        text = clean_text(told.text) if store else None
        return hashlib.sha256(data).hexdigest(), len(data), text, told.cell, told.cell_id and clean_text(told.cell_id)
    read = read_source(path) if read_source is not None else None
    if read is None:
        return None, None, None, None, None
    return hashlib.sha256(read).hexdigest(), len(read), source_text(read) if store else None, None, None


def source_text(data: bytes) -> str | None:
    """The text of a Python source file, decoded as the language says; None if it cannot be decoded."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return clean_text(data.decode(encoding))
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None
