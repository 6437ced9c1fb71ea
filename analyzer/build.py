"""Answers a question about a recording: reduce, attribute, choose the scope, sum up."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from .about import describe, totals_of, wall_seconds
from .attribution import attribute
from .calltree import load_tree
from .intervals import effective_samples
from .leaks import LeakDefinition, definition_named
from .measures import prepared
from .memory import Held, read_held
from .native import FrameClass
from .nodes import calls, joined, time_sums
from .profile import Profile, Question
from .quality import Quality, read_quality
from .recording import Recording
from .reduction import Facts, reduce_recording
from .scope import ALL, PROJECT, Scope
from .sources import Sources
from .span_sums import sum_spans
from .spans import narrowed, read_spans
from .summary import Summary, main_threads
from .text import printable
from .window import make_window

WIDEN_BELOW = 0.5
"""Without --scope, all is in scope if less than this part of the CPU time has a frame of the project."""


def build_profile(recording: Recording, question: Question, leak_definition: LeakDefinition | None = None) -> Profile:
    """Answers ``question``. ``leak_definition`` stands in for the one that ``question.leaks`` names.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    window = make_window(question.start_s, question.end_s, recording.start_ns, recording.end_ns)
    spans = read_spans(recording)
    window = narrowed(window, recording, spans, question.span)
    threads = recording.table("threads")
    facts = select_threads(reduce_recording(recording, window), threads, question.thread)
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
    chosen = thread_mask(threads, question.thread)
    held = read_held(recording, window, chosen, wall_seconds(recording, window))
    sums = joined([times, *held.sums])
    sources = Sources(recording.table("files"))
    summary = Summary(tree, rows, sums, effective, waits_known=waits_known)
    in_scope = summary.in_scope(scope)
    leaks = held.leaks(recording, tree, in_scope, summary.placed_lines(in_scope), sources, definition)
    more = held.columns(sums.names, tree, in_scope, leaks)
    summary = Summary(tree, rows, sums, effective, waits_known=waits_known, more=more)
    by_thread = summary.threads(threads, held.threads(threads.num_rows))
    totals = totals_of(recording, window, question, by_thread, effective, collecting(cpu), waits_known=waits_known)
    quality = with_remarks(read_quality(recording), facts, totals.unknown_s, totals.cpu_s, recording, held)
    return Profile(
        question=question,
        scope=scope.text,
        widened=widened,
        about=describe(recording),
        totals=replace(totals, **held.totals()),
        quality=quality,
        lines=summary.lines(in_scope, sources),
        functions=summary.functions(in_scope),
        files=summary.files(in_scope),
        threads=by_thread,
        sources=sources,
        calls=calls(tree, in_scope, sums, waits_known=waits_known),
        memory=held.memory(recording),
        leaks=None if leaks is None else leaks.listed,
        spans=sum_spans(recording, spans, window, chosen, held),
    )


def thread_mask(threads: pa.Table, wanted: str | None) -> NDArray[np.bool_] | None:
    """By thread, whether ``wanted`` means it; None if it means all.

    Errors:
        FormatError: there is no such thread.
    """
    chosen = thread_numbers(threads, wanted)
    if chosen is None:
        return None
    mask = np.zeros(threads.num_rows, np.bool_)
    mask[list(chosen)] = True
    return mask


def select_threads(facts: Facts, threads: pa.Table, wanted: str | None) -> Facts:
    """The facts of the threads that ``wanted`` means.

    Errors:
        FormatError: there is no such thread.
    """
    chosen = thread_numbers(threads, wanted)
    if chosen is None:
        return facts
    waits = facts.waits
    return Facts(
        facts.cpu[facts.cpu["thread"].isin(chosen)].reset_index(drop=True),
        waits[waits["thread"].isin(chosen)].reset_index(drop=True) if waits is not None else None,
    )


def thread_numbers(threads: pa.Table, wanted: str | None) -> list[int] | None:
    """Ids of the threads that ``wanted`` (a name, a glob, an operating system's id, ``main``) means; None: all.

    Errors:
        FormatError: there is no such thread.
    """
    if wanted is None:
        return None
    names = [name or "" for name in threads.column("name").to_pylist()]
    mains, tids = threads.column("main").to_pylist(), threads.column("tid").to_pylist()
    chosen = [
        number
        for number, name in enumerate(names)
        if str(tids[number]) == wanted or fnmatchcase(name, wanted) or (wanted == "main" and mains[number])
    ]
    if not chosen:
        known = ", ".join(dict.fromkeys(printable(name, 40) for name in names[:20] if name))
        raise FormatError(f"no thread is named {printable(wanted, 80)!r} or has that id; there are: {known or 'none'}")
    return chosen


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
    folders = {str(PurePosixPath(path.replace("\\", "/")).parent) for path in executables if path}
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
