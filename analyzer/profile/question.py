"""The question that is put to a recording."""

from __future__ import annotations

from dataclasses import dataclass

from ..recording.question_options import Attribution, PoolRule


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a recording: scope, window, threads, processes; the defaults ask for everything."""

    scope: str | None = None
    """``project``, ``all`` or a glob; None: ``project``, or ``all`` where little time is the project's."""
    thread: str | None = None
    """A thread's name (or a glob of it), its operating system id, or ``main``."""
    start_s: float | None = None
    """Beginning of the window, seconds from the start of the recording; negative: from its end."""
    end_s: float | None = None
    attribution: Attribution = Attribution.AUTO
    pools: PoolRule = PoolRule.POSITIONS
    """Rule that charges CPU time of native threads to lines."""
    leaks: str = "default"
    """The name of the definition of leaks: ``default`` or ``paper``."""
    span: str | None = None
    """Only while spans lasted, in their threads: ``NAME`` (a glob), or ``NAME[KEY=VALUE,...]``."""
    processes: tuple[str, ...] = ()
    """Only these: ids in the recording, the operating system's ids, or names (globs); empty: all."""
