"""Texts and figures that all reports share, each worded once.

Waiting, native threads and garbage collection in a report's first lines; the verdict on the quality of the data, with
its ledger; shares of the CPU time with their intervals; names of scopes and of rows that are not a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from ..profile.call_branches import calls_of_line
from ..profile.profile import Profile, Totals
from ..profile.span_sums import COLLECTOR_COLUMN as GC
from ..recording.frame import Row
from ..recording.quality import Cause
from ..samples.summary import ALL, OUT_OF_SCOPE, PROJECT, UNKNOWN_CODE
from ..statistics.intervals import wilson
from .numbers import counted, percent, seconds, size

LEAST_SHARE = 0.005
"""Native threads are mentioned if they used this part of the CPU time."""

GC_SHARE = 0.02
"""Garbage collections are mentioned if they took this part of the CPU time."""

GC_LINE = 0.25
"""A line that set off this part of it is named with it, of at most ``MOST_LINES``."""

MOST_LINES = 2

SHUTDOWN = "<interpreter shutdown>"

MOST = 0.5
"""A line with this part of the time is looked into."""

TOUCHED = 0.95
"""The touched part of the peak is mentioned if it is less than this."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """``measure`` is the one of ``series.MEASURES``; ``seconds`` is None where waiting was not recorded."""

    measure: str
    seconds: float | None
    threads: int
    """The number of threads that waited."""
    main: bool


def first_waiting(profile: Profile) -> Waiting:
    """Waiting of the main threads, as other threads are mostly idle; if the question names a thread, its waiting."""
    totals = profile.totals
    named = profile.question.thread is not None
    if not named:
        return Waiting("main_wait", totals.main_wait_s, max(1, totals.processes), main=True)
    threads = profile.threads
    waiting = int(((threads["cpu_s"] > 0) | (threads["wait_s"].fillna(0.0) > 0)).sum())
    return Waiting("wait", totals.wait_s, max(1, waiting), main=False)


@dataclass(frozen=True, slots=True)
class Collections:
    """CPU time of garbage collections; ``places`` are where much of it was, the most first: ``on app.py:18``."""

    seconds: float
    share: float
    places: list[str]


def collections(profile: Profile) -> Collections | None:
    """None where they took too little to be mentioned, and where it is not known."""
    totals, lines = profile.totals, profile.frames.lines
    if not totals.gc_s or totals.gc_s < GC_SHARE * totals.cpu_s:
        return None
    order = np.argsort(-np.nan_to_num(lines[GC]), kind="stable")[:MOST_LINES]
    much = [row for row in lines.take(order).rows() if row[GC] >= GC_LINE * totals.gc_s]
    named = [_collected_at(row) for row in much]
    return Collections(totals.gc_s, totals.gc_s / totals.cpu_s, [place for place in named if place])


def _collected_at(row: Row) -> str | None:
    """The place of a row of lines; None for code that is on no line."""
    if row["line"] is not None:
        return f"on {PurePosixPath(row['file']).name}:{row['line']}"
    return "at interpreter shutdown" if row["function"] == SHUTDOWN else None


def charges_pools(totals: Totals) -> bool:
    """True if lines are charged with enough CPU time of native threads for a column of its own."""
    charged = totals.pool_cpu_s - totals.pool_unattributed_s
    return charged > 0 and charged >= LEAST_SHARE * totals.cpu_s


def pool_facts(totals: Totals) -> list[tuple[str, str]]:
    """Amounts, each with what it is; none where native threads did hardly anything."""
    pool = totals.pool_cpu_s
    if pool <= 0 or pool < LEAST_SHARE * totals.cpu_s:
        return []

    def share(part: float) -> str:
        return f"{percent(part / pool) or '0'} %"

    charged, other = pool - totals.pool_unattributed_s, totals.pool_unattributed_s - totals.pool_waiting_s
    facts = [(seconds(pool), "CPU")]
    if charged > 0:
        facts.append((share(charged), "attributed to calling lines"))
    if totals.pool_shared_s > 0:
        facts.append((share(totals.pool_shared_s), "shared out among several that may have asked"))
    if totals.pool_waiting_s > 0:
        facts.append((share(totals.pool_waiting_s), "waiting for work"))
    if other > 0:
        facts.append((share(other), "unattributed"))
    return facts


def processes_fact(totals: Totals) -> tuple[str, str] | None:
    """The number of processes, and their kinds; None for one ordinary process."""
    if totals.processes + totals.listed_processes <= 1 and not totals.native_processes:
        return None
    kinds = [f"{totals.native_processes:,} without Python stacks"] if totals.native_processes else []
    kinds += [f"{totals.listed_processes:,} more not recorded"] if totals.listed_processes else []
    number, what = number_and_noun(totals.processes, "process", "processes")
    return number, what + (f" ({', '.join(kinds)})" if kinds else "")


def number_and_noun(number: int, one: str, many: str = "") -> tuple[str, str]:
    """A count and its noun apart, for renderers that set off the number."""
    return f"{number:,}", one if number == 1 else many or one + "s"


def touched_text(profile: Profile) -> str | None:
    """The part of the memory held at the peak that was touched; None if nearly all was, or if that is unknown."""
    held, touched = profile.totals.live_at_peak_bytes, profile.totals.touched_at_peak_bytes
    if held is None or touched is None or touched >= TOUCHED * held:
        return None
    return f"{size(round(touched))} of it touched"


MOST_CALLERS = 3
"""Lines that are named together, where none of them has most of the time alone."""


def library_callers(profile: Profile) -> list[tuple[str, int]]:
    """The file and the number of the few lines that have most of the time and spend it in libraries of Python."""
    lines = profile.frames.lines
    if profile.scope == ALL or not len(lines):
        return []
    callers, share = [], 0.0
    for number in np.argsort(-np.nan_to_num(lines["cpu_s"]), kind="stable")[:MOST_CALLERS].tolist():
        row = lines.row(number)
        if row["line"] is None or not row["cpu_share"] > 0 or not _in_libraries(profile, row["file_id"], row["line"]):
            return []
        callers.append((row["file"], row["line"]))
        share += row["cpu_share"]
        if share >= MOST:
            return callers
    return []


MUCH = 0.05
"""A file with this part of the CPU time is one whose lines get suggestions."""


def files_without_source(profile: Profile) -> list[str]:
    """The project's files with much of the CPU time whose text is not in the recording, most time first."""
    if profile.scope == ALL:
        return []
    rows = sorted(profile.frames.files.rows(), key=lambda row: -float(np.nan_to_num(row["cpu_share"])))
    return [
        str(row["file"])
        for row in rows
        if row["file_id"] >= 0 and row["cpu_share"] >= MUCH and not profile.sources.text(row["file_id"])
    ]


