"""What to do next, where a rule is sure: each rule says what was measured, and what to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...profile.profile import Profile
from ...recording.frame import Frame
from ...samples.intervals import wilson
from ..numbers import percent, seconds, size
from .shapes import CUT, GATHERED, GROWN, Loop, Shapes, shapes

SURE_SHARE = 0.10
"""The low end of a line's interval has to be at least this part of the CPU time."""

PYTHON_PART = 0.40
"""Where the interpreter has so much of a loop's time, what native code does each time round is tiny."""

COPY_RATE = 100e6
"""Bytes per second of the run that a line has to copy, at the low end of its interval."""

COPY_SHARE = 0.10
GC_SHARE = 0.10
MAX_SOURCE = 300_000
MAX_LEAKS = 5
MAX_PER_RULE = 3

_CONVERSION = re.compile(
    r"\.(astype|tolist|tobytes|copy|decode|encode|to_numpy|to_pandas|flatten)\("
    r"|\b(np|numpy)\.(array|concatenate|append|vstack|hstack|stack)\(|\b(bytes|bytearray)\("
)


def advise(profile: Profile) -> list[dict[str, Any]]:
    """Advice, the most valuable first: each with ``file``, ``line`` (or None), ``title`` and ``text``."""
    return [*_leaks(profile), *_copies(profile), *_loops(profile), *_collector(profile)]


def _leaks(profile: Profile) -> Iterator[dict[str, Any]]:
    leaks = profile.frames.leaks
    if leaks is None:
        return
    for row in leaks.take(slice(MAX_LEAKS)).rows():
        if row["line"] is None:
            continue
        yield {
            "kind": "leak",
            "file": row["file"],
            "line": row["line"],
            "title": f"{row['function']} keeps what it allocates",
            "text": f"Memory from this line grew by {size(round(row['rate_bytes_per_s']))}/s"
            f" ({size(round(row['rate_low']))} to {size(round(row['rate_high']))}) and was not given back"
            f" (likelihood {row['likelihood'] * 100:.0f} %). Find what still refers to it: a cache without a limit, a"
            " list or dict that only grows, a callback that was never removed.",
        }


_COPYING = {
    GROWN: (
        "“{name}” is copied whole each time something is added",
        "Append the pieces to a list and join them once at the end; += on a bytearray adds in place.",
    ),
    CUT: (
        "The rest of “{name}” is copied each time a piece is cut off",
        "Leave it whole and keep a position in it, or cut a memoryview.",
    ),
    GATHERED: (
        "“{name}” is copied whole each time something is joined to it",
        "Append the parts to a list and join them once after the loop.",
    ),
}


def _copies(profile: Profile) -> Iterator[dict[str, Any]]:
    lines, wall, whole = profile.frames.lines, profile.totals.wall_s, profile.totals.copied_bytes
    if not wall or not whole:
        return
    enough = lines["copied_bytes_low"] >= max(COPY_RATE * wall, COPY_SHARE * whole)
    found = 0
    placed = lines.take(enough & ~lines["line"].unknown)
    for row in placed.take(placed.largest_first("copied_bytes")).rows():
        name, shape = _shapes(profile, row["file_id"]).copying.get(row["line"], ("", ""))
        conversion = _CONVERSION.search(row["source"] or "")
        if (conversion is None and not shape) or found == MAX_PER_RULE:
            continue
        found += 1
        if shape:
            title, what = (text.format(name=name) for text in _COPYING[shape])
        else:
            called = conversion.group().strip(".(") if conversion else ""
            title = f"{called} copies {size(round(row['copied_bytes'] / wall))} every second"
            what = (
                "Convert once, outside of the loop, or work on a view: copy=False, a slice, memoryview, np.frombuffer."
            )
        yield {
            "kind": "copies",
            "file": row["file"],
            "line": row["line"],
            "title": title,
            "text": f"This line copied {size(round(row['copied_bytes']))} while recorded"
            f" ({size(round(row['copied_bytes'] / wall))}/s). {what}",
        }


def _loops(profile: Profile) -> Iterator[dict[str, Any]]:
    """A loop in Python that indexes arrays element by element, with all the time of its lines."""
    lines, totals = profile.frames.lines, profile.totals
    loops: dict[tuple[int, int], tuple[Loop, Frame]] = {}
    timed = lines.take((lines["cpu_s"] > 0) & ~lines["line"].unknown & (lines["file_id"] >= 0))
    for file in np.unique(timed["file_id"]).tolist():
        rows = timed.take(timed["file_id"] == file)
        if rows["cpu_s"].sum() >= SURE_SHARE * totals.cpu_s:
            for loop in _shapes(profile, file).loops:
                number = rows["line"].values
                loops[file, loop.first] = loop, rows.take((number >= loop.first) & (number <= loop.last))
    found = 0
    for loop, rows in sorted(loops.values(), key=lambda each: -float(each[1]["cpu_s"].sum())):
        share = float(rows["cpu_s"].sum()) / totals.cpu_s
        low = wilson(np.array([share]), totals.effective_samples)[0][0]
        elements = np.isin(rows["line"].values, list(loop.elements))
        tiny = np.nansum(rows["python_s"]) >= PYTHON_PART * rows["cpu_s"].sum() and elements.any()
        if found == MAX_PER_RULE or not low >= SURE_SHARE or not (loop.certain or tiny):
            continue
        found += 1
        how = (
            "Each needs one before it, so compile the loop (Numba, Cython), or look for a library's filter."
            if loop.recurrent
            else "An expression over the whole array does the same in native code."
        )
        # The line of the loop that has most of the time is the one to look at.
        row = rows.row(int(np.argmax(rows["cpu_s"])))
        yield {
            "kind": "loop",
            "file": row["file"],
            "line": row["line"],
            "title": f"{row['function']} goes through an array element by element",
            "text": f"{percent(share)} % of the CPU time ({seconds(share * totals.cpu_s)}) is spent in the loop of"
            f" lines {loop.first} to {loop.last}, one element at a time. {how}",
        }


def _shapes(profile: Profile, file: int) -> Shapes:
    """The shapes of a file's text; none if it is not in the recording, or very long."""
    count = profile.sources.count(file)
    if not 0 < count < MAX_SOURCE // 10 or profile.sources.characters(file) > MAX_SOURCE:
        return shapes("")
    return shapes(profile.sources.text(file))


def _collector(profile: Profile) -> Iterator[dict[str, Any]]:
    totals = profile.totals
    if totals.gc_s and totals.gc_s >= GC_SHARE * totals.cpu_s and totals.samples >= 100:
        yield {
            "kind": "gc",
            "file": None,
            "line": None,
            "title": f"The garbage collector took {percent(totals.gc_s / totals.cpu_s)} % of the CPU time",
            "text": f"That is {seconds(totals.gc_s)} of looking through containers. After loading data that stays,"
            " gc.freeze() keeps it out of the search; a higher gc.set_threshold() makes searches rarer.",
        }
