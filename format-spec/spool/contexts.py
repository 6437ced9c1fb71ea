"""Builds the table stacks: equal contexts of all processes become one row. The tables of their code come with it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from ..errors import clean_text
from ..schema import MAX_STACK_DEPTH, Specification
from .arrow_columns import column, numbers_but, numbers_of
from .codes_table import CodesTable, SourceTexts, instructions_by_code
from .id_numbers import IdNumbers
from .layout import NONE, Stack
from .process_definitions import ProcessFacts

if TYPE_CHECKING:
    import pyarrow as pa

_NO_INSTRUCTION = -1


class ContextTree:
    """The files, codes and stacks of a recording. Nodes are columns: there may be ten million."""

    def __init__(self) -> None:
        self._codes = CodesTable()
        self._numbers: dict[int | tuple[int, str], int] = {}
        self._parents, self._code_of, self._instructions = array("I"), array("I"), array("i")
        self._depths = array("H")
        self._tasks: dict[int, str] = {}

    def add(self, process: ProcessFacts) -> IdNumbers:
        """Add the stacks of a process that its rows mention, and their callers.

        Returns the recording's ids by its stack ids. Counts its lost references.
        """
        ids = process.stacks.numbers()
        codes = {NONE: NONE}
        for stack in process.mentions["stack"].rising():
            if ids.get(stack) is None:
                self._add_path(process, stack, ids, codes)
        return ids

    def _add_path(self, process: ProcessFacts, stack: int, ids: IdNumbers, codes: dict[int, int]) -> None:
        """Add a node after its callers, so that every parent comes before its children."""
        path: list[tuple[int, Stack | None]] = []
        on_path: set[int] = set()
        node = stack
        parent = None
        while node != NONE and (parent := ids.get(node)) is None and node not in on_path:
            record = process.stacks.get(node)
            path.append((node, record))
            on_path.add(node)
            node = NONE if record is None else record.parent
        process.references_lost += node in on_path
        for node, record in reversed(path):
            if parent is not None and self._depths[parent] == MAX_STACK_DEPTH:
                # No recorder writes stacks as deep as this; the innermost levels stay.
                process.references_lost += 1
                parent = None
            if record is None:
                process.references_lost += 1
                # Not merged with another: two lost contexts need not be the same one.
                parent = self._append(None, NONE, _NO_INSTRUCTION)
            else:
                code = codes.get(record.code)
                if code is None:
                    code = codes[record.code] = self._code(process, record.code)
                parent = self._number(parent, code, max(record.instruction, _NO_INSTRUCTION), record.task)
            ids[node] = parent

    def _code(self, process: ProcessFacts, code: int) -> int:
        record = process.codes.get(code)
        number = None if record is None else self._codes.number(record)
        process.references_lost += number is None
        return NONE if number is None else number

    def _number(self, parent: int | None, code: int, instruction: int, task: str | None) -> int:
        place = 0 if parent is None else parent + 1
        node = (place << 32 | code) << 32 | instruction - _NO_INSTRUCTION
        number = self._numbers.setdefault(node if task is None else (node, task), len(self._parents))
        if number == len(self._parents):
            self._append(parent, code, instruction)
            if task is not None:
                self._tasks[number] = clean_text(task)
        return number

    def _append(self, parent: int | None, code: int, instruction: int) -> int:
        self._parents.append(NONE if parent is None else parent)
        self._code_of.append(code)
        self._instructions.append(instruction)
        self._depths.append(1 if parent is None else self._depths[parent] + 1)
        return len(self._parents) - 1

    def tables(self, spec: Specification, texts: SourceTexts) -> dict[str, pa.Table]:
        """The three tables. What makes contexts equal is let go: nothing can be added any more."""
        self._numbers.clear()
        instructions = instructions_by_code(self._code_of, self._instructions, len(self._codes))
        return {**self._codes.tables(spec, texts, instructions), "stacks": self._table(spec)}

    def _table(self, spec: Specification) -> pa.Table:
        import pyarrow as pa

        schema, count = spec.tables["stacks"].schema, len(self._parents)
        tasks = column([self._tasks.get(stack) for stack in range(count)], pa.string()) if self._tasks else None
        columns = {
            "stack": numbers_of(array("I", range(count))),
            "parent": numbers_but(self._parents, NONE),
            "code": numbers_but(self._code_of, NONE),
            "instruction": numbers_but(self._instructions, _NO_INSTRUCTION),
            "task": pa.nulls(count, pa.string()) if tasks is None else tasks,
        }
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
