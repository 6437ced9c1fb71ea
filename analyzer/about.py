"""What a recording says about itself and its program, and the totals of a question."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd

from .profile import About, Question, Totals
from .recording import Recording
from .text import printable
from .window import Window


def describe(recording: Recording) -> About:
    """The recording, its program and its machine, in printable text."""
    manifest, processes = recording.manifest, recording.table("processes")
    argv = [printable(argument, 500) for argument in manifest.argv[:1000]]
    interval = recording.interval_ns
    return About(
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
    )


def totals_of(
    recording: Recording,
    window: Window,
    question: Question,
    threads: pd.DataFrame,
    effective: float,
    gc_s: float | None,
    *,
    waits_known: bool,
) -> Totals:
    """Sums over the threads of a question; None is unknown."""
    whole = window.whole and question.thread is None
    return Totals(
        wall_s=wall_seconds(recording, window),
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
        main_cpu_wait_s=_sum(threads[threads["main"]], "cpu_wait_s") if waits_known else None,
        unsampled_s=_unsampled(recording, threads) if whole else None,
        clock_cpu_s=_clock(recording) if whole else None,
        samples=int(threads["samples"].sum()),
        effective_samples=effective,
        threads=len(threads),
        processes=recording.rows("processes"),
    )


def wall_seconds(recording: Recording, window: Window) -> float | None:
    """The length of the window, as far as the recording reaches; None if its end is not known.

    Of a window with spans, the time in which at least one of them lasted.
    """
    start, end = recording.start_ns, recording.end_ns
    if window.spans is not None:
        return window.spans.wall_ns() / 1e9
    return None if end is None else max(0, min(end, window.end_ns) - max(start, window.start_ns)) / 1e9


def _sum(threads: pd.DataFrame, column: str) -> float | None:
    """The sum of what is known; None if there was CPU time, and nothing is known of any of it."""
    known = threads[column].dropna()
    if (
        len(known[threads.loc[known.index, "cpu_s"] > 0]) == 0
        and bool((threads["cpu_s"] > 0).any())
        and "wait" not in column
    ):
        return None
    return float(np.sum(known))


def _clock(recording: Recording) -> float | None:
    clocks = recording.table("threads").column("cpu_ns")
    return None if clocks.null_count or not len(clocks) else sum(clocks.to_pylist()) / 1e9


def _unsampled(recording: Recording, threads: pd.DataFrame) -> float | None:
    """CPU time that no sample stands for: of threads shorter than the interval, and at the end of each thread."""
    clocks = [clock for clock in recording.table("threads").column("cpu_ns").to_pylist() if clock is not None]
    if not clocks:
        return None
    sampled = float(threads.loc[threads["clock_cpu_s"].notna(), "cpu_s"].sum())
    unsampled: float = sum(clocks) / 1e9 - sampled
    return max(0.0, unsampled)


def _text(value: str | None) -> str | None:
    return None if value is None else printable(value)


def _distinct(values: list[str | None]) -> list[str]:
    return [printable(value) for value in dict.fromkeys(values) if value]
