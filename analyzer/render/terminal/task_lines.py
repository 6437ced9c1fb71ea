"""Tasks in the terminal: time by root coroutine and by name, and the tree of those that await one another."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ...profile.awaiters import Awaiting
from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.text import shorten_left
from ...report_data.numbers import seconds
from ...report_data.section_rows import Coroutine, awaited_text, task_table
from ...report_data.sections import SECTIONS, Section, more_text, task_section
from .header import header
from .section_lines import section_cells, section_heads, section_title
from .style import NARROW, Style

WIDE = 110
"""From this width on a task's row says what awaits it."""

MAX_NAMES = 10
"""Names of tasks that are shown for each coroutine."""

MIN_SOURCE = 12
"""Characters of a source line that are worth showing."""


def show(profile: Profile, console: Console, top: int | None = None) -> None:
    """Prints the head of the report and the tasks."""
    style = Style.of(console)
    style.print_lines(console, lines(profile, style, max(60, console.width), top))


def lines(profile: Profile, style: Style, width: int, top: int | None) -> Iterator[Text]:
    """The lines of the head and of the tasks; ``top`` limits coroutines, and the names of each."""
    yield from header(profile, style, width)
    yield Text()
    table, section = task_table(profile), task_section(profile)
    if table is None:
        yield Text(" No coroutine was seen here.")
        return
    yield from section_title(section, style, width, table.subtitle)
    yield Text(f"{section_heads(section)}  coroutine", "dim")
    most = top or section.most
    for each in table.coroutines[:most]:
        yield _line(each.row, section, style, width)
        yield from _names(each, section, style, top or MAX_NAMES)
    if len(table.coroutines) > most:
        yield Text(f"{'':>7}{more_text(len(table.coroutines) - most)}", "dim")
    for row in table.others:
        yield _line(row, section, style, width)
    if table.idle_s is not None:
        yield Text(
            f" event loops were idle for {seconds(table.idle_s)}: all of their tasks were awaiting something", "dim"
        )
    yield Text()


def show_tree(profile: Profile, console: Console, top: int | None = None) -> None:
    """Prints the head of the report, and the tasks below those that await them."""
    style = Style.of(console)
    style.print_lines(console, tree_lines(profile, style, max(60, console.width), top))


def tree_lines(profile: Profile, style: Style, width: int, top: int | None) -> Iterator[Text]:
    """The lines of the head and of the tree; ``top`` limits its rows."""
    yield from header(profile, style, width)
    yield Text()
    section = SECTIONS["awaiting"]
    if not profile.awaiting:
        yield Text(" No suspended task was seen here.")
        return
    yield from section_title(section, style, width)
    yield Text(f"{section_heads(section)}  coroutine", "dim")
    most, written, count = top or section.most, 0, sum(1 for root in profile.awaiting for _ in root.walk())
    for stem, branch in NARROW.rows(profile.awaiting, lambda each: each.children):
        if written == most:
            break
        written += 1
        row = {name: getattr(branch, name) for name in ("await_s", "tasks_mean", "tasks_peak")}
        text = section_cells(row, section, style, {}).append("  ").append(style.plain(stem), "dim")
        yield _awaiting(text.append(branch.function, "bold"), branch, style, width)
    if count > written:
        yield Text(f"{'':>7}and {count - written:,} more (--top shows more, --json all)", "dim")
    yield Text()


def _awaiting(text: Text, branch: Awaiting, style: Style, width: int) -> Text:
    """Behind a task the place where it stands and, as far as there is room, what it awaits there."""
    if branch.file is not None:
        place = f"{branch.file.rpartition('/')[2]}:{branch.line}" if branch.line else branch.file
        text.append("  ").append(shorten_left(place, max(10, width - text.cell_len - 3)), "dim")
    awaited = awaited_text(branch)
    if awaited:
        text.append("  awaits ", "dim").append(awaited)
    if branch.source and width - text.cell_len > MIN_SOURCE:
        text.append("  ").append(branch.source, "dim")
    return text


def _names(coroutine: Coroutine, section: Section, style: Style, top: int) -> Iterator[Text]:
    """The tasks of a coroutine that have names, and what is left; nothing if none has."""
    for row in coroutine.named[:top]:
        yield _measures(row, section, style).append(f"  {row['task']}")
    if len(coroutine.named) > top:
        indent = _measures(coroutine.named[0], section, style).cell_len + 2
        yield Text(f"{'':>{indent}}{more_text(len(coroutine.named) - top)}", "dim")
    for row in coroutine.unnamed:
        yield _measures(row, section, style).append("  (no name)", "dim")


def _measures(row: Row, section: Section, style: Style) -> Text:
    return section_cells(row, section, style, {"blocked_s": "", "await_s": ""}).append("  ")


def _line(row: Row, section: Section, style: Style, width: int) -> Text:
    text = _measures(row, section, style)
    text.append(str(row["function"]), "bold" if row["kind"] == "task" else "dim")
    if row["kind"] == "callback":
        text.append(" (callback)", "dim")
    if row["awaited_by"] is not None and width >= WIDE:
        text.append(f"  awaited by {row['awaited_by']}", "dim")
    if row["file"] is not None:
        text.append("  ").append(
            shorten_left(f"{row['file']}:{row['line']}", max(10, width - text.cell_len - 3)), "dim"
        )
    return text
