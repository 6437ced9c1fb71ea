"""Answers a question about a recording in three steps: ``ask`` resolves it, ``measure`` adds up, ``conclude``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from tachograph.format import FormatError
from tachograph.format.arrays import ids

from ..conclusions.awaits import AwaitColumns, Awaits, read_awaits
from ..conclusions.calls import CallFacts, read_call_facts, with_calls
from ..conclusions.gpu import Gpu, GpuColumns, GpuJoin, GpuSums, Readings, describe_gpu, gpu_totals, read_readings
from ..conclusions.hooks_time import hooks_time
from ..conclusions.leaks import LeakDefinition, definition_named
from ..conclusions.parent_waits import ParentWaits, read_parent_waits
from ..conclusions.pools import PoolColumns, PoolSums
from ..conclusions.redundancy import was_watched
from ..recording.call_tree import NOTHING, CallTree, load_tree
from ..recording.filter import Filter, Mask, make_filter
from ..recording.frame import Frame
from ..recording.opened import Recording
from ..recording.process_lifetimes import ProcessLifetimes, read_process_lifetimes
from ..recording.quality import Quality, read_quality
from ..recording.recorded_spans import Spans, matching_spans, narrowed, own_and_total, read_spans, take_turns
from ..recording.sources import Sources
from ..recording.span_tracks import Tracks, follows, make_tracks
from ..recording.tables import MANY_ROWS, release_unused
from ..recording.text import printable
from ..recording.time_window import TimeRanges, Window, make_window
from ..samples.call_paths import PathFacts, PathSums
from ..samples.reduction import Facts, Reduction, prepared
from ..samples.sites import Calls, joined, time_sums
from ..samples.stream import Sink, Stream
from ..samples.summary import ALL, OWN_CODE, PROJECT, Scope, Summary
from ..statistics.intervals import effective_samples
from .awaiters import awaiting_tree
from .held_memory import Held, HeldPaths, held_paths, read_held
from .last_seconds import LastSeconds, find_killed, last_seconds
from .native_rows import native_rows
from .processes import LISTED, frame_of, read_metadata, recorded_how, totals_of, wall_seconds
from .profile import Frames, Profile, Totals
from .question import Question
from .span_sums import (
    MEASURE,
    CollectorColumns,
    Ranges,
    TimeRangeSums,
    WaitColumns,
    collector_known,
    collector_nodes,
    collector_sums,
    idle_seconds,
    reason_sums,
    sum_spans,
    without_names,
)
from .step_waits import SpanWaits, StepWaits
from .tasks import find_steps, has_coroutines, sum_tasks

if TYPE_CHECKING:
    from ..conclusions.redundancy.findings import NativeTimeSums

SHARED_GPU = (
    "other processes used the GPU as well, or nothing tells whose use it was: where the driver does not tell that of"
    " each process, it is that of all"
)

TURNS = (
    "spans took turns on a thread (those of asyncio's tasks, or of greenlets): their CPU time, waiting and memory are"
    " those of all that ran there meanwhile"
)

WIDEN_BELOW = 0.5
"""Without --scope, all is in scope if less than this part of the CPU time has a frame of the project."""

WIDEN_BELOW_CELLS = 0.02
"""The same where cells of a notebook ran."""


@dataclass(frozen=True)
class ResolvedQuestion:
    """A question resolved against a recording: its window, threads, processes and spans."""

    recording: Recording
    question: Question
    filter: Filter
    spans: Spans
    """The named spans of the selected processes."""
    window: Window
    lifetimes: ProcessLifetimes
    ranges: Ranges
    """The time ranges of the named spans in the window, and those of the tracks."""
    tracks: Tracks | None
    """The tracks of rows with a span of their own, instead of their threads."""
    wall_s: float | None
    """The length of the window, None if it is not known."""
    stream: Stream
    calls: CallTree
    brief: bool = False
    """Only the data for sums of many recordings, which is faster: without call paths, files, native functions, tasks,
    repeated work, counted calls, and what lines held over time."""

    @cached_property
    def paths(self) -> PathSums:
        """The sink by call path."""
        return PathSums(self.stream, self.calls, self.recording.all_threads.main)


@dataclass(frozen=True)
class Measured:
    """Sums of one pass over the samples of a question."""

    facts: Facts
    held: Held
    held_paths: HeldPaths
    named_spans: TimeRangeSums | None
    """None where there are no named spans."""
    readings: Readings | None
    """None where GPUs were not read, and so is ``gpu``."""
    gpu: GpuSums | None
    paths: PathFacts | None
    """Sums by call path; None if the question is brief."""
    pools: PoolSums
    """Work of native threads, by the lines that submitted it."""
    awaits: Awaits | None
    """Suspended tasks; None where nothing is known of them."""
    native_time: NativeTimeSums | None
    """Time of native code by line; None if repeated work was not watched for, or the question is brief."""
    parent_waits: ParentWaits | None = None
    """What children did while their parents waited; None where that is not asked, or waiting was not recorded."""
    span_waits: SpanWaits | None = None
    """Waits by span; None where no row has a span, no code is a coroutine's, or the question is brief."""


