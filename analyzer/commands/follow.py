"""``analyze --follow``: shows a recording that is still being written, again and again until it is complete."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tachograph.format import FormatError

from ..profile.build import build_profile
from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.opened import Recording
from ..recording.question_options import Sort
from ..render.terminal.report import report_lines, show
from ..report_data.advice.table import Advice

EVERY_S = 1.0
"""Seconds between two looks, at least."""
LARGEST_SHARE = 0.25
"""The part of its time that looking may take at most: the program may be running on the same machine."""
PATIENCE = 5
"""Most attempts to read a recording that cannot be read, because it is being finished at this very moment."""


def follow(
    path: Path,
    question: Question,
    console: Console,
    sort: Sort,
    top: int | None,
    *,
    notes: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Shows the recording at ``path`` until it is complete, or until Ctrl-C; then its whole report.

    What is not a terminal gets that report only. The recording is never changed.

    Errors:
        FormatError: it cannot be read.
    """
    profile, unfinished, advice = None, True, Advice()
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        try:
            while unfinished:
                began = time.monotonic()
                profile, unfinished = look(path, question, sleep)
                took = time.monotonic() - began
                if unfinished and console.is_terminal:
                    live.update(_screen(profile, console, sort, top, advice), refresh=True)
                if unfinished:
                    sleep(max(EVERY_S, took / LARGEST_SHARE))
        except KeyboardInterrupt:
            pass  # the report so far is shown
    if profile is not None:
        show(profile, console, sort, top, advice, notes=notes)


def look(path: Path, question: Question, sleep: Callable[[float], None]) -> tuple[Profile, bool]:
    """The profile of the data so far, and True if the recording is still unfinished."""
    for remaining in reversed(range(PATIENCE)):
        try:
            with Recording.open(path) as recording:
                return build_profile(recording, question), recording.unfinished
        except FormatError:
            if not remaining or not path.exists():
                raise
            sleep(EVERY_S / 2)
    raise AssertionError("the last attempt returns or raises")


def _screen(profile: Profile, console: Console, sort: Sort, top: int | None, advice: Advice) -> Group:
    """As much of the report as the terminal has room for."""
    wall = profile.totals.wall_s
    state = Text(" recording", "bold reverse red")
    state.append("" if wall is None else f"  {wall:.0f} s so far", "not reverse").append(
        "; Ctrl-C ends this view, not the program", "not reverse dim"
    )
    room = max(1, console.height - 2)
    lines = list(report_lines(profile, console, sort, top, advice))
    return Group(state, *lines[:room])
