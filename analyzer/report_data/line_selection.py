"""Selection of what reports show: lines that matter with their neighbours (Scalene 2023, section 5), and columns.

The row of code that no line in scope called is explained by its functions with the most time, or bytes. Columns of a
profile's frames are listed by frame, in the order of the documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..conclusions import awaits, calls, copies, gpu, pools, redundancy
from ..conclusions.leaks import leak_report as leaks
from ..conclusions.memory import fork_copies
from ..conclusions.memory import memory_columns as memory
from ..profile import processes, span_sums, tasks
from ..profile.held_memory import THREAD_COLUMNS
from ..profile.profile import Profile
from ..profile.span_sums import COLUMN as WAIT_FOR
from ..recording.call_tree import NOTHING
from ..recording.frame import Frame
from ..recording.question_options import Sort
from ..recording.text import printable
from ..samples.reduction import SECONDS
from ..samples.summary import ALL, UNKNOWN_CODE

MIN_SHARE = 0.01
"""Lines with at least this part of the time are shown, with the line before and the line after."""

MIN_MEMORY = 0.05
"""Beside columns of time, lines that held or copied at least this part of all are shown: memory is not the question."""

MIN_BYTES = 1_000_000
"""Lines that never held or copied so much are not shown for their memory."""

OTHERS_WAIT = 0.10
"""Lines where other threads than the main ones wait for this part of the time are shown, too: the longest waits."""

MOST_OTHERS = 5
"""Lines that are shown for that: a server may have many idle threads."""

MIN_AWAITED = 0.02
"""Lines with at least this part of the time that tasks await are shown."""

WAITS_MOST = 0.5
"""Lines are ordered by wall time if the main thread or the event loop waits for this part of the time."""

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


def wall_of(frame: Frame) -> NDArray[np.float64]:
    """Seconds that rows ran, waited and awaited, over all threads and tasks."""
    names = (name for name in ("cpu_s", "wait_s", "await_s") if name in frame)
    result = np.zeros(len(frame))
    for name in names:
        result += np.nan_to_num(np.asarray(frame[name], np.float64))
    return result


def mostly_waits(profile: Profile) -> bool:
    """True if the main thread waits for most of the time at lines of the program, or an event loop for its tasks.

    A main thread that waits for events is idle, as a server's is: that does not count. Tasks that await while their
    loop is busy wait for the loop: that does not count either. Of all code, machinery waits most.
    """
    lines, whole = profile.frames.lines, profile.totals.main_s
    if profile.scope == ALL or not whole or profile.totals.wait_s is None or profile.totals.cpu_s >= WAITS_MOST * whole:
        return False
    waited = awaited = events = 0.0
    for row in lines.rows():
        reasons = dict(row[WAIT_FOR] or ())
        part = reasons.get("events", 0.0) / sum(reasons.values()) if sum(reasons.values()) > 0 else 0.0
        main = float(np.nan_to_num(row["main_wait_s"]))
        events += main * part
        if row["line"] is not None:
            waited += main * (1.0 - part)
            awaited += min(float(np.nan_to_num(row.get("await_s") or 0.0)), whole)
    tasks = profile.frames.tasks
    idle = float(np.nansum(np.asarray(tasks["idle_s"], np.float64))) if len(tasks) else 0.0
    return waited + min(awaited, max(idle, events)) >= WAITS_MOST * whole


def important(
    profile: Profile,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    *,
    beside: Collection[str] = (),
    by_wall: bool = False,
) -> NDArray[np.int64]:
    """The rows of ``Profile.lines`` that matter, best first: at least 1 % of what it is sorted by, or the best ``top``.

    By default a line also matters if main threads wait there for 1 % of their time. Waiting of other threads is
    mostly idleness: of lines where they wait for a tenth of the time, the first few matter. So do lines where
    suspended tasks stand for long. ``beside`` names columns of memory that are shown as well (``peak_bytes``,
    ``copied_bytes``): lines with at least 5 % of all matter too, unless that is next to nothing. A line that
    matters by what is not shown would be an empty row. ``by_wall``: the same lines, in the
    order of the time that they ran, waited and awaited.
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
            chosen |= _waiting_elsewhere(profile, ~chosen)
            if profile.totals.await_s:
                chosen |= np.nan_to_num(lines["await_s"]) >= MIN_AWAITED * profile.totals.await_s
    if top is None:
        for held, wholly in (("peak_bytes", "live_at_peak_bytes"), ("copied_bytes", "copied_bytes")):
            least = max(MIN_MEMORY * (getattr(profile.totals, wholly) or 0.0), MIN_BYTES)
            if held in beside:
                chosen |= np.nan_to_num(lines[held]) >= least
    if by_wall:
        best = np.argsort(-wall_of(lines), kind="stable").astype(np.int64)
    else:
        best = lines.largest_first(*dict.fromkeys(order))
    return best[np.flatnonzero(chosen[best])[: top if top is not None else MAX_LINES]]


