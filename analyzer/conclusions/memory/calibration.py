"""Calibrates the sampled blocks to the exact counters, over time (``calibrate``) and at a moment (``settle``).

Between two rows of ``memory`` the bytes that a process allocated and released in a domain are known exactly, and so
are the sampled blocks themselves. Only the bytes that these stand for beyond themselves are an estimate. It is scaled
to the rest that the counters leave: apart for the blocks that outlive the rows (their sum is what was allocated, less
what was released, plus what older blocks gave back) and for those that do not (the rest of what was allocated). So
data that a program builds up is kept apart from the temporaries beside it. Only the division among sites is left to
chance.

What was held before recording began is in no sample, and is given back, too: as much of it as the samples show.

Factors are exp(lambda * mean), with lambda such that the sum is right: samples that were drawn coarsely take up most of
a difference, and those that were drawn finely hardly any. For small differences that is the regression estimator of
least variance (Deville and Saerndal 1992, calibration by raking).

At a moment, too, the counters are exact, and only the division among sites is uncertain. The error of the blocks is
shared out in proportion to variances, which leaves each site as certain as possible (the regression estimator: Cochran,
Sampling Techniques, 1977, chapter 7): a list that is held all the time and was sampled finely keeps its bytes, and
temporaries that come and go take up the difference.

Where more blocks are sampled than rows may be written, some rows stand for many blocks of their site
(``weight_bytes``, SPEC.md). Their sum is that of all the samples, but which of them are held at a moment is chance: so
those rows are less certain at a moment than in the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import distinct
from tachograph.format.enumerations import DOMAINS

from ...statistics.grouped_sums import summed
from .blocks import NEVER, Blocks, thinned
from .counters import Counters

_Mask = NDArray[np.bool_]

_ROUNDS = 20
"""Most rounds in which a difference is shared out again, when parts have come to the end of their range."""

CERTAIN = 2.0
"""Standard deviations beyond which samples show that something from before recording was released."""

_CLOSE = 1e-9
"""Relative error of a sum that is accepted."""


def moment_variance(blocks: Blocks, counted: Blocks, alive: _Mask, others: _Floats, sites: int) -> _Floats:
    """Variance that the blocks held at a moment add to the held bytes.

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
    """The variance of the bytes held at a moment from ``start_ns`` to ``end_ns`` that are in no row."""
    gone = ~alive & (blocks.death_ns != NEVER) & blocks.followed & (others > 0)
    lived = (blocks.death_ns[gone] - blocks.birth_ns[gone]) / max(end_ns - start_ns, 1)
    return float((blocks.bytes[gone] * others[gone] * np.minimum(lived, 1.0)).sum())


@dataclass(frozen=True, slots=True)
class Parts:
    """Blocks that count at a moment; ``missed`` is the variance of the bytes in no row (``missed_variance``)."""

    certain: _Floats
    beyond: _Floats
    variance: _Floats
    missed: float = 0.0

    def where(self, mask: _Mask, missed: float) -> Parts:
        """Only these blocks, with another ``missed``."""
        return Parts(self.certain[mask], self.beyond[mask], self.variance[mask], missed)


def settle(parts: Parts, least: float, most: float, highest: float) -> tuple[_Floats, float]:
    """Factors of each estimated part for a sum between two bounds, and bytes that are in no row.

    Factors are from 0 to ``highest``. Parts that come to the end of their range leave the rest to the others.
    """
    estimated, certain = float(parts.beyond.sum()), float(parts.certain.sum())
    factors = np.ones(len(parts.beyond))
    if estimated <= 0:
        return factors, 0.0
    target, unseen = min(max(certain + estimated, least), most) - certain, 0.0
    if target > estimated and parts.missed > 0:
        unseen = (target - estimated) * parts.missed / (parts.missed + float(parts.variance.sum()))
        target -= unseen
    if not 0.0 < target < highest * estimated:
        return np.full(len(factors), 0.0 if target <= 0.0 else highest), unseen
    shares = _shared(parts, target, highest)
    np.divide(shares, parts.beyond, out=factors, where=parts.beyond > 0)
    return factors, unseen


