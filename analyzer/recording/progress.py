"""Who is told how far a long command has come."""

from __future__ import annotations

from typing import Protocol


class Watcher(Protocol):
    """Is told what is being done. It may be told from any thread."""

    def step(self, what: str) -> None:
        """Something begins that does not say how far it is."""
        ...

    def read(self, table: str, done: int, of: int) -> None:
        """So many rows of a table have been read."""
        ...
