"""Time and memory by the names of spans: in the span itself, and with the spans within it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.interpreter_phases import find_edges
from ..recording.named_spans import Spans, own_and_total
from ..recording.opened import Recording
from ..recording.prefetch import prefetched
from ..recording.text import printable
from ..recording.time_ranges import Stretches
from ..recording.time_window import Window
from ..samples.reduction import CpuReducer, waits_recorded, whole_ticks
from ..samples.weights import weighted_batches
from .held_memory import Held

NO_SPAN = "<no span>"
"""The row of what was in no span."""
COLUMNS = (
    "name",
    "count",
    "duration_s",
    "longest_s",
    "cpu_s",
    "wait_s",
    "allocated_bytes",
    "live_at_end_bytes",
    "copied_bytes",
    "total_cpu_s",
    "total_wait_s",
    "total_allocated_bytes",
    "total_live_at_end_bytes",
    "total_copied_bytes",
)
_FACTORS = {"cpu_s": 1e-9, "wait_s": 1e-9}

_Floats = NDArray[np.float64]
_Pair = tuple[_Floats, _Floats]
Sums = tuple[_Floats, _Floats, float]
"""By name, of the span itself and with the spans within it; and of everything that was asked for."""


def sum_spans(recording: Recording, spans: Spans, window: Window, held: Held) -> pd.DataFrame:
    """One row per name, and one for what was in none; the most CPU time, with the spans within, first.

    ``count`` says how many, ``duration_s`` how long they lasted, as far as they lie in the window. The other
    columns are about the threads of the spans while they lasted, as they were sampled; NaN where not recorded. Empty
    where there are no spans.
    """
    threads = held.chosen.threads
    own, total = own_and_total(spans, window, threads)
    if not len(total):
        return pd.DataFrame(columns=list(COLUMNS))
    groups = len(spans.names)
    sums = measured(recording, window, held, (own, total), groups)
    length = (total.end_ns - total.start_ns) / 1e9
    mine = spans if threads is None else spans.only(threads[spans.thread])
    seen = Stretches(mine.thread, mine.start_ns, mine.end_ns, mine.name).cut(window.start_ns, window.end_ns)
    if window.spans is not None:
        inside = window.spans.part(seen.thread, seen.start_ns, seen.end_ns) > 0
        seen = seen.only(inside)
    longest = np.zeros(groups)
    np.maximum.at(longest, seen.group, (seen.end_ns - seen.start_ns) / 1e9)
    columns: dict[str, object] = {
        "name": [printable(name, 500) for name in spans.names] + [NO_SPAN],
        "count": pd.array([*np.bincount(seen.group, minlength=groups).tolist(), None], "Int64"),
        "duration_s": np.append(np.bincount(total.group, length, groups), np.nan),
        "longest_s": np.append(longest, np.nan),
    }
    for name, (by_own, by_total, everything) in sums.items():
        factor = _FACTORS.get(name, 1.0)
        rest = max(everything - float(np.sum(by_own)), 0.0) if not np.isnan(everything) else np.nan
        columns[name] = np.append(by_own, rest) * factor
        columns[f"total_{name}"] = np.append(by_total, rest) * factor
    frame = pd.DataFrame(columns)[list(COLUMNS)]
    named, rest_row = frame[:-1], frame[-1:]
    named = named[(named["count"] > 0).to_numpy(np.bool_)]
    order = named.sort_values(["total_cpu_s", "total_wait_s", "duration_s"], ascending=False, kind="stable")
    return pd.concat([order, rest_row], ignore_index=True)


def measured(
    recording: Recording, window: Window, held: Held, stretches: tuple[Stretches, Stretches], groups: int
) -> dict[str, Sums]:
    """Nanoseconds of CPU time and waiting, and bytes, by group of stretches: of the spans themselves, and in all."""
    threads = held.chosen.threads
    return {
        "cpu_s": _cpu(recording, window, threads, stretches, groups),
        "wait_s": _waits(recording, window, threads, stretches, groups),
        **_memory(held, window, stretches, groups),
    }


def _both(stretches: tuple[Stretches, Stretches], sum_up: Callable[[Stretches], _Floats]) -> _Pair:
    return sum_up(stretches[0]), sum_up(stretches[1])


def _cpu(
    recording: Recording,
    window: Window,
    threads: NDArray[np.bool_] | None,
    stretches: tuple[Stretches, Stretches],
    groups: int,
) -> Sums:
    """CPU nanoseconds by name."""
    reducer = CpuReducer(recording, find_edges(recording))
    sums, everything = np.zeros((2, groups)), 0.0
    names = ["time_ns", "thread", "stack", "native_frame", "cpu_ns", "system_ns", "opcode", "origin", "stack_state"]
    batches = prefetched(weighted_batches(recording, names))
    for batch in whole_ticks(batches) if reducer.has_signals else batches:
        time_ns, thread = (batch.column(name).to_numpy() for name in ("time_ns", "thread"))
        inside = window.selects(thread, time_ns)
        _, _, (weight, *_) = reducer.decode(batch, window)
        time_ns, thread = time_ns[inside], thread[inside]
        if threads is not None:
            mine = threads[thread]
            time_ns, thread, weight = time_ns[mine], thread[mine], weight[mine]
        everything += float(weight.sum())
        for row, each in enumerate(stretches):
            sums[row] += each.sum_moments(thread, time_ns, weight, groups)
    return sums[0], sums[1], everything


def _waits(
    recording: Recording,
    window: Window,
    threads: NDArray[np.bool_] | None,
    stretches: tuple[Stretches, Stretches],
    groups: int,
) -> Sums:
    """Waited nanoseconds by name, without waiting for a processor."""
    if not waits_recorded(recording):
        unknown = np.full(groups, np.nan)
        return unknown, unknown, np.nan
    on_cpu = [value.name for value in recording.specification.enums["target"]].index("cpu")
    parts = []
    for batch in recording.batches("waits", ("start_ns", "end_ns", "off_cpu_ns", "thread", "target")):
        columns = [batch.column(name).to_numpy() for name in ("start_ns", "end_ns", "off_cpu_ns", "thread")]
        mine = batch.column("target").to_numpy() != on_cpu
        if threads is not None:
            mine &= threads[columns[3]]
        parts.append([column[mine] for column in columns])
    nothing = [np.zeros(0, np.int64)] * 4
    start_ns, end_ns, off_ns, thread = (np.concatenate(arrays) for arrays in zip(nothing, *parts, strict=True))
    weight = off_ns.astype(np.float64)
    own, total = _both(stretches, lambda each: each.sum_spans(thread, start_ns, end_ns, weight, groups))
    return own, total, float((weight * window.part(thread, start_ns, end_ns)).sum())


def _memory(held: Held, window: Window, stretches: tuple[Stretches, Stretches], groups: int) -> dict[str, Sums]:
    """Bytes by name: allocated, allocated and still held at the end, copied."""
    unknown = (np.full(groups, np.nan), np.full(groups, np.nan), np.nan)
    found: dict[str, Sums] = dict.fromkeys(("allocated_bytes", "live_at_end_bytes", "copied_bytes"), unknown)
    heap, copies = held.heap, held.copies
    if heap is not None:
        blocks, mine = heap.blocks, heap.of_threads(held.chosen.named) & heap.allocated_in_window()
        alive = mine & heap.alive_at_end()
        for name, mask in (("allocated_bytes", mine), ("live_at_end_bytes", alive)):
            found[name] = _moments(stretches, blocks.thread[mask], blocks.birth_ns[mask], blocks.bytes[mask], groups)
    if copies is not None:
        threads = held.chosen.threads
        mask = copies.sampled if threads is None else copies.sampled & threads[copies.thread]
        found["copied_bytes"] = _moments(
            stretches, copies.thread[mask], copies.time_ns[mask], copies.bytes[mask], groups
        )
    return found


def _moments(
    stretches: tuple[Stretches, Stretches],
    thread: NDArray[np.integer],
    time_ns: NDArray[np.int64],
    weight: _Floats,
    groups: int,
) -> Sums:
    own, total = _both(stretches, lambda each: each.sum_moments(thread, time_ns, weight, groups))
    return own, total, float(weight.sum())
