"""How much the machine's own speed may differ between two sides that were recorded one after the other.

Runs of a side that follow one another closely are alike in what the machine does meanwhile: neighbours on the same
processor, the clock rate. What happens between the sides is seen in none of them. Three runs took 3.7 s and the next
three 2.4 s, of one and the same program, on a machine that did nothing else: no statistics of the times alone can tell
that from a change of the program.

But each recording has a yardstick: the recorder itself, which does the same work for each sample. Where its time for a
sample varies from run to run by a tenth, the machine's speed does so as well, and each side may be off by as much. Only
the variation within a side counts: that samples of the new program cost more may be the program's doing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from .runs import Run


def in_turns(base: Sequence[Run], new: Sequence[Run]) -> bool:
    """Whether the sides were recorded in turns, or in random order, and not one after the other."""
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
