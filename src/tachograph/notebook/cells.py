"""The cells that a session runs: which of them runs now, their numbers, and their ids in the notebook."""

from __future__ import annotations

import re
from inspect import currentframe
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

_NUMBER = re.compile(r"In ?\[(\d{1,9})\]")


class _Running(NamedTuple):
    info: ExecutionInfo
    number: int
    counted: int
    """The shell's counter when the cell began."""


class Cells:
    """The cells that run in a shell, by its events ``pre_run_cell`` and ``post_run_cell``.

    A cell may run others (``run_cell``), so those that run are a stack.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._running: list[_Running] = []
        self._ids: dict[int, str] = {}
        # IPython 9 counts on before a cell runs, earlier ones behind it; which of them this is, each cell shows.
        number = self._of_callers()
        self._ahead = 0 if number is None else shell.execution_count - number

    def begins(self, info: ExecutionInfo) -> None:
        """A cell is about to run."""
        counted = int(self._shell.execution_count)
        number = counted - self._ahead if info.store_history or not self._running else self._running[-1].number
        self._running.append(_Running(info, number, counted))
        if info.store_history and getattr(info, "cell_id", None):
            self._ids[number] = str(info.cell_id)

    def ends(self, result: ExecutionResult | None) -> None:
        """A cell has run, or could not be run; without a result it was given up."""
        if result is None or result.info is None:
            self._running.clear()
            return
        while self.is_running(result.info):
            last = self._running.pop()
            if last.info is result.info and last.info.store_history and result.execution_count is not None:
                self._ahead = last.counted - int(result.execution_count)

    @property
    def innermost(self) -> ExecutionInfo | None:
        """The cell that runs now; None between cells, and where it began before there were these events."""
        return self._running[-1].info if self._running else None

    def is_running(self, info: ExecutionInfo) -> bool:
        """True if a cell has not ended yet."""
        return any(each.info is info for each in self._running)

    @property
    def number(self) -> int:
        """The number of the cell that runs now."""
        if self._running:
            return self._running[-1].number
        number = self._of_callers()
        return int(self._shell.execution_count) if number is None else number

    def id_of(self, number: int) -> str | None:
        """The id of the cell under a number; None if it has none, or it is not known."""
        return self._ids.get(number)

    def of_code(self, path: str) -> tuple[int | None, str | None]:
        """Number and id of the cell whose code has this ``co_filename``; None for what is not known."""
        named = self._shell.compile.format_code_name(path)
        number = _NUMBER.search(named[1]) if named is not None else None
        if number is None:
            return None, None
        return int(number[1]), self.id_of(int(number[1]))

    def _of_callers(self) -> int | None:
        """The number of the cell whose code calls this; None if none does."""
        frame = currentframe()
        while frame is not None:
            number, _ = self.of_code(frame.f_code.co_filename)
            if number is not None:
                return number
            frame = frame.f_back
        return None