def ask(recording: Recording, question: Question, *, brief: bool = False) -> ResolvedQuestion:
    """Resolve a question against a recording; ``brief`` is that of ``ResolvedQuestion``.

    Errors:
        FormatError: the recording is damaged, or it has no such window, thread, process or span.
    """
    selected = make_filter(recording, question.thread, question.processes)
    every = read_spans(recording)
    spans = _of_processes(every, recording, selected)
    window = make_window(question.start_s, question.end_s, recording.start_ns, recording.end_ns)
    if question.span is None:
        tracks = make_tracks(recording, every)
    else:
        matching = matching_spans(window, recording, spans, question.span)
        tracks = make_tracks(recording, every, matching.number.tolist())
        window = narrowed(window, matching, tracks)
    lifetimes = read_process_lifetimes(recording)
    stream = Stream(recording, window, selected.threads, question.attribution, tracks=tracks)
    own, total = own_and_total(spans, window, selected.threads)
    return ResolvedQuestion(
        recording,
        question,
        selected,
        spans,
        window,
        lifetimes,
        (own, total) if tracks is None else _with_tracks(tracks, own, total, window),
        tracks,
        wall_seconds(recording, window, lifetimes, selected),
        stream,
        load_tree(recording),
        brief,
    )


def measure(resolved: ResolvedQuestion, *more: Sink) -> Measured:
    """Reads samples, memory and GPUs; the samples in one pass, which feeds the sinks ``more`` as well."""
    recording, stream, ranges = resolved.recording, resolved.stream, resolved.ranges
    reduction = Reduction(stream)
    spans = TimeRangeSums(stream, ranges, len(resolved.spans.names), resolved.tracks) if len(ranges[1]) else None
    readings = read_readings(recording)
    gpu = None if readings is None else GpuJoin(stream, readings, gpu_threads(recording, resolved.filter))
    pools = PoolSums(stream, resolved.question.pools)
    paths = None if resolved.brief else resolved.paths
    native_time = None
    if was_watched(recording) and not resolved.brief:
        from ..conclusions.redundancy.findings import NativeTimeSums  # with all that judges them, which is much

        native_time = NativeTimeSums(stream)
    awaits = read_awaits(recording, resolved.window, resolved.filter)
    parents = None
    if not resolved.brief and resolved.filter.everything and resolved.window.spans is None:
        parents = read_parent_waits(recording, stream, resolved.calls, resolved.lifetimes, awaits)
    of_parents = parents if parents is not None and parents.found else None
    span_waits = None
    if not resolved.brief and resolved.tracks is not None and has_coroutines(recording):
        span_waits = SpanWaits(resolved.tracks)
    sinks = (paths, spans, gpu, native_time, of_parents, span_waits)
    stream.feed(reduction, pools, *(sink for sink in sinks if sink is not None), *more)
    facts = reduction.facts()
    if recording.rows("cpu") + recording.rows("waits") > MANY_ROWS:
        release_unused()
    held = read_held(
        recording,
        resolved.window,
        resolved.filter,
        resolved.wall_s,
        stream.phases,
        pools.askers(),
        collector_nodes(facts.cpu, recording.rows("stacks")),
    )
    by_path = HeldPaths.none() if paths is None else held_paths(held, paths.paths)
    gpus = None if gpu is None else gpu.sums()
    path_facts = None if paths is None else paths.facts(by_path.sums)
    return Measured(
        *(facts, held, by_path, spans, readings, gpus, path_facts, pools, awaits, native_time, parents),
        span_waits=span_waits,
    )


