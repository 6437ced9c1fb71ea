"""What to do next, where a rule is sure: each rule says what was measured, and what to change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pandas as pd

from ...profile import Profile
from ..numbers import percent, seconds, size

SURE_SHARE = 0.10
"""The low end of a line's interval has to be at least this part of the CPU time."""

NEARLY_ALL = 0.90
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
_ARRAYS = re.compile(r"^\s*(import|from)\s+(numpy|pandas|torch)\b", re.MULTILINE)


def advise(profile: Profile) -> list[dict[str, Any]]:
    """Advice, the most valuable first: each with ``file``, ``line`` (or None), ``title`` and ``text``."""
    return [*_leaks(profile), *_copies(profile), *_loops(profile), *_collector(profile)]


def _leaks(profile: Profile) -> Iterator[dict[str, Any]]:
    leaks = getattr(profile, "leaks", None)
    if leaks is None:
        return
    for row in leaks.head(MAX_LEAKS).itertuples():
        if row.line is pd.NA:
            continue
        yield {
            "kind": "leak",
            "file": row.file,
            "line": int(row.line),
            "title": f"{row.function} keeps what it allocates",
            "text": f"Memory from this line grew by {size(round(row.rate_bytes_per_s))}/s"
            f" ({size(round(row.rate_low))} to {size(round(row.rate_high))}) and was not given back"
            f" (likelihood {row.likelihood * 100:.0f} %). Find what still refers to it: a cache without a limit, a list"
            " or dict that only grows, a callback that was never removed.",
        }


def _copies(profile: Profile) -> Iterator[dict[str, Any]]:
    lines, wall, whole = profile.lines, profile.totals.wall_s, getattr(profile.totals, "copied_bytes", None)
    if "copied_bytes_low" not in lines or not wall or not whole:
        return
    enough = lines["copied_bytes_low"] >= max(COPY_RATE * wall, COPY_SHARE * whole)
    found = 0
    for row in lines[enough & lines["line"].notna()].sort_values("copied_bytes", ascending=False).itertuples():
        conversion = _CONVERSION.search(row.source or "")
        if conversion is None or found == MAX_PER_RULE:
            continue
        found += 1
        yield {
            "kind": "copies",
            "file": row.file,
            "line": int(row.line),
            "title": f"{conversion.group().strip('.(')} copies {size(round(row.copied_bytes / wall))} every second",
            "text": f"This line copied {size(round(row.copied_bytes))} while recorded. Convert once, outside of the"
            " loop, or work on a view: copy=False, a slice, memoryview, np.frombuffer.",
        }


def _loops(profile: Profile) -> Iterator[dict[str, Any]]:
    """A loop in Python that indexes arrays element by element."""
    lines = profile.lines
    hot = (lines["cpu_share_low"] >= SURE_SHARE) & (lines["python_s"] >= NEARLY_ALL * lines["cpu_s"])
    found = 0
    for row in lines[hot & lines["line"].notna() & (lines["file_id"] >= 0)].itertuples():
        if found == MAX_PER_RULE:
            return
        count = profile.sources.count(int(row.file_id))
        if not 0 < count < MAX_SOURCE // 10:
            continue
        text = "\n".join(profile.sources.line(int(row.file_id), number) or "" for number in range(1, count + 1))
        if len(text) > MAX_SOURCE or not _ARRAYS.search(text) or int(row.line) not in _indexing_lines(text):
            continue
        found += 1
        yield {
            "kind": "loop",
            "file": row.file,
            "line": int(row.line),
            "title": f"{row.function} goes through an array element by element",
            "text": f"{percent(row.cpu_share)} % of the CPU time ({seconds(row.cpu_s)}) is Python's own work here, in a"
            " loop that indexes by its counter. One expression over the whole array does the same in native code.",
        }


@lru_cache(maxsize=8)
def _indexing_lines(text: str) -> frozenset[int]:
    """Lines in the body of a ``for`` over a range that use its variable as an index, in code that builds arrays."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    found: set[int] = set()
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and _counts(node)]
    for loop in loops:
        counters = {name.id for name in ast.walk(loop.target) if isinstance(name, ast.Name)}
        for node in ast.walk(loop):
            if isinstance(node, ast.Subscript) and counters & {
                name.id for name in ast.walk(node.slice) if isinstance(name, ast.Name)
            }:
                found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def _counts(loop: ast.For) -> bool:
    """Whether a loop counts up to the length of something that has a shape or a size."""
    call = loop.iter
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
        return False
    return any(isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in ast.walk(call))


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
