"""Answers a question about a recording: reduce, attribute, choose the scope, sum up."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

import pandas as pd
import pyarrow as pa

from tachograph.format import FormatError

from .about import describe, totals_of
from .attribution import attribute
from .calltree import load_tree
from .intervals import effective_samples
from .measures import prepared
from .native import FrameClass
from .profile import Profile, Question
from .quality import Quality, read_quality
from .recording import Recording
from .reduction import Facts, reduce_recording
from .scope import ALL, PROJECT, Scope
from .sources import Sources
from .summary import Summary, main_threads
from .text import printable
from .window import make_window

WIDEN_BELOW = 0.5
"""Without --scope, all is in scope if less than this part of the CPU time has a frame of the project."""


def build_profile(recording: Recording, question: Question) -> Profile:
    """Answers ``question``.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    window = make_window(question.start_s, question.end_s, recording.start_ns, recording.end_ns)
    facts = select_threads(reduce_recording(recording, window), recording.table("threads"), question.thread)
    cpu = attribute(facts.cpu, question.attribution)
    threads = recording.table("threads")
    rows = prepared(cpu, facts.waits, main_threads(threads))
    tree = load_tree(recording)
    effective = effective_samples(float(cpu["cpu_ns"].sum()), float(cpu["weight_squared"].sum()))
    summary = Summary(tree, rows, effective, waits_known=facts.waits is not None)
    scope, widened = choose_scope(question.scope, recording, summary)
    sources = Sources(recording.table("files"))
    by_thread = summary.threads(threads)
    totals = totals_of(
        recording, window, question, by_thread, effective, collecting(cpu), waits_known=facts.waits is not None
    )
    in_scope = summary.in_scope(scope)
    quality = with_remarks(read_quality(recording), facts, totals.unknown_s, totals.cpu_s, recording)
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
        sources=sources,
    )


def select_threads(facts: Facts, threads: pa.Table, wanted: str | None) -> Facts:
    """The facts of the threads that ``wanted`` means.

    Errors:
        FormatError: there is no such thread.
    """
    if wanted is None:
        return facts
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
    waits = facts.waits
    return Facts(
        facts.cpu[facts.cpu["thread"].isin(chosen)].reset_index(drop=True),
        waits[waits["thread"].isin(chosen)].reset_index(drop=True) if waits is not None else None,
    )


def choose_scope(text: str | None, recording: Recording, summary: Summary) -> tuple[Scope, bool]:
    """The scope to apply, and whether it is ``all`` because the project has too little of the time."""
    executables = recording.table("processes").column("executable").to_pylist()
    folders = {str(PurePosixPath(path.replace("\\", "/")).parent) for path in executables if path}
    if text is not None:
        scope = Scope(text, tuple(sorted(folders)))
        if text not in (PROJECT, ALL) and not any(map(scope.includes, summary.tree.paths)):
            raise FormatError(
                f"no recorded file matches --scope {printable(text, 80)!r} (a glob of paths or folder names)"
            )
        return scope, False
    project = Scope(PROJECT, tuple(sorted(folders)))
    total, inside = summary.charged_cpu(summary.in_scope(project))
    if total > 0 and inside < WIDEN_BELOW * total:
        return Scope(ALL), True
    return project, False


def collecting(cpu: pd.DataFrame) -> float | None:
    """Seconds in the garbage collector among attributed facts; None if no program counter is known."""
    if len(cpu) and not (cpu["frame_class"] != FrameClass.UNKNOWN).any():
        return None
    return float(cpu.loc[cpu["frame_class"] == FrameClass.COLLECTOR, "python_ns"].sum()) / 1e9


def nameless(recording: Recording) -> bool:
    """Whether there are native frames, and none has a symbol: then the evaluation loop cannot be recognised."""
    symbols = recording.table("native_frames").column("symbol")
    return len(symbols) > 0 and symbols.null_count == len(symbols)


def with_remarks(quality: Quality, facts: Facts, unknown_s: float, cpu_s: float, recording: Recording) -> Quality:
    """The quality with remarks on what the analysis found."""
    notes = list(quality.notes)
    if facts.waits is None:
        notes.append("waiting was not recorded")
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
