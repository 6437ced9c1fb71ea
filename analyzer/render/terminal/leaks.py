"""The leaks in the terminal report."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.text import shorten_left
from ...report_data.numbers import size
from .style import Style

MAX_LEAKS = 10
MAX_FRAMES = 4
"""Frames of a call path that are shown, the innermost."""


def leak_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about leaks; nothing if there are none."""
    leaks = profile.frames.leaks
    if leaks is None or not len(leaks):
        return
    text = Text().append(" Leaks ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  memory that these lines keep allocating and nothing gives back"), "dim")
    for leak in leaks.take(slice(MAX_LEAKS)).rows():
        yield _leak(leak, style, width)
        if leak["source"] is not None:
            yield Text(f"{'':>4}{leak['source'].strip()}")
        if leak["native"] is not None:
            yield Text(f"{'':>4}allocated by {leak['native']}", "dim")
        callers = leak["path"][-MAX_FRAMES - 1 : -1]
        if callers:
            yield Text(f"{'':>4}called from " + style.plain(" > ").join(callers), "dim")
    if len(leaks) > MAX_LEAKS:
        yield Text(f"{'':>4}and {len(leaks) - MAX_LEAKS} more (--json has them all)", "dim")
    yield Text()


def _leak(leak: Row, style: Style, width: int) -> Text:
    rate = f"{size(round(leak['rate_bytes_per_s']))}/s"
    low, high = size(round(leak["rate_low"])), size(round(leak["rate_high"]))
    text = Text(" ").append(style.plain("• ") if style.unicode else "* ", "red").append(rate, "bold red")
    text.append(
        f" ({low} to {high}), {leak['likelihood'] * 100:.0f} % likely, {size(round(leak['leaked_bytes']))} so far  "
    )
    where = str(leak["function"]) if leak["file"] is None else f"{leak['file']}:{leak['line']}"
    return text.append(shorten_left(where, max(20, width - text.cell_len - 1)), "bold")