def build_profile(recording: Recording, question: Question, leak_definition: LeakDefinition | None = None) -> Profile:
    """Answers ``question``. ``leak_definition`` replaces the one that ``question.leaks`` names.

    Errors:
        FormatError: the recording is damaged, or the question does not fit it.
    """
    resolved = ask(recording, question)
    return conclude(resolved, measure(resolved), leak_definition)


def conclude(resolved: ResolvedQuestion, measured: Measured, leak_definition: LeakDefinition | None = None) -> Profile:
    """Draw the conclusions from the sums: scope, lines, functions, threads, leaks, totals."""
    recording, question, held, brief = resolved.recording, resolved.question, measured.held, resolved.brief
    threads = recording.all_threads
    tree, sources = resolved.calls, Sources(recording.table("files"), recording.table("codes"))
    summary = _summary(resolved, measured, tree)
    scope, widened = choose_scope(question.scope, recording, summary)
    in_scope = summary.in_scope(scope)
    definition = leak_definition or definition_named(question.leaks)
    placed = summary.placed_lines(in_scope)
    leaks = held.leaks(recording, tree, in_scope, placed, sources, definition)
    names = summary.sums.names
    summary = summary.with_more(
        *held.columns(names, tree, in_scope, leaks, brief=brief),
        GpuColumns(names, measured.gpu),
        PoolColumns(names),
        WaitColumns(names),
        AwaitColumns(names, measured.awaits, resolved.wall_s),
        CollectorColumns(names, collector_known(measured.facts, recording)),
    )
    by_thread = summary.threads(threads, held.threads(len(threads)), resolved.filter.processes)
    lines = summary.lines(in_scope, sources)
    memory = held.memory(recording, leaks, None if brief else lines, sources, None if brief else (tree, in_scope))
    processes = frame_of(recording, resolved.window, resolved.lifetimes, resolved.filter.processes, by_thread, memory)
    devices = None if measured.readings is None else describe_gpu(recording, measured.readings, resolved.window)
    totals = _totals(resolved, measured, summary, by_thread, processes, devices)
    nothing = Frame({})
    steps = None if brief else find_steps(recording, tree, in_scope)
    redundancies = None
    if measured.native_time is not None:
        from ..conclusions.redundancy.findings import Lines, find_redundancies

        placed_lines = Lines(placed[0].node_rows, tree.parent, placed[1], sources)
        redundancies = find_redundancies(
            recording, placed_lines, resolved.window, resolved.filter, measured.native_time
        )
    return Profile(
        question=question,
        scope=scope.text,
        widened=widened,
        metadata=read_metadata(recording),
        totals=totals,
        quality=_quality(resolved, measured, totals, devices),
        frames=Frames(
            lines=lines,
            functions=with_calls(summary.functions(in_scope), None if brief else _calls(resolved, tree), tree),
            native_functions=nothing
            if measured.paths is None
            else native_rows(measured.paths, summary.total_cpu_ns, summary.effective, waits_known=summary.waits_known),
            files=nothing if brief else summary.files(in_scope),
            threads=by_thread,
            processes=processes,
            tasks=nothing
            if brief
            else sum_tasks(
                steps,
                tree,
                summary.sums,
                summary.effective,
                waits_known=summary.waits_known,
                awaits=measured.awaits,
            ),
            leaks=None if leaks is None else leaks.listed,
            spans=sum_spans(resolved.spans, resolved.window, held, measured.named_spans, measured.awaits)
            if recording.recorded("spans")
            else None,
            redundancies=redundancies,
        ),
        sources=sources,
        calls=Calls(tree, in_scope, summary.sums, summary.waits_known),
        known_paths=measured.paths,
        memory=memory,
        gpu=devices,
        last_seconds=None if brief else _last_seconds(resolved),
        parent_waits=None if measured.parent_waits is None else measured.parent_waits.conclude(in_scope, sources),
        awaiting=None
        if steps is None or measured.awaits is None
        else awaiting_tree(measured.awaits, tree, steps, in_scope, sources, resolved.wall_s),
        step_waits=None if steps is None else StepWaits.of(steps, measured.span_waits, resolved.spans),
    )