def _waiting_elsewhere(profile: Profile, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The lines of files where threads wait longest, of those ``among`` which they wait for long."""
    lines = profile.frames.lines
    placed = np.array([line is not None for line in lines["line"].tolist()], np.bool_)
    waited = np.where(among & placed, np.nan_to_num(lines["wait_s"]), 0.0)
    longest = np.argsort(-waited, kind="stable")[:MOST_OTHERS]
    chosen = np.zeros(len(waited), np.bool_)
    chosen[longest] = waited[longest] >= OTHERS_WAIT * profile.totals.main_s
    return chosen & (waited > 0)


def blocks(
    profile: Profile,
    sort: Sort = Sort.CPU,
    top: int | None = None,
    *,
    beside: Collection[str] = (),
    by_wall: bool = False,
) -> list[Block]:
    """The files with lines that matter, best first, with the neighbours of those lines; rows without a line last."""
    lines = profile.frames.lines
    files, numbered = lines["file_id"].tolist(), lines["line"].tolist()
    places = enumerate(zip(files, numbered, strict=True))
    by_place = {(file, line): index for index, (file, line) in places if line is not None}
    shown: dict[int, dict[int, bool]] = {}
    off_line: list[int] = []
    count = 0
    for index in important(profile, sort, top, beside=beside, by_wall=by_wall).tolist():
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
            has_content = (file, neighbour) in by_place or bool((profile.sources.line(file, neighbour) or "").strip())
            if has_content and neighbour not in numbers and count < MAX_LINES:
                numbers[neighbour] = True
                count += 1
    result = [_block(profile, file, numbers, by_place) for file, numbers in shown.items()]
    by_file = profile.frames.files
    amounts = wall_of(by_file) if by_wall else by_file[sort.column]
    totals = dict(zip(by_file["file_id"].tolist(), amounts.tolist(), strict=True))
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
    others = []
    for number in np.lexsort((-waits, -amounts)).tolist()[:SHOWN]:
        if amounts[number] <= 0 and (waits[number] <= 0 or sort.by_size):
            continue
        has_name = number < len(tree.function_names)
        file = int(tree.function_files[number]) if has_name else NOTHING
        others.append(
            OtherFunction(
                printable(tree.function_names[number]) if has_name else UNKNOWN_CODE,
                printable(tree.paths[file], 4096) if file != NOTHING else None,
                int(tree.function_lines[number]) if has_name else None,
                float(amounts[number]),
                float(waits[number]),
                sort.by_size,
            )
        )
    return others


_SELF = ("samples", *SECONDS)
_SHARES = ("cpu_share", "cpu_share_low", "cpu_share_high")
_TOTAL = tuple(f"total_{name}" for name in (*_SELF, *_SHARES))
_OTHERS = (
    *(span_sums.COLUMN, *memory.COLUMNS, *copies.COLUMNS, *fork_copies.COLUMNS, *leaks.COLUMNS, *gpu.COLUMNS),
    *(span_sums.COLLECTOR_COLUMN, *pools.COLUMNS, *awaits.COLUMNS, "timeline"),
)

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "lines": ("file", "line", "function", *_SELF, *_SHARES, *_TOTAL, *_OTHERS, "source"),
    "functions": (
        *("function", "file", "line", "language", "library"),
        *(*_SELF, *_SHARES, *_TOTAL, "guessed_s", *calls.COLUMNS, *_OTHERS),
    ),
    "files": ("file", *_SELF, *_SHARES, *_TOTAL, *_OTHERS),
    "threads": ("name", "tid", "process", "main", *_SELF, *_SHARES, "clock_cpu_s", *THREAD_COLUMNS),
    "tasks": tuple(tasks.COLUMNS),
    "processes": tuple(processes.COLUMNS),
    "where": ("bytes", "share", "part", "note"),
    "referrers": ("held", "blocks", "place", "object", "kept_by"),
    "awaiting": ("function", "file", "await_s", "tasks_mean", "tasks_peak", "awaited"),
    "leaks": tuple(name for name in leaks.LIST_COLUMNS if name != "file_id"),
    "spans": tuple(span_sums.COLUMNS),
    "redundancies": redundancy.COLUMNS,
}
