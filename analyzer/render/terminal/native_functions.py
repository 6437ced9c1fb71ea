"""The terminal's table of native functions: what the time outside of Python code was spent in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from rich.text import Text

from ...profile.profile import Profile
from ...recording.native_names import short_library, short_name
from ...recording.text import shorten_left
from ...report_data.numbers import percent, short_seconds
from .line_columns import Columns
from .style import Style

MAX_FUNCTIONS = 10

MIN_SHARE = 0.005
"""Functions with less of the CPU time of their own are left out."""

GUESSED = 0.05
"""A part of a function's time with guessed native paths that is worth a remark."""


def native_lines(
    profile: Profile, style: Style, width: int, title: Callable[[str, str], Text], columns: Columns
) -> Iterator[Text]:
    """The table; nothing if native code took no time.

    Functions are chosen by the time that does not count as Python's (the interpreter's own functions run for Python
    code), and sorted by the time that is shown.
    """
    frame = profile.frames.native_functions
    own = np.maximum(frame["cpu_s"] - np.nan_to_num(frame["python_s"]), 0.0)
    order = np.argsort(-own, kind="stable")
    chosen = order[own[order] >= MIN_SHARE * profile.totals.cpu_s][:MAX_FUNCTIONS]
    frame = frame.take(chosen[np.argsort(-frame["cpu_s"][chosen], kind="stable")])
    if not len(frame) or profile.totals.cpu_s <= 0:
        return
    yield title("Native functions", "in part of the time above" if profile.paths.recorded else "callers not recorded")
    yield Text(f"{'self %':>8}{'total %':>9}{'':>6}{'wait':>8}  function", "dim")
    for row in frame.rows():
        known = profile.paths.recorded
        text = Text().append(f"{percent(row['cpu_share']):>8}", "bold")
        text.append(f"{percent(row['total_cpu_share']) if known else '?':>9}")
        text.append(f"{columns.margin(row, 'total_') if known else '':>6}", "dim")
        text.append(f"{short_seconds(row['total_wait_s']) if known else '':>8}  ")
        library = short_library(profile.paths.functions.paths[row["native"]])
        guessed = row["guessed_s"] / row["total_cpu_s"] if known and row["total_cpu_s"] > 0 else 0.0
        remark = f"  ({guessed:.0%} guessed)" if guessed >= GUESSED else ""
        name = short_name(str(row["function"]))
        name = f"[{library}]" if name.startswith("[") else name
        room = max(16, width - text.cell_len - min(len(library), 30) - len(remark) - 3)
        text.append(style.plain(name if len(name) <= room else name[: room - 1] + "…"))
        if not name.startswith("["):
            text.append("  ").append(shorten_left(library, max(8, width - text.cell_len - len(remark) - 1)), "dim")
        yield text.append(remark, "dim")
    yield Text()
