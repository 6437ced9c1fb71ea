"""Decides which metrics the runs of a comparison can judge, by the machine's speed, its load and the number of runs.

Some runs cannot give an answer: on a busy machine, or where the machine's own speed differs between two sides that were
recorded one after the other. Runs of a side that follow one another closely share the state of the machine: neighbours
on the same processor, the clock rate. A change between the sides shows in none of them. Three runs took 3.7 s and the
next three 2.4 s, of one and the same program, on a machine that did nothing else: no statistics of the times alone can
tell that from a change of the program.

But each recording has a yardstick: the recorder itself, which does the same work for each sample. Where its time for a
sample varies from run to run by a tenth, the machine's speed does so as well, and each side may be off by as much. Only
the variation within a side counts: that samples of the new program cost more may be the program's doing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..report_data.difference import Judged
from ..report_data.headline import CPU_WAIT_SHARE
from ..report_data.numbers import percent
from .runs import Run, data_missing

MIN_ON_BUSY = 5
"""Fewest runs a side that give a verdict on a busy machine, if the sides were recorded in turns."""


def in_turns(base: Sequence[Run], new: Sequence[Run]) -> bool:
    """True if the sides were recorded in turns, or in random order, and not one after the other."""
    when = [(run.profile.metadata.created_utc or "", side) for side, runs in enumerate((base, new)) for run in runs]
    order = [side for _, side in sorted(when)]
    changes = sum(one != other for one, other in pairwise(order))
    return changes + 1 >= min(len(base), len(new)) and all(time for time, _ in when)


def drift(base: Sequence[Run], new: Sequence[Run]) -> float:
    """The standard deviation of the machine's speed, as a share, that each side may be off by as a whole.

    0 where what the machine did is in the spread of the runs (sides in turns), where there is one run a side, and where
    the recordings do not tell what a sample cost.
    """
    if len(base) == len(new) == 1 or (min(len(base), len(new)) > 1 and in_turns(base, new)):
        return 0.0
    squares, freedom = 0.0, 0
    for side in (base, new):
        logs = [math.log(run.sample_ns) for run in side if run.sample_ns]
        if len(logs) > 1:
            mean = sum(logs) / len(logs)
            squares += sum((each - mean) ** 2 for each in logs)
            freedom += len(logs) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def unjudged(
    base: Sequence[Run], new: Sequence[Run], spread: float | None, *, anyway: bool
) -> tuple[Judged, str | None]:
    """The metrics that the runs can judge, and why not all of them.

    ``spread`` is the standard deviation between runs that the user states, as a share; ``anyway`` judges runs of a busy
    machine as well. A busy machine changes the CPU time of one and the same program by tens of per cent within minutes
    (docs/explanation/diff.md has figures): three runs, and then three others, see little of that in each of the two
    groups. It does not change what is allocated.
    """
    single = len(base) == 1 and len(new) == 1
    busy = [sum(map(_busy, side)) / len(side) for side in (base, new)]
    steady = min(len(base), len(new)) >= MIN_ON_BUSY and in_turns(base, new)
    counted_alone = Judged.COUNTERS if all(map(_is_counted, (*base, *new))) else Judged.NOTHING
    if max(busy) > CPU_WAIT_SHARE and not steady and not anyway:
        share = f"no processor for {percent(max(busy))} % of the time"
        if single:
            return counted_alone, f"one run a side, on a busy machine ({share})"
        return Judged.BYTES, f"the machine was busy ({share})"
    if single and spread is None:
        return counted_alone, "one run a side"
    return Judged.EVERYTHING, None


def _is_counted(run: Run) -> bool:
    """True if a run's allocated bytes were counted to its end, and not estimated for a part of it."""
    question = run.profile.question
    part = (question.thread, question.span, question.processes, question.start_s, question.end_s)
    return not any(part) and run.end is None and not data_missing(run)


def _busy(run: Run) -> float:
    """The part of its time that a run had no processor for."""
    totals = run.profile.totals
    return (totals.main_cpu_wait_s or 0.0) / totals.main_s if totals.main_s > 0 else 0.0
