"""The places of pairs of accesses: lines, and the native paths below them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...recording.frame import Row
from .candidates import runs_one_of


@dataclass(frozen=True)
class Places:
    """Lines and native paths of pairs: those of most of them, and of all."""

    place: Row
    partner: Row
    paths: list[tuple[list[str], list[str]]]
    """Of both accesses of each pair, the most frequent paths first."""
    callers: list[tuple[int, int]]

    @property
    def functions(self) -> list[list[str]]:
        """The functions of both paths of each pair."""
        return [[*first, *again] for first, again in self.paths]

    @property
    def innermost(self) -> list[str]:
        """Of each pair, the function whose access was sampled."""
        return [first[0] for first, _ in self.paths if first]

    def usual_paths(self, functions: re.Pattern[str] | None) -> tuple[list[str], list[str]]:
        """The most frequent paths, of those with one of these functions if there are any."""
        if functions is None:
            return self.paths[0]
        return next((each for each in self.paths if runs_one_of(functions, [*each[0], *each[1]])), self.paths[0])

    @property
    def partner_line_here(self) -> int | None:
        """The partner's line, if it is in the same file."""
        line: int | None = self.partner["line"]
        return line if self.partner["file_id"] == self.place["file_id"] else None
