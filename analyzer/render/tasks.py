"""Time by root coroutine in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from rich.console import Console
from rich.text import Text

from ..profile import Profile
from ..text import shorten_left
from .header import header
from .numbers import margin, percent, seconds, short_seconds
from .style import COLOURS, Style

MAX_TASKS = 30


def show(profile: Profile, console: Console, top: int | None = None) -> None:
    """Prints the head of the report and the tasks."""
    style, width = Style.of(console), max(60, console.width)
    for line in lines(profile, style, width, top or MAX_TASKS):
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        style.print(console, line)


def lines(profile: Profile, style: Style, width: int, top: int) -> Iterator[Text]:
    """The lines of the head and of the tasks."""
    yield from header(profile, style, width)
    yield Text()
    frame = profile.tasks
    if frame.empty:
        yield Text(" No coroutine was seen here.")
        return
    title = Text().append(" Tasks ", "bold reverse" if style.colour else "bold")
    yield title.append(
        style.plain("  by the coroutine at the root of a task's step; blocked: off the CPU in a step"), "dim"
    )
    yield Text(f"{'CPU %':>7}{'':>6}{'CPU':>8}{'Python':>8}{'native':>8}{'kernel':>8}{'blocked':>9}  coroutine", "dim")
    placed = frame["kind"].isin(("task", "callback"))
    for _, row in frame[placed].head(top).iterrows():
        yield _line(row, style, width)
    if placed.sum() > top:
        yield Text(f"{'':>7}and {placed.sum() - top} more (--json has them all)", "dim")
    for _, row in frame[~placed].iterrows():
        yield _line(row, style, width)
    idle = frame["idle_s"].sum(min_count=1)
    if not pd.isna(idle):
        yield Text(
            f" event loops were idle for {seconds(float(idle))}: all of their tasks were awaiting something", "dim"
        )
    yield Text()


def _line(row: pd.Series, style: Style, width: int) -> Text:
    text = Text().append(f"{percent(row['cpu_share']):>7}", "bold")
    reach = margin(row["cpu_share_low"], row["cpu_share_high"]) if percent(row["cpu_share"]) else ""
    text.append(f"{style.plain(reach):>6}", "dim")
    for part in ("cpu", "python", "native", "kernel"):
        text.append(f"{short_seconds(row[f'{part}_s']):>8}", COLOURS.get(part, ""))
    blocked = row["blocked_s"]
    text.append(f"{'' if pd.isna(blocked) else short_seconds(blocked):>9}  ")
    text.append(str(row["function"]), "bold" if row["kind"] == "task" else "dim")
    if row["kind"] == "callback":
        text.append(" (callback)", "dim")
    if isinstance(row["file"], str):
        text.append("  ").append(
            shorten_left(f"{row['file']}:{row['line']}", max(10, width - text.cell_len - 3)), "dim"
        )
    return text
