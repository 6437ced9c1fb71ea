"""Blocks as they count for what is held at a moment.

A block that dies young and was sampled stands for many, which lived and died one after the other, hardly ever
together. Counted as if they had all been held at once it would be a spike, and the highest point of a curve of such
spikes says more about chance than about memory. So what such a block stands for is spread over the time in which it
and its nearest in the sample were born, as long as any of them lived: its bytes, times the part of that time that it
lived.
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

ALONE_NS = 1_000_000_000
"""Blocks are spread over no longer than this, and over just this if they are the only ones of their site."""


def lasting(blocks: Blocks) -> Blocks:
    """The same blocks, with those spread that stand for many short-lived ones."""
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
    span = np.where(steps > 0, np.minimum(span, ALONE_NS), ALONE_NS)
    width = np.maximum(span, lived[order]).astype(np.int64)
    part = np.where(width > 0, lived[order] / np.maximum(width, 1), 1.0)

    death, factor = blocks.death_ns.copy(), np.ones(len(blocks))
    # In the middle this is hardly ever shorter; at the end nothing is held when the last of the neighbours has died.
    death[order] = np.minimum(birth + width, _highest_near(blocks.death_ns[order], before, after))
    factor[order] = part
    return replace(
        blocks,
        death_ns=death,
        certain=blocks.certain * factor,
        beyond=blocks.beyond * factor,
        variance=blocks.variance * factor**2,
    )


def _highest_near(values: NDArray[np.int64], before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """By place, the highest of the values from ``before`` to ``after``, which are no further than the neighbours."""
    place = np.arange(len(values))
    highest = values.copy()
    for step in range(1, NEIGHBOURS + 1):
        for near in (np.maximum(place - step, before), np.minimum(place + step, after)):
            highest = np.maximum(highest, values[near])
    return highest
