"""What a recording says about itself and its program, and the totals of a question."""

from __future__ import annotations

import shlex

import numpy as np

from tachograph.format.arrays import ids, known

from ..recording.filter import Filter
from ..recording.frame import Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes
from ..recording.text import printable
from ..recording.time_ranges import united_ns
from ..recording.time_window import Window
from .processes import LISTED
from .profile import Metadata, Totals

MAX_LABELS = 1000
"""Labels that are shown."""


def read_metadata(recording: Recording) -> Metadata:
    """The recording, its program and its machine, in printable text."""
    manifest, processes = recording.manifest, recording.table("processes")
    argv = [printable(argument, 500) for argument in manifest.argv[:1000]]
    interval = recording.interval_ns
    return Metadata(
        path=printable(str(recording.path), 4096),
        uuid=printable(manifest.uuid),
        program=printable(shlex.join(manifest.argv[:100]), 1000) if manifest.argv else "",
        argv=argv,
        created_utc=_text(manifest.created_utc),
        host=_text(manifest.host),
        os=_text(manifest.os),
        machine=_text(manifest.machine),
        cpu_count=manifest.cpu_count,
        python_versions=_distinct(processes.column("python_version").to_pylist()),
        samplers=_distinct(processes.column("sampler").to_pylist()),
        interval_s=None if interval is None else interval / 1e9,
        format_version=printable(manifest.format_version),
        tachograph_version=_text(manifest.tachograph_version),
        rotated=_rotated(recording),
        labels={printable(key, 80): printable(value, 300) for key, value in list(manifest.labels.items())[:MAX_LABELS]},
    )


def _rotated(recording: Recording) -> str | None:
    """Which window of how many it is, as far as it can tell."""
    window = recording.manifest.window
    if window is None:
        return None
    place = window["number"] - window["first"] + 1
    if recording.rotated_on:
        return f"window {place:,} of a recording that went on"
    if recording.unfinished:
        return f"window {place:,}, not closed yet"
    return f"window {place:,}, the last" if place > 1 else None


def totals_of(
    recording: Recording,
    window: Window,
    wanted: Filter,
    threads: Frame,
    processes: Frame,
    effective: float,
    gc_s: float | None,
    wall_s: float | None,
    *,
    waits_known: bool,
) -> Totals:
    """Sums over the threads of a question; None is unknown."""
    whole = window.whole and wanted.named is None
    how = processes["recorded"]
    return Totals(
        wall_s=wall_s,
        cpu_s=float(threads["cpu_s"].sum()),
        python_s=_sum(threads, "python_s"),
        native_s=_sum(threads, "native_s"),
        kernel_s=_sum(threads, "kernel_s"),
        unknown_s=float(threads["unknown_s"].sum()),
        wait_s=_sum(threads, "wait_s") if waits_known else None,
        main_wait_s=_sum(threads, "main_wait_s") if waits_known else None,
        gpu_wait_s=_sum(threads, "gpu_wait_s") if waits_known else None,
        gc_s=gc_s,
        cpu_wait_s=_sum(threads, "cpu_wait_s") if waits_known else None,
        main_cpu_wait_s=_sum(threads.take(threads["main"]), "cpu_wait_s") if waits_known else None,
        unsampled_s=_unsampled(_clocks(recording, wanted), threads) if whole else None,
        clock_cpu_s=_clock(_clocks(recording, wanted)) if whole else None,
        samples=int(threads["samples"].sum()),
        effective_samples=effective,
        threads=len(threads),
        processes=int((how != LISTED).sum()),
        native_processes=int((how == "native").sum()),
        listed_processes=int((how == LISTED).sum()),
        process_s=_lived(processes.take(how != LISTED), window, recording.start_ns),
    )


def wall_seconds(recording: Recording, window: Window, lifetimes: ProcessLifetimes, wanted: Filter) -> float | None:
    """The length of the window, as far as the recording reaches; None if its end is not known.

    Of a window with spans, the time in which one of them lasted; of some processes, in which one of them lived.
    """
    start, end = max(recording.start_ns, window.start_ns), recording.end_ns
    if window.spans is not None:
        return window.spans.wall_ns() / 1e9
    if end is None:
        return None
    end = min(end, window.end_ns)
    if wanted.processes is None:
        return max(0, end - start) / 1e9
    numbers = np.flatnonzero(wanted.processes)
    return united_ns(np.maximum(lifetimes.start_ns[numbers], start), np.minimum(lifetimes.end_ns[numbers], end)) / 1e9


def _lived(processes: Frame, window: Window, zero_ns: int) -> float:
    """The sum of the times for which processes lived in the window, as far as is known."""
    start, end = (window.start_ns - zero_ns) / 1e9, (window.end_ns - zero_ns) / 1e9
    length = np.minimum(processes["last_s"], end) - np.maximum(processes["start_s"], start)
    return float(np.maximum(length, 0.0).sum())


def _sum(threads: Frame, column: str) -> float | None:
    """The sum of what is known; None if there was CPU time, and nothing is known of any of it."""
    known, busy = ~np.isnan(threads[column]), threads["cpu_s"] > 0
    if busy.any() and not (busy & known).any() and "wait" not in column:
        return None
    return float(np.sum(threads[column][known]))


def _clocks(recording: Recording, wanted: Filter) -> WholeNumbers:
    """CPU time by the clocks of the threads of a question; unknown where it was not read."""
    column = recording.table("threads").column("cpu_ns")
    clocks = WholeNumbers(ids(column, 0), ~known(column))
    return clocks if wanted.threads is None else clocks[wanted.threads]


def _clock(clocks: WholeNumbers) -> float | None:
    return int(clocks.values.sum()) / 1e9 if len(clocks) and not clocks.unknown.any() else None


def _unsampled(clocks: WholeNumbers, threads: Frame) -> float | None:
    """CPU time that no sample stands for: of threads shorter than the interval, and at the end of each thread."""
    if clocks.unknown.all():
        return None
    sampled = float(threads["cpu_s"][~np.isnan(threads["clock_cpu_s"])].sum())
    unsampled: float = int(clocks.values.sum()) / 1e9 - sampled
    return max(0.0, unsampled)


def _text(value: str | None) -> str | None:
    return None if value is None else printable(value)


def _distinct(values: list[str | None]) -> list[str]:
    return [printable(value) for value in dict.fromkeys(values) if value]