def _in_libraries(profile: Profile, file: int, line: int) -> bool:
    """True if most of a line's time is in libraries of Python."""
    called = calls_of_line(profile, file, line).whole
    libraries = (each for each in called.children if any(below.language == "python" for _, below in each.walk()))
    return sum(each.cpu_s for each in libraries) >= MOST * called.cpu_s


UNSAMPLED_SHARE = 0.02
"""CPU time in no sample is mentioned from this part on."""

TOO_MUCH_UNSAMPLED = 0.10
"""From here on shares may be quite wrong."""

FEW_SAMPLES = 100
"""Fewer make every share rough."""

FEW = 0.005
"""Stacks lost from at most this part of the samples change nothing that a report says."""

CPU_WAIT_SHARE = 0.05

_STACKS = ("stacks_torn", "stacks_lost", "waits_torn")


@dataclass(frozen=True, slots=True)
class Verdict:
    """``good`` if what the report says can be believed as it is."""

    good: bool
    text: str


def verdict(profile: Profile) -> Verdict:
    """The quality of the data in one line: the recording's end, losses, and CPU time that is in no sample."""
    quality = profile.quality
    severe = sum(is_severe(cause, profile) for cause in quality.causes)
    unsampled = unsampled_share(profile)
    problems = []
    if unsampled >= TOO_MUCH_UNSAMPLED:
        problems.append(f"{percent(unsampled)} % of the CPU time is in no sample")
    if severe:
        problems.append(f"{severe} kind{'s' if severe > 1 else ''} of data loss")
    unfinished = "still being written" if quality.being_written else "never finished"
    ended = {"recovered": "recovered after a crash", "recording": unfinished}.get(quality.state)
    if problems:
        return Verdict(good=False, text="; ".join(filter(None, (*problems, ended))))
    if not profile.totals.samples:  # of what was not taken nothing can be lost
        return Verdict(good=False, text=f"no CPU time was sampled ({ended})" if ended else "no CPU time was sampled")
    text = "nothing was lost" if quality.nothing_lost else f"negligible loss: {_lost_stacks(profile)} % of the stacks"
    good = quality.state != "recording" or quality.being_written
    return Verdict(good=good, text=f"{text} ({ended})" if ended else text)


