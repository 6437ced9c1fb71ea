"""Whose waiting a report tells first: the main threads', or that of the threads that were asked for."""

from __future__ import annotations

from dataclasses import dataclass

from ..profile.profile import Profile


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
