"""Why parents wait for their child processes, a sentence for each line."""

from __future__ import annotations

from pathlib import PurePosixPath

from ..conclusions.parent_waits import ParentWait
from ..profile.profile import Profile
from ..recording.text import printable
from .headline import number_and_noun
from .numbers import percent, seconds

MOST_SENTENCES = 3
MAX_SOURCE = 60


def waiting_sentences(profile: Profile) -> list[str]:
    """What children did while main threads waited, where that is clear, the longest waits first."""
    clear = [row for row in profile.parent_waits or [] if row.share is not None and row.line is not None]
    several = len({row.process for row in clear}) > 1
    return [_sentence(row, several=several) for row in clear[:MOST_SENTENCES]]


def _sentence(row: ParentWait, *, several: bool) -> str:
    of = f" of {printable(row.name, 60)} ({row.pid})" if several else ""
    source = (row.source or "").strip()
    if len(source) > MAX_SOURCE:
        source = source[: MAX_SOURCE - 1] + "…"
    text = f" ({printable(source, MAX_SOURCE)})" if source else ""
    number, noun = number_and_noun(row.children or 0, "child process", "child processes")
    one = row.children == 1
    part = f"{percent(row.share or 0.0) or '0'} %"
    if row.share_low is not None and row.share_high is not None:
        part += f" ({percent(row.share_low) or '0'} to {percent(row.share_high) or '0'})"
    part += " of that time"
    if row.child_function is None:
        does = f"{'is' if one else 'are'} busy for {part}"
    else:
        does = f"spend{'s' if one else ''} {part} in {printable(row.child_function, 80)}"
        if row.child_file is not None:
            does += f" ({printable(PurePosixPath(row.child_file).name, 60)}:{row.child_line})"
    at = f"{printable(PurePosixPath(row.file or '').name, 80)}:{row.line}"
    return f"main{of} waits {seconds(row.wait_s)} at {at}{text}, while {number} {noun} {does}"