def _last_seconds(resolved: ResolvedQuestion) -> LastSeconds | None:
    """The last seconds of a process that was killed, where the question is about all of the recording."""
    recording, question = resolved.recording, resolved.question
    asked = (question.thread, question.start_s, question.end_s, question.span, question.processes or None)
    if any(each is not None for each in asked):
        return None
    killed = find_killed(recording, resolved.lifetimes)
    if killed is None:
        return None
    part = replace(question, start_s=killed.start_s, end_s=killed.end_s, processes=(f"id={killed.process}",))
    inner = ask(recording, part, brief=True)
    answer = conclude(inner, measure(inner))
    return last_seconds(killed, answer.frames.lines, answer.memory)


def _calls(resolved: ResolvedQuestion, tree: CallTree) -> CallFacts | None:
    """Recorded calls; they are not known by thread, nor by named span."""
    if resolved.filter.named is not None or resolved.window.spans is not None:
        return None
    return read_call_facts(resolved.recording, tree, resolved.window, resolved.filter.processes)


def _summary(resolved: ResolvedQuestion, measured: Measured, tree: CallTree) -> Summary:
    """All measures of every node of the call tree."""
    facts, gpu = measured.facts, measured.gpu
    rows = prepared(facts.cpu, facts.waits, resolved.recording.all_threads.main)
    effective = effective_samples(float(facts.cpu["cpu_ns"].sum()), facts.weight_squared)
    waited = [] if facts.waits is None else [reason_sums(facts.waits, len(tree))]
    more = [
        *waited,
        collector_sums(facts.cpu, len(tree)),
        measured.pools.sums(),
        *measured.held.sums,
        *([] if gpu is None else [gpu.sums]),
        *([] if measured.awaits is None else [measured.awaits.sums(len(tree))]),
    ]
    sums = joined([time_sums(rows, len(tree)), *more])
    return Summary(tree, rows, sums, effective, waits_known=facts.waits is not None)


def _totals(
    resolved: ResolvedQuestion,
    measured: Measured,
    summary: Summary,
    threads: Frame,
    processes: Frame,
    devices: Gpu | None,
) -> Totals:
    totals = totals_of(
        resolved.recording,
        resolved.window,
        resolved.filter,
        threads,
        processes,
        summary.effective,
        summary.sums.total(MEASURE) / 1e9 if collector_known(measured.facts, resolved.recording) else None,
        resolved.wall_s,
        waits_known=summary.waits_known,
    )
    pools = asdict(measured.pools.time())
    totals = replace(totals, **measured.held.totals(), **pools, idle_wait_s=_idle(resolved, measured))
    if measured.awaits is not None:
        totals = replace(totals, await_s=float(measured.awaits.await_ns.sum()) / 1e9)
    if measured.readings is not None and devices is not None and measured.gpu is not None:
        totals = replace(totals, **gpu_totals(devices, measured.gpu, measured.readings, resolved.window))
    return totals


def _idle(resolved: ResolvedQuestion, measured: Measured) -> float | None:
    waits = measured.facts.waits
    return None if waits is None else idle_seconds(waits, resolved.wall_s)


def _quality(resolved: ResolvedQuestion, measured: Measured, totals: Totals, devices: Gpu | None) -> Quality:
    ledger = read_quality(resolved.recording, resolved.filter.processes)
    quality = with_remarks(ledger, measured, totals.unknown_s, totals.cpu_s, resolved.recording)
    quality = replace(quality, hooks=hooks_time(resolved.stream, measured.facts.weight_squared))
    by_time = resolved.spans.only(~follows(resolved.recording)[resolved.spans.thread])
    if take_turns(by_time, resolved.window):
        quality = replace(quality, notes=[*quality.notes, TURNS])
    if devices is not None and devices.shared:
        quality = replace(quality, notes=[*quality.notes, SHARED_GPU])
    return quality


