"""The sections of a report below its lines: title, words and columns of each, the same for all renderers.

A renderer formats: it takes a column's values from the profile's frame of the section (a page: from what it can sum up
for any window of time), writes them by the column's unit, and leaves out what it has no room for. What a section needs
beyond that, such as a tree or a bar, is the renderer's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..recording.frame import Row


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a section's table."""

    name: str
    """Its name in the profile's frame."""
    unit: str
    """``s``, ``bytes``, ``share``, ``count`` or ``text``."""
    title: str
    key: str = ""
    """Its name in a page's data, where that is another: a page has sums over windows."""
    hint: str = ""
    rank: int = 1
    """1 for a column that is always there, 2 for one that goes where there is no room, 3 for one that goes first."""
    head: str = ""
    """Its head in a terminal, ``width`` characters wide; it is no column there without one."""
    width: int = 8
    first: int = 0
    """A terminal shows the columns with the least first, else in their order."""
    main: bool = False
    """The figure that the section is about."""
    whole: bool = False
    """Of the whole time, whatever window is looked at."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report; its texts are parts of sentences."""

    title: str
    subtitle: str
    """Beside the title."""
    page: str | None = None
    """The same on a page, where the hints of columns say the rest; None for the subtitle."""
    nothing: str = ""
    """In place of rows where there are none."""
    columns: tuple[Column, ...] = ()

    @property
    def page_hint(self) -> str:
        """What a page has beside the title, as sentences."""
        return _sentence(self.subtitle if self.page is None else self.page)

    @property
    def page_nothing(self) -> str:
        """What a page has in place of rows."""
        return _sentence(self.nothing)

    @property
    def in_terminal(self) -> tuple[Column, ...]:
        """The columns of a terminal's table, in its order."""
        return tuple(sorted((each for each in self.columns if each.head), key=lambda column: column.first))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


SECTIONS: Mapping[str, Section] = {
    "spans": Section(
        "Spans",
        "with the spans within them; of their own threads only",
        columns=(
            Column(
                *("total_cpu_s", "s", "CPU", "cpu", "CPU time of their threads while they lasted"),
                head="CPU",
                main=True,
            ),
            Column("total_wait_s", "s", "waiting", "wait", head="wait"),
            Column(
                *("duration_s", "s", "lasted", "lasted", "Time in which one was open, added up over threads"),
                head="time",
                first=-1,
            ),
            Column("total_allocated_bytes", "bytes", "allocated", "allocated", head="alloc.", width=9),
            Column(
                *("total_live_at_end_bytes", "bytes", "kept", "kept"),
                hint="What was allocated in them and still held at the end",
                head="kept",
                width=9,
            ),
            Column("total_copied_bytes", "bytes", "copied", "copied", head="copied", width=9),
            Column(
                *("count", "count", "times", "times", "How many there are in all of the time"),
                head="count",
                first=-2,
                whole=True,
            ),
            Column("name", "text", "span"),
        ),
    ),
}
"""By the name of the profile's frame that each is of."""


def place_text(row: Row) -> str:
    """Where a row is: ``file.py:12``, or the function if it is on no line."""
    return str(row["function"]) if row["file"] is None else f"{row['file']}:{row['line']}"