def _shared(parts: Parts, target: float, highest: float) -> _Floats:
    """The estimated parts, changed in proportion to their variances until they add up to ``target``."""
    shares, most = parts.beyond.copy(), highest * parts.beyond
    free = (parts.beyond > 0) & (parts.variance > 0)
    for _ in range(_ROUNDS):
        difference = target - float(shares.sum())
        if abs(difference) <= _CLOSE * target:
            return shares
        if not free.any():
            break
        shares[free] += difference * parts.variance[free] / float(parts.variance[free].sum())
        free &= (shares > 0) & (shares < most)
        shares = np.clip(shares, 0.0, most)
    return np.asarray(shares * (target / float(shares.sum())), np.float64)


GROUP_SAMPLES = 20
"""Rows of the counters are taken together until so many samples are to be expected between them.

The groups depend on the counters alone and not on which blocks were drawn: a group that ended where a sample came would
favour the sites that allocate in busy times.
"""

MAX_GROUPS = 1000
"""Groups of a process and domain at most."""

MAX_FACTOR = 4.0
"""Chance hardly ever takes a group of that size further; beyond it, bytes are said to be in no sample."""

_SCALES = 64
_DYING, _KEPT = 0, 1

_Floats = NDArray[np.float64]
_Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The blocks with their estimated parts scaled, and the results of that.

    ``kept`` says of each block whether it outlived the rows between which it was born; ``unseen`` has by domain the
    bytes that no block stands for.
    """

    blocks: Blocks
    kept: NDArray[np.bool_]
    unseen: _Floats


def calibrate(blocks: Blocks, counters: Counters) -> Calibrated:
    """Scale the estimated parts of blocks; blocks born after the last row of the counters are left as they are."""
    factor = np.ones(len(blocks))
    kept = np.zeros(len(blocks), np.bool_)
    unseen = np.zeros(len(DOMAINS))
    flows, held_first = counters.since_start(counters.allocated), counters.before()
    for process in distinct(counters.process).tolist():
        rows = counters.of(process)
        allocated, freed = flows[rows], counters.freed[rows]
        own = blocks.of(process)
        own = own[blocks.birth_ns[own] <= counters.time_ns[rows[-1]]]
        # Older than the counters, which go on from those of an earlier window: what they stand for was scaled there.
        older, own = (own[(blocks.birth_ns[own] < counters.time_ns[rows[0]]) == old] for old in (True, False))
        for domain in range(len(DOMAINS)):
            mine = own[blocks.domain[own] == domain]
            last = groups(allocated[:, domain], _worth(blocks.beyond[mine]))
            exact, given_back = (_between(flows[:, domain], last) for flows in (allocated, freed))
            sample = _Sample.of(blocks, mine, int(counters.time_ns[rows[0]]), counters.time_ns[rows[last]])
            before = older[blocks.domain[older] == domain]
            held = before[blocks.death_ns[before] > counters.time_ns[rows[0]]]
            older_blocks = _Older.of(blocks, held, counters.time_ns[rows[last]])
            given_back = given_back - _of_before(sample, exact, given_back, older_blocks, held_first.get(process, 0.0))
            factors = _factors(sample, exact, given_back, older_blocks)
            kept[before] = True
            factor[mine] = factors[sample.birth, sample.stratum, sample.scale]
            kept[mine] = sample.stratum == _KEPT
            estimated = float((blocks.certain[mine] + blocks.beyond[mine] * factor[mine]).sum())
            unseen[domain] += max(0.0, float(exact.sum()) - estimated)
    return Calibrated(blocks.scaled(factor), kept, unseen)


def groups(flows: _Floats, samples: int) -> _Ids:
    """The last rows of groups, each of which should have ``GROUP_SAMPLES`` of ``samples`` in it."""
    reached = np.cumsum(flows)
    total = float(reached[-1])
    least_bytes = total * max(GROUP_SAMPLES / max(samples, 1), 1 / MAX_GROUPS)
    last: list[int] = []
    done = 0.0
    while 0 < least_bytes <= total - done:
        # The row that completes a group belongs to it: a small one before a large one is never left by itself.
        last.append(min(int(np.searchsorted(reached, done + least_bytes)), len(reached) - 1))
        done = float(reached[last[-1]])
    return np.array([*last[:-1], len(flows) - 1], np.int64)


def _worth(beyond: _Floats) -> int:
    """Effective number of samples (Kish 1965): samples of the start-up stand for little."""
    squares = float((beyond**2).sum())
    return min(len(beyond), round(float(beyond.sum()) ** 2 / squares)) if squares > 0 else len(beyond)


def _between(flows: _Floats, last: _Ids) -> _Floats:
    """The sums of ``flows`` by group."""
    return np.diff(np.cumsum(flows)[last], prepend=0.0)


@dataclass(frozen=True, slots=True)
class _Sample:
    """The blocks of a process and domain, by the groups of their birth and death."""

    birth: _Ids
    death: _Ids
    stratum: _Ids
    scale: _Ids
    certain: _Floats
    beyond: _Floats
    variance: _Floats
    groups: int
    missed: _Floats
    """Variance of the bytes that outlive each group and are in no row."""

    @classmethod
    def of(cls, blocks: Blocks, mine: _Ids, start_ns: int, ends_ns: _Ids) -> _Sample:
        birth, death = (np.searchsorted(ends_ns, times[mine]) for times in (blocks.birth_ns, blocks.death_ns))
        # Of a block that was not followed only the birth is known; the counters have its release somewhere.
        kept = (death > birth) & blocks.followed[mine]
        # Of those of a site that die young some outlive their group, by chance those that have a row or others.
        lived = blocks.death_ns[mine] - blocks.birth_ns[mine]
        long = np.maximum(np.diff(ends_ns, prepend=start_ns), 1)
        missed = np.where(kept, 0.0, blocks.bytes[mine] * thinned(blocks)[mine] * np.minimum(lived / long[birth], 1.0))
        return cls(
            birth.astype(np.int64),
            np.where(kept, death, len(ends_ns)).astype(np.int64),
            np.where(kept, _KEPT, _DYING),
            blocks.scale[mine].astype(np.int64),
            blocks.certain[mine],
            blocks.beyond[mine],
            blocks.variance[mine],
            len(ends_ns),
            summed(birth, missed, len(ends_ns)),
        )


@dataclass(frozen=True, slots=True)
class _Older:
    """Blocks that were held when the counters began, by the group of their death."""

    death: _Ids
    bytes: _Floats
    variance: _Floats

    @classmethod
    def of(cls, blocks: Blocks, mine: _Ids, ends_ns: _Ids) -> _Older:
        mine = mine[blocks.followed[mine]]
        death = np.searchsorted(ends_ns, blocks.death_ns[mine]).astype(np.int64)
        return cls(death, blocks.certain[mine] + blocks.beyond[mine], blocks.variance[mine])


def _of_before(sample: _Sample, exact: _Floats, given_back: _Floats, older: _Older, before: float) -> _Floats:
    """Bytes of each group that were held before recording began and were given back, at most ``before``.

    Nothing, unless the samples show it: where more of them is held at the end than the counters leave room for, by more
    than chance does. Then it went where more was given back than blocks in the sample make up.
    """
    own, gone = sample.certain + sample.beyond, older.death < sample.groups
    alive = (sample.stratum == _KEPT) & (sample.death >= sample.groups)
    released = float(own[alive].sum() - older.bytes[gone].sum() - exact.sum() + given_back.sum())
    variance = float(sample.variance[alive].sum() + older.variance[gone].sum() + sample.missed.sum())
    if before <= 0 or released <= CERTAIN * math.sqrt(variance):
        return np.zeros(sample.groups)
    # Blocks that die in the group of their birth are given back there.
    death = np.where(sample.stratum == _KEPT, sample.death, sample.birth)
    known = summed(death[~alive], own[~alive], sample.groups) + summed(
        older.death[gone], older.bytes[gone], sample.groups
    )
    surplus = np.maximum(given_back - known, 0.0)
    total = float(surplus.sum())
    return np.asarray(surplus * (min(released, before, total) / total if total > 0 else 0.0), np.float64)


def _factors(sample: _Sample, exact: _Floats, given_back: _Floats, older: _Older) -> _Floats:
    """The factors by group, stratum and scale; ``older`` are blocks from before the counters, which are freed too."""
    cell = (sample.birth * 2 + sample.stratum) * _SCALES + sample.scale
    shape = (sample.groups, 2, _SCALES)
    certain, rests, variances = (
        summed(cell, values, sample.groups * 2 * _SCALES).reshape(shape)
        for values in (sample.certain, sample.beyond, sample.variance)
    )
    leaving = _Leaving(sample)
    leaving.add_older(older)
    factors = np.ones(shape)
    for group in range(sample.groups):
        if not certain[group].any():
            continue
        old, uncertain = leaving.old(group)
        certain_sums = certain[group].sum(axis=1)
        estimated = certain_sums + rests[group].sum(axis=1)
        variance = float(variances[group, _KEPT].sum())
        # What older blocks gave back is an estimate itself, and blocks that outlive the group may be in no row: the
        # counters correct the new blocks by their part only.
        kept_exact = exact[group] - given_back[group] + old
        weight = variance / (variance + uncertain + float(sample.missed[group])) if variance > 0 else 0.0
        outliving = float(estimated[_KEPT] + (kept_exact - estimated[_KEPT]) * weight)
        outliving = min(max(outliving, float(certain_sums[_KEPT])), float(exact[group] - certain_sums[_DYING]))
        for stratum, target in ((_KEPT, outliving), (_DYING, float(exact[group]) - outliving)):
            used = np.flatnonzero(rests[group, stratum] > 0)
            rest = max(0.0, target - float(certain_sums[stratum]))
            factors[group, stratum, used] = raking(rests[group, stratum, used].tolist(), used.tolist(), rest)
        leaving.add(group, factors[group, _KEPT])
    return factors


class _Leaving:
    """Bytes that blocks which outlived the group of their birth give back, by the group of their death."""

    def __init__(self, sample: _Sample) -> None:
        chosen = np.flatnonzero((sample.stratum == _KEPT) & (sample.death < sample.groups))
        key = (sample.birth[chosen] * sample.groups + sample.death[chosen]) * _SCALES + sample.scale[chosen]
        cells, index = np.unique(key, return_inverse=True)
        self._certain, self._rest, self._variance = (
            summed(index, values[chosen], len(cells)) for values in (sample.certain, sample.beyond, sample.variance)
        )
        pair, self._scale = np.divmod(cells, _SCALES)
        birth, self._death = np.divmod(pair, max(sample.groups, 1))
        self._first = np.searchsorted(birth, np.arange(sample.groups + 1))
        self._old, self._uncertain = np.zeros(sample.groups), np.zeros(sample.groups)

    def old(self, group: int) -> tuple[float, float]:
        """Bytes that older blocks give back in a group, and their variance."""
        return float(self._old[group]), float(self._uncertain[group])

    def add_older(self, older: _Older) -> None:
        """Adds blocks that are older than all groups, as they are."""
        going = older.death < len(self._old)
        np.add.at(self._old, older.death[going], older.bytes[going])
        np.add.at(self._uncertain, older.death[going], older.variance[going])

    def add(self, group: int, factors: _Floats) -> None:
        """Adds the blocks that were born in a group, now that their factors are known."""
        rows = slice(self._first[group], self._first[group + 1])
        factor = factors[self._scale[rows]]
        np.add.at(self._old, self._death[rows], self._certain[rows] + self._rest[rows] * factor)
        np.add.at(self._uncertain, self._death[rows], self._variance[rows] * factor**2)


def raking(rests: list[float], scales: list[int], target: float) -> list[float]:
    """Factors min(exp(lambda * 2^scale), MAX_FACTOR) with which the rests add up to ``target``, if they can."""
    total = sum(rests)
    if not rests or len(rests) == 1 or target <= 0 or target >= MAX_FACTOR * total:
        return [min(max(target, 0.0) / total, MAX_FACTOR)] * len(rests) if rests else []
    means = [2.0 ** (scale - max(scales)) for scale in scales]
    most = math.log(MAX_FACTOR)
    factors = [1.0] * len(rests)
    # For small differences the solution is nearly this.
    step = (target - total) / sum(rest * mean for rest, mean in zip(rests, means, strict=True))
    low, high, strength = -math.inf, math.inf, step
    for _ in range(100):
        factors = [math.exp(max(-700.0, min(strength * mean, most))) for mean in means]
        reached = sum(rest * factor for rest, factor in zip(rests, factors, strict=True))
        if abs(reached - target) <= 1e-9 * total:
            break
        low, high = (strength, high) if reached < target else (low, strength)
        if math.isinf(low) or math.isinf(high):
            # Outwards until the solution lies between two; then by halves.
            strength = 2 * strength if (strength > 0) == (reached < target) and strength else (target - reached) / total
        else:
            strength = (low + high) / 2
    return factors


def ratio_factors(index: _Ids, certain: _Floats, rest: _Floats, exact: _Floats) -> _Floats:
    """Factors of the estimated parts of each group that make the sums exact."""
    certain_sums, estimated = summed(index, certain, len(exact)), summed(index, rest, len(exact))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = (exact - certain_sums) / estimated
    return np.where(estimated > 0, np.clip(factors, 0.0, MAX_FACTOR), 1.0)
