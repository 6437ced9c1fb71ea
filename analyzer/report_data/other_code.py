"""What is in the row of code that no line in scope called: its functions with the most time, or bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..profile.profile import Profile
from ..recording.question_options import Sort
from ..recording.text import printable
from ..recording.tree import NOTHING
from ..samples.summary import UNKNOWN_CODE

SHOWN = 5
"""Functions that are named at most."""

_TIMES, _BYTES = "cpu_s", "live_at_peak_bytes"


@dataclass(frozen=True, slots=True)
class OtherFunction:
    """A function out of scope; ``amount`` is in seconds or bytes, as ``by_size`` says, of its own lines."""

    name: str
    file: str | None
    line: int | None
    amount: float
    wait_s: float
    by_size: bool


def other_functions(profile: Profile, sort: Sort = Sort.CPU) -> list[OtherFunction]:
    """The functions behind ``<other code>``, the most first by what the report is sorted by; then by waiting."""
    calls, tree = profile.calls, profile.calls.tree
    outside = calls.charged == NOTHING
    if not outside.any():
        return []
    column = sort.column if sort.column in calls.nodes else _BYTES if sort.by_size else _TIMES
    function = np.where(tree.function == NOTHING, len(tree.function_names), tree.function)[outside]
    amounts, waits = (
        np.bincount(function, np.nan_to_num(np.asarray(calls.nodes[name], np.float64)[outside]))
        for name in (column, "wait_s")
    )
    found = []
    for number in np.lexsort((-waits, -amounts)).tolist()[:SHOWN]:
        if amounts[number] <= 0 and (waits[number] <= 0 or sort.by_size):
            continue
        known = number < len(tree.function_names)
        file = int(tree.function_files[number]) if known else NOTHING
        found.append(
            OtherFunction(
                printable(tree.function_names[number]) if known else UNKNOWN_CODE,
                printable(tree.paths[file], 4096) if file != NOTHING else None,
                int(tree.function_lines[number]) if known else None,
                float(amounts[number]),
                float(waits[number]),
                sort.by_size,
            )
        )
    return found
