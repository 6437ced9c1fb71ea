"""What the first lines of a report say of waiting, and of native threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from ..profile.call_branches import line_calls
from ..profile.collector_time import COLUMN as GC
from ..profile.profile import Profile, Totals
from ..samples.scope import ALL
from .numbers import percent, seconds, size

LEAST_SHARE = 0.005
"""Native threads are mentioned if they used this part of the CPU time."""

GC_SHARE = 0.02
"""Garbage collections are mentioned if they took this part of the CPU time."""

GC_LINE = 0.25
"""A line that set off this part of it is named with it, of at most ``MOST_LINES``."""

MOST_LINES = 2

MOST = 0.5
"""A line with this part of the time is looked into."""

TOUCHED = 0.95
"""What of the peak had been touched is mentioned if it is less than this part."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """``measure`` is the one of ``series.MEASURES``; ``seconds`` is None where waiting was not recorded."""

    measure: str
    seconds: float | None
    threads: int
    """How many threads it is of."""
    main: bool


def first_waiting(profile: Profile) -> Waiting:
    """That of the main threads, as the others of a program are mostly idle; of a thread that was named, its own."""
    totals = profile.totals
    named = profile.question.thread is not None
    if not named:
        return Waiting("main_wait", totals.main_wait_s, max(1, totals.processes), main=True)
    threads = profile.threads
    waiting = int(((threads["cpu_s"] > 0) | (threads["wait_s"].fillna(0.0) > 0)).sum())
    return Waiting("wait", totals.wait_s, max(1, waiting), main=False)


@dataclass(frozen=True, slots=True)
class Collections:
    """What garbage collections took; ``lines`` set off much of it, the most first."""

    seconds: float
    share: float
    lines: list[str]


def collections(profile: Profile) -> Collections | None:
    """None where they took too little to be mentioned, and where it is not known."""
    totals, lines = profile.totals, profile.frames.lines
    if not totals.gc_s or totals.gc_s < GC_SHARE * totals.cpu_s:
        return None
    order = np.argsort(-np.nan_to_num(lines[GC]), kind="stable")[:MOST_LINES]
    much = [row for row in lines.take(order).rows() if row["line"] is not None and row[GC] >= GC_LINE * totals.gc_s]
    named = [f"{PurePosixPath(row['file']).name}:{row['line']}" for row in much]
    return Collections(totals.gc_s, totals.gc_s / totals.cpu_s, named)


def charges_pools(totals: Totals) -> bool:
    """Whether enough of the CPU time is charged to lines as native threads' to have a column of its own."""
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
        facts.append((share(charged), "charged to the lines that asked, by where Python threads were"))
    if totals.pool_shared_s > 0:
        facts.append((share(totals.pool_shared_s), "shared out among several that may have asked"))
    if totals.pool_waiting_s > 0:
        facts.append((share(totals.pool_waiting_s), "waiting for work"))
    if other > 0:
        facts.append((share(other), "unattributed"))
    return facts


def touched_text(profile: Profile) -> str | None:
    """How much of what was held at the peak was in memory, if that is much less; None where it is not, or not known."""
    held, touched = profile.totals.live_at_peak_bytes, profile.totals.touched_at_peak_bytes
    if held is None or touched is None or touched >= TOUCHED * held:
        return None
    return f"{size(round(touched))} of it touched"


def library_caller(profile: Profile) -> str | None:
    """The line, as ``file.py:21``, that has most of the time and spends it in libraries of Python; None without one."""
    lines = profile.frames.lines
    if profile.scope == ALL or not len(lines):
        return None
    row = lines.row(int(np.argmax(np.nan_to_num(lines["cpu_s"]))))
    if row["line"] is None or not row["cpu_share"] >= MOST:
        return None
    called = line_calls(profile, f"{row['file']}:{row['line']}").whole
    libraries = (each for each in called.children if any(below.language == "python" for _, below in each.walk()))
    if sum(each.cpu_s for each in libraries) < MOST * called.cpu_s:
        return None
    return f"{row['file'].rpartition('/')[2]}:{row['line']}"
