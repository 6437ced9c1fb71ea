"""Answers a question about a recording: reduce, attribute, choose the scope, sum up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pandas as pd

from tachograph.format import FormatError

from ..conclusions.gpu import GpuColumns, describe_gpu, gpu_totals, join_gpu, read_readings
from ..conclusions.leaks import LeakDefinition, definition_named
from ..recording.call_tree import load_tree
from ..recording.filter import Chosen, Mask, choose
from ..recording.named_spans import Spans, narrowed, read_spans
from ..recording.opened import Recording
from ..recording.process_lifetimes import read_lives
from ..recording.quality import Quality, read_quality
from ..recording.sources import Sources
from ..recording.text import printable
from ..recording.time_window import Window, make_window
from ..samples.attribution import attribute
from ..samples.intervals import effective_samples
from ..samples.measures import prepared
from ..samples.native_frames import FrameClass
from ..samples.nodes import calls, joined, time_sums
from ..samples.reduction import Facts, reduce_recording
from ..samples.scope import ALL, PROJECT, Scope
from ..samples.summary import Summary, main_threads
from .held_memory import Held, read_held
from .metadata import describe, totals_of, wall_seconds
from .processes import LISTED, frame_of, recorded_how
from .profile import Profile, Question
from .span_sums import sum_spans
from .tasks import sum_tasks

SHARED_GPU = (
    "other processes used the GPU as well, or nothing tells whose use it was: where the driver does not tell that of"
    " each process, it is that of all"
)

WIDEN_BELOW = 0.5
"""Without --scope, all is in scope if less than this part of the CPU time has a frame of the project."""


def asked_window(recording: Recording, question: Question, chosen: Chosen, spans: Spans) -> Window:
    """The part of a recording that a question is about.

    Errors:
        FormatError: there is nothing in it.
    """
    window = make_window(question.start_s, question.end_s, recording.start_ns, recording.end_ns)
    return narrowed(window, recording, _of_processes(spans, recording, chosen), question.span)


def build_profile(recording: Recording, question: Question, leak_definition: LeakDefinition | None = None) -> Profile:
    """Answers ``question``. ``leak_definition`` stands in for the one that ``question.leaks`` names.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    chosen = choose(recording, question.thread, question.processes)
    spans = read_spans(recording)
    window = asked_window(recording, question, chosen, spans)
    lives = read_lives(recording)
    wall_s = wall_seconds(recording, window, lives, chosen)
    threads = recording.table("threads")
    facts = select_threads(reduce_recording(recording, window), chosen.threads)
    cpu = attribute(facts.cpu, question.attribution)
    rows = prepared(cpu, facts.waits, main_threads(threads))
    tree = load_tree(recording)
    effective = effective_samples(float(cpu["cpu_ns"].sum()), float(cpu["weight_squared"].sum()))
    waits_known = facts.waits is not None
    times = time_sums(rows, len(tree))
    scope, widened = choose_scope(
        question.scope, recording, Summary(tree, rows, times, effective, waits_known=waits_known)
    )
    definition = leak_definition or definition_named(question.leaks)
    held = read_held(recording, window, chosen, wall_s)
    readings = read_readings(recording)
    gpu = None if readings is None else join_gpu(recording, readings, window, gpu_threads(recording, chosen))
    sums = joined([times, *held.sums, *([] if gpu is None else [gpu.sums])])
    sources = Sources(recording.table("files"))
    summary = Summary(tree, rows, sums, effective, waits_known=waits_known)
    in_scope = summary.in_scope(scope)
    leaks = held.leaks(recording, tree, in_scope, summary.placed_lines(in_scope), sources, definition)
    more = (*held.columns(sums.names, tree, in_scope, leaks), GpuColumns(sums.names, gpu))
    summary = Summary(tree, rows, sums, effective, waits_known=waits_known, more=more)
    by_thread = summary.threads(threads, held.threads(threads.num_rows), chosen.processes)
    memory = held.memory(recording)
    processes = frame_of(recording, window, lives, chosen.processes, by_thread, memory)
    totals = totals_of(
        recording, window, chosen, by_thread, processes, effective, collecting(cpu), wall_s, waits_known=waits_known
    )
    totals = replace(totals, **held.totals())
    devices = None if readings is None else describe_gpu(recording, readings, window)
    if readings is not None and devices is not None and gpu is not None:
        totals = replace(totals, **gpu_totals(devices, gpu, readings, window))
    ledger = read_quality(recording, chosen.processes)
    quality = with_remarks(ledger, facts, totals.unknown_s, totals.cpu_s, recording, held)
    if devices is not None and devices.shared:
        quality = replace(quality, notes=[*quality.notes, SHARED_GPU])
    return Profile(
        question=question,
        scope=scope.text,
        widened=widened,
        about=describe(recording),
        totals=totals,
        quality=quality,
        lines=summary.lines(in_scope, sources),
        functions=summary.functions(in_scope),
        files=summary.files(in_scope),
        threads=by_thread,
        processes=processes,
        tasks=sum_tasks(recording, tree, sums, effective, waits_known=waits_known),
        sources=sources,
        calls=calls(tree, in_scope, sums, waits_known=waits_known),
        memory=memory,
        leaks=None if leaks is None else leaks.listed,
        spans=sum_spans(recording, spans, window, held),
        gpu=devices,
    )


