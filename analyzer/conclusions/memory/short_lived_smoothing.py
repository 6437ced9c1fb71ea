"""Blocks as they count for what is held at a moment.

A block that dies young and was sampled stands for many, which lived and died one after the other, hardly ever
together. Counted as if they had all been held at once it would be a spike, and the highest point of a curve of such
spikes says more about chance than about memory. So what such a block stands for is spread over the time in which it
and its nearest in the sample were born, as long as any of them lived: its bytes, times the part of that time that it
lived.

Those that a program builds one upon the other and drops in one go are different: the last of them live for a moment,
too, but all of them together. So a block is spread only if some of its nearest, before it and after it, were over
before the other of the two was born; or if it lived for next to nothing of the time between two births.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .blocks import NEVER, Blocks

YOUNG_NS = 2_000_000_000
"""Blocks that lived longer are not spread: those that they stand for lived long as well, and so together."""

UNCERTAIN = 0.05
"""Blocks that stand for less than this part of themselves beyond themselves are exact, and are not spread."""

NEIGHBOURS = 4
"""Samples of the same site before and after a block whose births say over how long it is spread."""

APART = 0.25
"""A block is spread if this part of its neighbours, on either side, did not live at the same time."""

AT_ONCE = 0.02
"""Blocks that lived for less than this part of the time between two births near them are spread in any case."""

ALONE_NS = 1_000_000_000
"""Blocks are spread over no longer than this, and over just this if nothing near is known."""


def smooth_short_lived(blocks: Blocks, callers: NDArray[np.int64]) -> Blocks:
    """The same blocks, with those spread that stand for many short-lived ones.

    ``callers`` has by site who called its function. The only block of its site is spread over the time in which others
    of the same function were born: it stands for as many as they do.
    """
    lived = np.where(blocks.death_ns == NEVER, YOUNG_NS, blocks.death_ns - blocks.birth_ns)
    chosen = np.flatnonzero((lived < YOUNG_NS) & (blocks.beyond > UNCERTAIN * blocks.certain) & blocks.followed)
    if not len(chosen):
        return blocks
    order = chosen[np.argsort(blocks.site[chosen], kind="stable")]
    birth, site = blocks.birth_ns[order], blocks.site[order]
    first = np.searchsorted(site, site, side="left")
    last = np.searchsorted(site, site, side="right") - 1
    place = np.arange(len(order))
    before, after = np.maximum(place - NEIGHBOURS, first), np.minimum(place + NEIGHBOURS, last)
    steps = after - before
    # From a birth to the last of the neighbours after it, as all those near say; near the ends there are fewer.
    span = (birth[after] - birth[before]) * (NEIGHBOURS / np.maximum(steps, 1))
    alone = steps == 0
    span = np.where(alone, _births_near(blocks, order, alone, callers), np.minimum(span, ALONE_NS))
    width = np.maximum(span, lived[order]).astype(np.int64)
    gap = span / NEIGHBOURS
    apart = _apart(birth, blocks.death_ns[order], before, after) | (lived[order] < AT_ONCE * gap)
    width = np.where(apart, width, lived[order])
    part = np.where(width > 0, lived[order] / np.maximum(width, 1), 1.0)

    death, factor = blocks.death_ns.copy(), np.ones(len(blocks))
    # In the middle this is hardly ever shorter; at the end nothing is held when the last of the neighbours has died.
    highest = _highest_near(blocks.death_ns[order], before, after)
    death[order] = np.where(apart, np.minimum(birth + width, highest), blocks.death_ns[order])
    factor[order] = part
    return replace(
        blocks,
        death_ns=death,
        certain=blocks.certain * factor,
        beyond=blocks.beyond * factor,
        variance=blocks.variance * factor**2,
    )


def _apart(
    birth: NDArray[np.int64], death: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """By place, whether enough of the neighbours lived at other times, both of those before and of those after."""
    place = np.arange(len(birth))
    over, ahead = np.zeros(len(birth)), np.zeros(len(birth))
    for step in range(1, NEIGHBOURS + 1):
        earlier, later = np.maximum(place - step, 0), np.minimum(place + step, len(birth) - 1)
        over += (place - step >= before) & (death[earlier] <= birth)
        ahead += (place + step <= after) & (death <= birth[later])
    # A side without neighbours says nothing against it.
    return np.asarray((over >= APART * (place - before)) & (ahead >= APART * (after - place)), np.bool_)


def _births_near(
    blocks: Blocks, order: NDArray[np.int64], wanted: NDArray[np.bool_], callers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By place, where it is wanted, the time between the births of the first and last near it in the same function."""
    found = np.full(len(order), ALONE_NS)
    function, birth = callers[blocks.site[order]], blocks.birth_ns[order]
    sorting = np.lexsort((birth, function))
    function, birth = function[sorting], birth[sorting]
    for place in np.flatnonzero(wanted[sorting]).tolist():
        low, high = (int(np.searchsorted(function, function[place], side=side)) for side in ("left", "right"))
        own = birth[low:high]
        first = int(np.searchsorted(own, birth[place] - ALONE_NS, side="left"))
        last = int(np.searchsorted(own, birth[place] + ALONE_NS, side="right")) - 1
        if last > first:
            found[sorting[place]] = min(ALONE_NS, int(own[last] - own[first]))
    return found


def _highest_near(values: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """By place, the highest of the values from ``before`` to ``after``, which are no further than the neighbours."""
    place = np.arange(len(values))
    highest = values.copy()
    for step in range(1, NEIGHBOURS + 1):
        for near in (np.maximum(place - step, before), np.minimum(place + step, after)):
            highest = np.maximum(highest, values[near])
    return highest
