"""Chooses what a report shows: the lines that matter, and their neighbours (Scalene 2023, section 5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..profile.profile import Profile
from ..recording.question_options import Sort

MIN_SHARE = 0.01
"""Lines with at least this part of the time are shown, with the line before and the line after."""

MIN_MEMORY = 0.05
"""Beside columns of time, lines that held or copied at least this part of all are shown: memory is not the question."""

MIN_BYTES = 1_000_000
"""Lines that never held or copied so much are not shown for their memory."""

MAX_LINES = 300
"""A report never shows more lines, neighbours included."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a file: ``index`` is its row in ``Profile.lines``, None for a neighbour that used no time."""

    number: int | None
    index: int | None
    context: bool


@dataclass(slots=True)
class Block:
    """The shown lines of one file, in its order; ``gaps`` holds the rows before which lines are left out."""

    file: str | None
    file_id: int
    rows: list[Row] = field(default_factory=list)
    gaps: set[int] = field(default_factory=set)


def important(
    profile: Profile, sort: Sort = Sort.CPU, top: int | None = None, *, beside: Collection[str] = ()
) -> NDArray[np.int64]:
    """The rows of ``Profile.lines`` that matter, best first: at least 1 % of what it is sorted by, or the best ``top``.

    By default a line also matters if main threads wait there for 1 % of their time; waiting of other threads,
    which is mostly idleness, counts only if waiting is what the report is sorted by. ``beside`` names columns of memory
    that are shown as well (``peak_bytes``, ``copied_bytes``): lines with at least 5 % of all matter too, unless that is
    next to nothing. A line that matters by what is not shown would be an empty row.
    """
    lines = profile.frames.lines
    measure = np.nan_to_num(lines[sort.column])
    whole = measure.sum() if sort in (Sort.WAIT, Sort.GPU) or sort.by_size else lines["cpu_s"].sum()
    if sort is Sort.WAIT:
        # Waiting of idle threads may be a thousand times that of the requests of a server.
        whole = min(whole, profile.totals.busy_s)
    if sort is Sort.PEAK:
        whole = profile.totals.live_at_peak_bytes or whole
    chosen = (measure > 0) if top is not None else (measure >= MIN_SHARE * whole) & (measure > 0)
    order = [sort.column, "cpu_s", "wait_s"]
    if sort is Sort.CPU and profile.totals.wall_s:
        waited = np.nan_to_num(lines["main_wait_s"])
        chosen |= (waited > 0) if top is not None else waited >= MIN_SHARE * profile.totals.main_s
        order = [sort.column, "main_wait_s", "wait_s"]
    if top is None:
        for held, wholly in (("peak_bytes", "live_at_peak_bytes"), ("copied_bytes", "copied_bytes")):
            least = max(MIN_MEMORY * (getattr(profile.totals, wholly) or 0.0), MIN_BYTES)
            if held in beside:
                chosen |= np.nan_to_num(lines[held]) >= least
    best = lines.largest_first(*dict.fromkeys(order))
    return best[np.flatnonzero(chosen[best])[: top if top is not None else MAX_LINES]]


def blocks(
    profile: Profile, sort: Sort = Sort.CPU, top: int | None = None, *, beside: Collection[str] = ()
) -> list[Block]:
    """The files with lines that matter, best first, with the neighbours of those lines; rows without a line last."""
    lines = profile.frames.lines
    files, numbered = lines["file_id"].tolist(), lines["line"].tolist()
    places = enumerate(zip(files, numbered, strict=True))
    by_place = {(file, line): index for index, (file, line) in places if line is not None}
    shown: dict[int, dict[int, bool]] = {}
    off_line: list[int] = []
    count = 0
    for index in important(profile, sort, top, beside=beside).tolist():
        if count >= MAX_LINES:
            break
        file, line = files[index], numbered[index]
        count += 1
        if line is None:
            off_line.append(index)
            continue
        numbers = shown.setdefault(file, {})
        count -= line in numbers
        numbers[line] = False
        for neighbour in (line - 1, line + 1):
            known = (file, neighbour) in by_place or bool((profile.sources.line(file, neighbour) or "").strip())
            if known and neighbour not in numbers and count < MAX_LINES:
                numbers[neighbour] = True
                count += 1
    result = [_block(profile, file, numbers, by_place) for file, numbers in shown.items()]
    by_file = profile.frames.files
    totals = dict(zip(by_file["file_id"].tolist(), by_file[sort.column].tolist(), strict=True))
    result.sort(key=lambda block: -(totals.get(block.file_id) or 0.0))
    if off_line:
        result.append(Block(None, -1, [Row(None, index, context=False) for index in off_line]))
    return result


def _block(profile: Profile, file: int, numbers: dict[int, bool], by_place: dict[tuple[int, int], int]) -> Block:
    ordered = sorted(numbers)
    rows = [Row(number, by_place.get((file, number)), numbers[number]) for number in ordered]
    gaps = {place for place in range(1, len(ordered)) if ordered[place] != ordered[place - 1] + 1}
    path = next(profile.frames.lines["file"][row.index] for row in rows if row.index is not None)
    return Block(path, file, rows, gaps)
