"""Other answers that a page holds beside the one that was asked for: another scope, single threads and processes.

Each is the answer to a question of its own, so that it says what ``analyze --scope``, ``--thread`` and ``--process``
say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pandas as pd

from ..profile.question import Question
from ..recording.opened import Recording
from ..samples.scope import ALL, PROJECT
from .report_data import ReportData, build_report_data, in_other_scope

MAX_THREADS, MAX_PROCESSES = 8, 6
"""Threads and processes that can be chosen: those with the most CPU time, then with the most waiting."""

MAX_ROWS = 400_000
"""Samples, waits and blocks of a recording that is read once more for each view; of a larger one there are none."""

SCOPES = {PROJECT: "libraries charged to the project", ALL: "all code, libraries too"}


@dataclass(frozen=True)
class View:
    """An answer that can be chosen; ``kind`` is ``scope``, ``thread`` or ``process``."""

    kind: str
    label: str
    data: ReportData


def build_views(recording: Recording, question: Question, asked: ReportData) -> list[View]:
    """The views beside ``asked``, which is the answer to ``question``; none of a recording that is too large.

    Errors:
        FormatError: the recording is damaged.
    """
    if is_large(recording):
        return []
    found = []
    for scope, label in SCOPES.items():
        if scope != asked.profile.scope:
            recording.step(f"the same of {label}")
            found.append(View("scope", label, in_other_scope(asked, scope)))
    for kind, label, other in _questions(question, asked):
        recording.step(f"the same of {label}")
        found.append(View(kind, label, build_report_data(recording, other)))
    return found


def is_large(recording: Recording) -> bool:
    """Whether reading a recording once for each view would take too long."""
    return sum(map(recording.rows, ("cpu", "waits", "allocations"))) > MAX_ROWS


def _questions(question: Question, asked: ReportData) -> Iterator[tuple[str, str, Question]]:
    """What is asked of single threads and processes."""
    profile = asked.profile
    threads, processes = profile.threads, profile.processes
    if question.thread is None and len(threads) > 1:
        names = processes.set_index("process")["name"].to_dict() if len(processes) > 1 else {}
        known = threads[threads["tid"].notna()]
        for row in _busiest(known).head(MAX_THREADS).itertuples():
            owner = f" of {names[row.process]}" if row.process in names else ""
            label = f"{row.name}{owner} ({row.tid})" if isinstance(row.name, str) else f"thread {row.tid}{owner}"
            yield "thread", label, replace(question, scope=profile.scope, thread=str(row.tid))
    sampled = processes[processes["samples"] > 0]
    if len(sampled) > 1:
        for row in sampled.sort_values("cpu_s", ascending=False, kind="stable").head(MAX_PROCESSES).itertuples():
            chosen = replace(question, scope=profile.scope, processes=(f"id={row.process}",))
            yield "process", f"{row.name} ({row.pid})", chosen


def _busiest(threads: pd.DataFrame) -> pd.DataFrame:
    return threads.sort_values(["cpu_s", "wait_s"], ascending=False, kind="stable")
