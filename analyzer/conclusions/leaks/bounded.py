"""Groups of blocks that are as level as a cache: entries make room for others, and what is held has no trend.

The level of a group is what its lasting blocks hold. It may be a sawtooth, as entries may make room one by one or many
at once: averages are compared, and the lowest level must not be near nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...statistics.grouped_sums import summed

_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]

STEPS = 100
"""Parts of the run in which levels are compared."""
AT_ONCE = 3
"""Steps within which a whole batch goes. Lasting blocks live longer: what goes in them was there at their beginning."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """Blocks that live for more than ``AT_ONCE`` steps of the run. Times are seconds since it began."""

    group: NDArray[np.int64]
    groups: int
    birth: _Floats
    death: _Floats
    weight: _Floats
    duration: float


def are_bounded(
    blocks: Lasting, begin: _Floats, cut: float, *, level: float, trend: float, chance: float, rounds: int
) -> _Mask:
    """True for groups whose blocks others replace at a level: judged from ``begin`` of each to ``cut``.

    ``level``: least share of the highest level that stays at all times and through each moment, and least share that
    was replaced, in the last two thirds.
    ``trend``: greatest change of the average from one of these thirds to the next, as a share of the larger.
    ``chance``: greatest such change in standard deviations of what comes and goes at random.
    ``rounds``: fewest moments at which entries made room.
    """
    born, died = _by_step(blocks, cut)
    # What lives at the end of each step.
    alive = np.cumsum(born - died, axis=1)
    edges = blocks.duration * np.arange(1, STEPS + 1) / STEPS
    third = np.floor((edges - begin[:, None]) * 3 / np.maximum(cut - begin, 1e-12)[:, None])
    middle, last = third == 1, (third >= 2) & (edges <= cut)
    judged = middle | last
    before, after = (_average(alive, each) for each in (middle, last))
    top = np.max(np.where(judged, alive, 0.0), axis=1)
    lowest = np.min(np.where(judged, alive, np.inf), axis=1)
    change = np.abs(after - before)
    spread = _spread(blocks, (begin + (cut - begin) * 2 / 3)[blocks.group], cut)
    # What goes all at once, a batch for the next one, is no cache.
    following = np.cumsum(np.pad(died, ((0, 0), (1, AT_ONCE))), axis=1)
    going = following[:, AT_ONCE + 1 :] - following[:, 1 : STEPS + 1]
    stays = np.all(~judged | (going <= (1 - level) * alive), axis=1)
    replaced = np.sum(np.where(judged, died, 0.0), axis=1)
    moments = np.count_nonzero(judged & (died > 0), axis=1)
    even = (change <= trend * np.maximum(before, after)) & (change <= chance * spread)
    return np.asarray(
        even & stays & (lowest >= level * top) & (replaced >= level * top) & (top > 0) & (moments >= rounds), np.bool_
    )


def _average(levels: _Floats, mask: _Mask) -> _Floats:
    """Average over the steps of ``mask``; 0 without any."""
    return np.asarray(np.sum(np.where(mask, levels, 0.0), axis=1) / np.maximum(mask.sum(axis=1), 1), np.float64)


def _by_step(blocks: Lasting, cut: float) -> tuple[_Floats, _Floats]:
    """Weights of births and deaths, by group and step."""

    def table(time: _Floats) -> _Floats:
        mask = time <= cut
        step = np.ceil(time[mask] * STEPS / blocks.duration).astype(np.int64) - 1
        cell = blocks.group[mask] * STEPS + np.clip(step, 0, STEPS - 1)
        return summed(cell, blocks.weight[mask], blocks.groups * STEPS).reshape(blocks.groups, STEPS)

    return table(blocks.birth), table(blocks.death)


def _spread(blocks: Lasting, earlier: _Floats, later: float) -> _Floats:
    """Standard deviation of the change from one time to another, of blocks that come and go at random.

    Each block that is held at one of them only counts, with its weight: both what is sampled and what comes are chance.
    """
    before = (blocks.birth <= earlier) & (blocks.death > earlier)
    after = (blocks.birth <= later) & (blocks.death > later)
    changed = before != after
    return np.sqrt(summed(blocks.group[changed], blocks.weight[changed] ** 2, blocks.groups))