def _with_tracks(tracks: Tracks, own: TimeRanges, total: TimeRanges, window: Window) -> Ranges:
    """The ranges of threads and of tracks, as far as they lie in a window."""
    ranges = [each.cut(window.start_ns, window.end_ns) for each in tracks.ranges]
    if window.spans is not None:
        ranges = [each.within(window.spans) for each in ranges]
    return own.followed_by(ranges[0]), total.followed_by(ranges[1])


def gpu_threads(recording: Recording, selected: Filter) -> Mask:
    """Threads whose stacks the GPU is joined with: the selected ones, or the main threads of the selected processes."""
    mains = recording.all_threads.main
    if selected.threads is None:
        return mains
    return selected.threads if selected.named is not None else selected.threads & mains


def _of_processes(spans: Spans, recording: Recording, selected: Filter) -> Spans:
    """The spans of the selected processes."""
    if selected.processes is None:
        return spans
    return spans.only(selected.processes[recording.all_threads.process[spans.thread]])


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
    # What runs a notebook takes long to start; its cells are the program all the same.
    cells = recording.table("files").column("cell")
    least = WIDEN_BELOW_CELLS if cells.null_count < len(cells) else WIDEN_BELOW
    if total > 0 and inside < least * total:
        return Scope(ALL), True
    return project, False


def named_scope(text: str, recording: Recording) -> Scope:
    """The scope ``text`` for the interpreters of a recording."""
    folders = {
        str(PurePosixPath(path.replace("\\", "/")).parent)
        for path, how in zip(recording.all_processes.executable, recorded_how(recording), strict=True)
        if path and how != LISTED
    }
    package = recording.manifest.parameters.get("entry_package")
    package = package if isinstance(package, str) else None
    return Scope(text, tuple(sorted(folders)), _begins_in_own_code(recording), package)


def _begins_in_own_code(recording: Recording) -> bool:
    """True if the outermost frame of a stack is in code without a file, as that of ``python -c`` is.

    In the program of a file such code is what its libraries made with exec() (namedtuple and dataclass do).
    """
    own = [file for file, path in enumerate(recording.table("files").column("path").to_pylist()) if path in OWN_CODE]
    stacks = recording.table("stacks")
    parent, code = ids(stacks.column("parent")), ids(stacks.column("code"))
    roots = np.flatnonzero(np.bincount(code[(parent == NOTHING) & (code != NOTHING)]))
    return bool(np.isin(ids(recording.table("codes").column("file"))[roots], own).any())


def nameless(recording: Recording) -> bool:
    """True if there are native frames, and none has a symbol: then the evaluation loop cannot be recognised."""
    symbols = recording.table("native_frames").column("symbol")
    return len(symbols) > 0 and symbols.null_count == len(symbols)


def with_remarks(quality: Quality, measured: Measured, unknown_s: float, cpu_s: float, recording: Recording) -> Quality:
    """The quality with remarks on what the analysis found."""
    notes = list(quality.notes)
    if measured.facts.waits is None:
        notes.append("waiting was not recorded")
    if measured.held.heap is None and measured.held.copy_sums is None:
        notes.append("memory and copies were not recorded")
    if unknown_s > 0.01 * cpu_s:
        share = unknown_s / cpu_s
        notes.append(f"{share:.0%} of the CPU time cannot be divided into Python and native (no program counter)")
    if nameless(recording):
        notes.append("native functions have no names here: all time in calls of C functions counts as native")
    elif without_names(measured.facts, recording):
        notes.append(
            "this interpreter is without the names of its own functions: time in its garbage collector is not known"
        )
    if recording.being_written:
        notes.append("the program still runs: this is what was recorded so far (--follow shows it until it ends)")
    elif recording.unfinished:
        notes.append(
            "the recording was never finished: this is what its spool holds ('tachograph recover' finishes it);"
            " processes that began in the last second before the recording command was killed may be missing"
        )
    return replace(quality, notes=notes)