def _lost_stacks(profile: Profile) -> str:
    """The share of stacks that were lost, in percent."""
    lost = sum(loss.count for loss in profile.quality.losses if loss.loss in _STACKS)
    return percent(lost / profile.totals.samples) or "<0.1"


def is_severe(cause: Cause, profile: Profile) -> bool:
    """True if data is missing, and more than a few stacks among many."""
    few = cause.loss in _STACKS and cause.count <= FEW * profile.totals.samples
    return cause.severity == "loss" and not few


def cause_text(cause: Cause) -> str:
    """The description of a loss, with the processes that it happened in where there are several."""
    doc = cause.doc.removesuffix(" (counted by the reader)")  # who counted does not matter here
    return counted(cause.count, doc) + (f" ({cause.where})" if cause.where else "")


DEAR = 0.10
"""From this part of the program's CPU time on, what takes less is named."""


def recorder_cost(profile: Profile) -> str | None:
    """The recorder's share of the program's CPU time, and its memory at most; None if it is unknown."""
    own, cpu, question = profile.quality.recorder_cpu_s, profile.totals.cpu_s, profile.question
    if own is None:
        return None
    whole = question.thread is None and question.span is None and (question.start_s, question.end_s) == (None, None)
    hooks = profile.quality.hooks
    parts = []
    if cpu > 0 and whole:
        parts.append(f"{percent((own + (0.0 if hooks is None else hooks.cpu_s)) / cpu) or '<0.1'} %")
    if hooks is not None and whole and cpu > 0:
        own += hooks.cpu_s
        ends = [percent((own - hooks.cpu_s + end) / cpu) or "<0.1" for end in (hooks.low_s, hooks.high_s)]
        parts.append(f"{ends[0]} to {ends[1]} %")
    elif profile.memory is not None:
        parts.append("memory hooks not included")
    if profile.memory is not None and whole and own > DEAR * cpu > 0:
        parts.append("--cpu-only takes less")
    details = f" ({'; '.join(parts)})" if parts else ""
    held = profile.quality.recorder_bytes
    several = " in a process" if len(profile.quality.labels) > 1 else ""
    memory = "" if held is None else f", {size(held)}{several}"
    return f"recording overhead: {seconds(own)} CPU{details}{memory}"


def unsampled_share(profile: Profile) -> float:
    """The part of the CPU time that no sample stands for; 0 if that is not known."""
    totals = profile.totals
    whole = totals.cpu_s + (totals.unsampled_s or 0.0)
    return (totals.unsampled_s or 0.0) / whole if whole > 0 else 0.0


def without_processor(totals: Totals) -> float | None:
    """Seconds for which the main threads were ready and had no processor; None if that is little, or not known."""
    waited = totals.main_cpu_wait_s
    return waited if waited and waited > CPU_WAIT_SHARE * totals.main_s else None


