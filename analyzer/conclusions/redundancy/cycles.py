"""Finds pairs of accesses by functions that read the same memory by turns, again and again.

Where ``check`` and ``compute`` read an array by turns, no access of ``check`` meets the next one of its own: the watch
ends at the one of ``compute``. But if what ``check`` loads is loaded next by ``compute`` with the same value, and what
``compute`` loads is loaded next by ``check``, then ``check`` loads it again. So pairs count whose functions are on a
cycle of such steps. A fresh array that goes through both once has no step that leads back.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

LEAST_STEPS = 3
"""Pairs that make a step from one function to another: fewer may be chance."""
LEAST_EQUAL = 0.8
"""Of them, with the same value."""
MAX_PLACES = 500
"""Functions on lines that are looked at, those with the most steps."""

_Ids = NDArray[np.int64]
_Mask = NDArray[np.bool_]
_Place = tuple[int, int]


def in_cycles(first: tuple[_Ids, _Ids], again: tuple[_Ids, _Ids], among: _Mask, equal: _Mask, within: _Mask) -> _Mask:
    """True for pairs, out of ``among``, of two different places that lead to one another.

    A place is a line and a native function: ``first`` has those of the sampled accesses, ``again`` those of the next.
    Pairs ``within`` one call are steps as well: a call that reads an array in several functions.
    """
    found = np.zeros(len(among), np.bool_)
    chosen = np.flatnonzero(among | within)
    steps: Counter[tuple[_Place, _Place]] = Counter()
    same: Counter[tuple[_Place, _Place]] = Counter()
    of_pair: list[tuple[_Place, _Place]] = []
    for line, function, next_line, next_function, is_equal in zip(
        *(each[chosen].tolist() for each in (*first, *again, equal)), strict=True
    ):
        step = ((line, function), (next_line, next_function))
        of_pair.append(step)
        steps[step] += 1
        same[step] += is_equal
    leads_to: dict[_Place, set[_Place]] = {}
    for step, count in steps.most_common(MAX_PLACES):
        if same[step] >= LEAST_STEPS and same[step] >= LEAST_EQUAL * count:
            leads_to.setdefault(step[0], set()).add(step[1])
    reached = {place: _reached(place, leads_to) for place in leads_to}
    for row, (place, other) in zip(chosen.tolist(), of_pair, strict=True):
        found[row] = (
            among[row] and place != other and other in reached.get(place, ()) and place in reached.get(other, ())
        )
    return found


def _reached(place: _Place, leads_to: dict[_Place, set[_Place]]) -> set[_Place]:
    """All places that steps lead to from one."""
    reached: set[_Place] = set()
    waiting = [place]
    while waiting:
        for each in leads_to.get(waiting.pop(), ()):
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return reached