def gpu_threads(recording: Recording, chosen: Chosen) -> Mask:
    """Whose stacks the GPU is joined with: the main threads of the processes in question, or the threads asked for."""
    mains = main_threads(recording.table("threads"))
    if chosen.threads is None:
        return mains
    return chosen.threads if chosen.named is not None else chosen.threads & mains


def _of_processes(spans: Spans, recording: Recording, chosen: Chosen) -> Spans:
    """The spans of the processes that were asked for."""
    if chosen.processes is None:
        return spans
    owner = recording.table("threads").column("process").to_numpy().astype(np.int64)
    return spans.only(chosen.processes[owner[spans.thread]])


def select_threads(facts: Facts, wanted: Mask | None) -> Facts:
    """The facts of the wanted threads."""
    if wanted is None:
        return facts
    waits = facts.waits
    return Facts(
        facts.cpu[wanted[facts.cpu["thread"]]].reset_index(drop=True),
        waits[wanted[waits["thread"]]].reset_index(drop=True) if waits is not None else None,
    )


def choose_scope(text: str | None, recording: Recording, summary: Summary) -> tuple[Scope, bool]:
    """The scope to apply, and whether it is ``all`` because the project has too little of the time."""
    if text is not None:
        scope = named_scope(text, recording)
        if text not in (PROJECT, ALL) and not any(map(scope.includes, summary.tree.paths)):
            raise FormatError(
                f"no recorded file matches --scope {printable(text, 80)!r} (a glob of paths or folder names)"
            )
        return scope, False
    project = named_scope(PROJECT, recording)
    total, inside = summary.charged_cpu(summary.in_scope(project))
    if total > 0 and inside < WIDEN_BELOW * total:
        return Scope(ALL), True
    return project, False


def named_scope(text: str, recording: Recording) -> Scope:
    """The scope ``text`` for the interpreters of a recording."""
    executables = recording.table("processes").column("executable").to_pylist()
    folders = {
        str(PurePosixPath(path.replace("\\", "/")).parent)
        for path, how in zip(executables, recorded_how(recording), strict=True)
        if path and how != LISTED
    }
    return Scope(text, tuple(sorted(folders)))


def collecting(cpu: pd.DataFrame) -> float | None:
    """Seconds in the garbage collector among attributed facts; None if no program counter is known."""
    if len(cpu) and not (cpu["frame_class"] != FrameClass.UNKNOWN).any():
        return None
    return float(cpu.loc[cpu["frame_class"] == FrameClass.COLLECTOR, "python_ns"].sum()) / 1e9


def nameless(recording: Recording) -> bool:
    """Whether there are native frames, and none has a symbol: then the evaluation loop cannot be recognised."""
    symbols = recording.table("native_frames").column("symbol")
    return len(symbols) > 0 and symbols.null_count == len(symbols)


def with_remarks(
    quality: Quality, facts: Facts, unknown_s: float, cpu_s: float, recording: Recording, held: Held
) -> Quality:
    """The quality with remarks on what the analysis found."""
    notes = list(quality.notes)
    if facts.waits is None:
        notes.append("waiting was not recorded")
    if held.heap is None and held.copy_sums is None:
        notes.append("memory and copies were not recorded")
    if unknown_s > 0.01 * cpu_s:
        share = unknown_s / cpu_s
        notes.append(f"{share:.0%} of the CPU time cannot be divided into Python and native (no program counter)")
    if nameless(recording):
        notes.append("native functions have no names here: all time in calls of C functions counts as native")
    if recording.unfinished:
        notes.append(
            "the recording was never finished: this is what its spool holds ('tachograph recover' finishes it)"
        )
    return replace(quality, notes=notes)