def remarks(profile: Profile) -> Iterator[str]:
    """Remarks on the totals, where a reader should know them."""
    totals, unsampled = profile.totals, unsampled_share(profile)
    if unsampled > UNSAMPLED_SHARE:
        shares = (
            "; shares may be quite wrong: record with a smaller --interval" if unsampled >= TOO_MUCH_UNSAMPLED else ""
        )
        yield (
            f"{percent(unsampled)} % of the CPU time ({seconds(totals.unsampled_s)}) is in no sample: threads shorter"
            f" than the interval, and the last moments of the others{shares}"
        )
    waited = without_processor(totals)
    if waited is not None:
        mains = "main thread" if totals.processes <= 1 else "main threads"
        yield f"the {mains} waited {seconds(waited)} for a processor: the machine was busy"


@dataclass(frozen=True, slots=True)
class Entry:
    """A loss or a note about the data, with advice where there is some."""

    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Losses that make the verdict bad, and notes, which reports fold."""

    losses: list[Entry]
    notes: list[Entry]

    @property
    def count(self) -> str:
        """The number of notes, as a fold shows it."""
        return counted(len(self.notes), "notes")


def ledger(profile: Profile) -> Ledger:
    """Everything that is known of the quality of the data, once for all reports."""
    causes = profile.quality.causes
    losses = [Entry(cause_text(each), each.advice) for each in causes if is_severe(each, profile)]
    notes = [Entry(cause_text(each), each.advice) for each in causes if not is_severe(each, profile)]
    notes += map(Entry, (*remarks(profile), *profile.quality.notes))
    if profile.totals.samples < FEW_SAMPLES:
        notes.append(Entry(f"only {profile.totals.samples} samples: shares are rough, see the margins"))
    if not losses and not verdict(profile).good:
        return Ledger(notes, [])  # such as a recording that was never finished
    return Ledger(losses, notes)


@dataclass(frozen=True, slots=True)
class Share:
    """A share (0..1) with the ends of its 95 % interval; NaN is unknown."""

    value: float
    low: float
    high: float


def share_of(totals: Totals, cpu_s: float | None) -> Share:
    """The share of all CPU time that some seconds are; None is unknown."""
    if cpu_s is None or math.isnan(cpu_s):
        return Share(math.nan, math.nan, math.nan)
    share = cpu_s / totals.cpu_s if totals.cpu_s > 0 else 0.0
    low, high = wilson(np.array([share]), totals.effective_samples)
    return Share(share, float(low[0]), float(high[0]))


__all__ = ["MEANING", "OUT_OF_SCOPE", "UNKNOWN_CODE", "off_line_title", "scope_text"]

MEANING: Mapping[str, str] = {
    "<no Python stack>": "threads that native code started, such as those of a numerical library",
    "<other code>": "libraries that no line of the project called, such as their own threads",
    "<not sampled>": "not sampled during this interval, or its Python is one whose stacks are not recorded",
    "<torn stack>": "the stack changed while it was read",
    "<lost stack>": "there was no room for the stack",
    "<interpreter start>": "before the first line ran",
    "<interpreter shutdown>": "interpreter shutdown, after the program's last line",
    "<before recording>": "held already when recording began",
}
"""The meaning of each name of a row that is not a line. docs/reference/json.md has them, too."""


def off_line_title(scope: str) -> str:
    """The title of the rows that are not a line."""
    return "not on a line" if scope == ALL else "not on a line in scope"


def scope_text(scope: str) -> str:
    """A scope in a few words: the code that is charged, and the time it is charged with."""
    texts = {PROJECT: "libraries are charged to the project's lines", ALL: "all code"}
    return texts.get(scope, f"scope {scope}")


def scope_sentence(scope: str) -> str:
    """A scope as a sentence, for a page that shows lines of several scopes side by side."""
    sentences = {
        PROJECT: "The time of libraries is charged to the project's lines that call them.",
        ALL: "All code is charged with its own time.",
    }
    return sentences.get(scope, f"Only lines of {scope} are charged; other time goes to their callers.")
