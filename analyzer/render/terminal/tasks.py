"""Time by root coroutine, and by the names of its tasks, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.text import Text

from ...profile.profile import Profile
from ...profile.tasks import by_coroutine
from ...recording.frame import Frame, Row
from ...recording.text import shorten_left
from ...report_data.numbers import margin, percent, seconds, short_seconds
from .header import header
from .style import COLOURS, Style

MAX_TASKS = 30
MAX_NAMES = 10
"""Names of tasks that are shown for each coroutine."""


def show(profile: Profile, console: Console, top: int | None = None) -> None:
    """Prints the head of the report and the tasks."""
    style, width = Style.of(console), max(60, console.width)
    for line in lines(profile, style, width, top):
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        style.print(console, line)


def lines(profile: Profile, style: Style, width: int, top: int | None) -> Iterator[Text]:
    """The lines of the head and of the tasks; ``top`` limits coroutines, and the names of each."""
    yield from header(profile, style, width)
    yield Text()
    tasks = profile.frames.tasks
    if not len(tasks):
        yield Text(" No coroutine was seen here.")
        return
    frame = by_coroutine(tasks, profile.totals.effective_samples)
    has_names = any(name is not None for name in tasks["task"])
    title = Text().append(" Tasks ", "bold reverse" if style.colour else "bold")
    names = " and the task's name" if has_names else ""
    what = f"  by the coroutine at the root of a task's step{names}; blocked: off the CPU in a step"
    yield title.append(style.plain(what), "dim")
    yield Text(f"{'CPU %':>7}{'':>6}{'CPU':>8}{'Python':>8}{'native':>8}{'kernel':>8}{'blocked':>9}  coroutine", "dim")
    placed = np.isin(frame["kind"].astype(str), ("task", "callback"))
    for row in frame.take(placed).take(slice(top or MAX_TASKS)).rows():
        yield _line(row, style, width)
        if row["kind"] == "task":
            yield from _names(_of(tasks, row), style, top or MAX_NAMES)
    if placed.sum() > (top or MAX_TASKS):
        yield _more(int(placed.sum()) - (top or MAX_TASKS))
    for row in frame.take(~placed).rows():
        yield _line(row, style, width)
    idle = frame["idle_s"][~np.isnan(frame["idle_s"])]
    if len(idle):
        yield Text(
            f" event loops were idle for {seconds(float(idle.sum()))}: all of their tasks were awaiting something",
            "dim",
        )
    yield Text()


def _of(tasks: Frame, coroutine: Row) -> list[Row]:
    """The rows of a coroutine's tasks."""
    keys = ("kind", "function", "file", "line")
    return [row for row in tasks.rows() if all(row[name] == coroutine[name] for name in keys)]


def _names(tasks: list[Row], style: Style, top: int) -> Iterator[Text]:
    """The tasks of a coroutine that have names, and what is left; nothing if none has."""
    named = [row for row in tasks if row["task"] is not None]
    if not named:
        return
    for row in named[:top]:
        yield _measures(row, style).append(f"  {row['task']}")
    if len(named) > top:
        yield _more(len(named) - top, _measures(named[0], style).cell_len + 2)
    for row in tasks:
        if row["task"] is None:
            yield _measures(row, style).append("  (no name)", "dim")


def _more(count: int, indent: int = 7) -> Text:
    return Text(f"{'':>{indent}}and {count} more (--json has them all)", "dim")


def _measures(row: Row, style: Style) -> Text:
    text = Text().append(f"{percent(row['cpu_share']):>7}", "bold")
    reach = margin(row["cpu_share_low"], row["cpu_share_high"]) if percent(row["cpu_share"]) else ""
    text.append(f"{style.plain(reach):>6}", "dim")
    for part in ("cpu", "python", "native", "kernel"):
        text.append(f"{short_seconds(row[f'{part}_s']):>8}", COLOURS.get(part, ""))
    blocked = row["blocked_s"]
    return text.append(f"{'' if np.isnan(blocked) else short_seconds(blocked):>9}  ")


def _line(row: Row, style: Style, width: int) -> Text:
    text = _measures(row, style)
    text.append(str(row["function"]), "bold" if row["kind"] == "task" else "dim")
    if row["kind"] == "callback":
        text.append(" (callback)", "dim")
    if row["file"] is not None:
        text.append("  ").append(
            shorten_left(f"{row['file']}:{row['line']}", max(10, width - text.cell_len - 3)), "dim"
        )
    return text
