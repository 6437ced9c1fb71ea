"""Makes what sampled blocks say of a moment agree with what the counters say of it, and says how sure it is then.

The counters are exact, so only the division among sites is uncertain. What the blocks are off by is shared out in
proportion to variances, which leaves each site as sure as it can be (the regression estimator: Cochran, Sampling
Techniques, 1977, chapter 7): a list that is held all the time and was sampled finely keeps its bytes, and temporaries
that come and go take up the difference.

Where more blocks are sampled than rows may be written, some rows stand for many blocks of their place
(``weight_bytes``, SPEC.md). Their sum is that of all the samples, but which of them are held at a moment is chance: so
those rows are less sure of a moment than of the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...samples.accumulate import summed
from .blocks import NEVER, Blocks

_Floats = NDArray[np.float64]
_Mask = NDArray[np.bool_]

_ROUNDS = 20
"""How often a difference is shared out again at most, when parts have come to the end of their range."""

_CLOSE = 1e-9
"""Part of a sum that it may be off by."""


def moment_variance(blocks: Blocks, counted: Blocks, alive: _Mask, others: _Floats, sites: int) -> _Floats:
    """What the blocks that are held at a moment add to the variance of what is held.

    ``counted`` are the blocks as they count at a moment, ``others`` is ``thinned``. Of a site that holds all it has
    allocated, all rows are held, whichever there are; of one that holds a part p of it, a row is held by chance p.
    """
    held = summed(counted.site[alive], counted.bytes[alive], sites)
    whole = summed(blocks.site, blocks.bytes, sites)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(whole > 0, np.clip(held / whole, 0.0, 1.0), 1.0)
        spread = np.where(blocks.bytes > 0, counted.bytes / blocks.bytes, 1.0)[alive]
    chance = counted.bytes[alive] * others[alive] * spread * (1.0 - part[blocks.site[alive]])
    return np.asarray(counted.variance[alive] + chance, np.float64)


def missed_variance(blocks: Blocks, alive: _Mask, others: _Floats, start_ns: int, end_ns: int) -> float:
    """The variance of what is held at a moment of the time from ``start_ns`` to ``end_ns``, but is in no row."""
    gone = ~alive & (blocks.death_ns != NEVER) & blocks.followed & (others > 0)
    lived = (blocks.death_ns[gone] - blocks.birth_ns[gone]) / max(end_ns - start_ns, 1)
    return float((blocks.bytes[gone] * others[gone] * np.minimum(lived, 1.0)).sum())


@dataclass(frozen=True, slots=True)
class Parts:
    """Blocks that count at a moment; ``missed`` is the variance of what is in no row (``missed_variance``)."""

    certain: _Floats
    beyond: _Floats
    variance: _Floats
    missed: float = 0.0

    def where(self, mask: _Mask, missed: float) -> Parts:
        """Only these, and what else there may be."""
        return Parts(self.certain[mask], self.beyond[mask], self.variance[mask], missed)


def settle(parts: Parts, least: float, most: float, highest: float) -> tuple[_Floats, float]:
    """By what each estimated part must be multiplied for a sum between two bounds, and bytes that are in no row.

    Factors are from 0 to ``highest``. Parts that come to the end of their range leave the rest to the others.
    """
    estimated, known = float(parts.beyond.sum()), float(parts.certain.sum())
    factors = np.ones(len(parts.beyond))
    if estimated <= 0:
        return factors, 0.0
    wanted, unseen = min(max(known + estimated, least), most) - known, 0.0
    if wanted > estimated and parts.missed > 0:
        unseen = (wanted - estimated) * parts.missed / (parts.missed + float(parts.variance.sum()))
        wanted -= unseen
    if not 0.0 < wanted < highest * estimated:
        return np.full(len(factors), 0.0 if wanted <= 0.0 else highest), unseen
    shares = _shared(parts, wanted, highest)
    np.divide(shares, parts.beyond, out=factors, where=parts.beyond > 0)
    return factors, unseen


def _shared(parts: Parts, wanted: float, highest: float) -> _Floats:
    """The estimated parts, changed in proportion to their variances until they add up to what is wanted."""
    shares, most = parts.beyond.copy(), highest * parts.beyond
    free = (parts.beyond > 0) & (parts.variance > 0)
    for _ in range(_ROUNDS):
        difference = wanted - float(shares.sum())
        if abs(difference) <= _CLOSE * wanted:
            return shares
        if not free.any():
            break
        shares[free] += difference * parts.variance[free] / float(parts.variance[free].sum())
        free &= (shares > 0) & (shares < most)
        shares = np.clip(shares, 0.0, most)
    return np.asarray(shares * (wanted / float(shares.sum())), np.float64)
