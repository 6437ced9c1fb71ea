"""The definitions of a leak, with their input (``Histories``) and output (``Verdicts``).

A definition is an object that can be replaced when a recording is analyzed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.frame import take_rows
from ...recording.question_options import LeakRule
from ...statistics.grouped_sums import counted, summed
from .bounded import Lasting, are_bounded

_Floats = NDArray[np.float64]


def never(thread: int, begin_s: float, end_s: float) -> float:
    """Answers that a thread was held up for 0 s."""
    del thread, begin_s, end_s
    return 0.0


@dataclass(frozen=True, slots=True)
class Histories:
    """The followed blocks of the window, by group (a line, or a call path to one), in the order of birth.

    Times are seconds since the beginning of the window. A block that was still held at the end has the death ``inf``.
    """

    group: NDArray[np.int64]
    groups: int
    thread: NDArray[np.int64]
    size: _Floats
    """Bytes that the block occupies."""
    birth: _Floats
    death: _Floats
    weight: _Floats
    """Bytes that it stands for."""
    variance: _Floats
    duration: float
    """Seconds from the beginning of the window to its end, or to where the interpreter began to shut down."""
    growth: float
    """Growth of the footprint over the window (regression slope times duration), as a share of its highest."""
    peak: float
    """The highest footprint, in bytes."""
    importing: NDArray[np.bool_]
    """True if a block was allocated while a module was being imported."""
    held_up: Callable[[int, float, float], float] = never
    """Seconds between two times in which a thread was ready to run and did not, or was stopped."""

    def counted(self, mask: NDArray[np.bool_]) -> _Floats:
        """Number of blocks of ``mask`` in each group."""
        return counted(self.group[mask], self.groups)

    def weighed(self, mask: NDArray[np.bool_], values: _Floats | None = None) -> _Floats:
        """Sum of ``values`` (None: of the weights) over the blocks of ``mask`` in each group."""
        chosen = self.weight if values is None else values
        return summed(self.group[mask], chosen[mask], self.groups)

    def unhindered(self, group: int, begin: float, end: float) -> float:
        """Seconds between two times in which the thread that allocated most blocks of a group was not held up."""
        thread, count = np.unique(self.thread[self.group == group], return_counts=True)
        return end - begin - self.held_up(int(thread[np.argmax(count)]), begin, end)

    def regrouped(self, group: NDArray[np.int64], groups: int) -> Histories:
        """The same blocks in other groups; those of group -1 are left out."""
        kept = group >= 0
        return replace(take_rows(self, kept), group=group[kept], groups=groups)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The answer: one entry per group in every array."""

    mallocs: _Floats
    frees: _Floats
    likelihood: _Floats
    """0..1; NaN without evidence from any block."""
    leaking: NDArray[np.bool_]
    leaked: _Floats
    """Bytes that were not given back."""
    beyond: _Floats
    """The part of ``leaked`` that is an estimate, and its variance."""
    variance: _Floats
    blocks: _Floats
    """Sampled blocks behind ``leaked``."""
    first: _Floats
    """When the first block of the group was allocated, in seconds."""
    elapsed: _Floats
    """Seconds in which ``leaked`` accrued; the rate is their quotient."""
    bounded: NDArray[np.bool_] | None = None
    """True for groups that hold a level of blocks that others replace, as a cache does; None if that is not judged."""


def likelihood(mallocs: _Floats, frees: _Floats) -> _Floats:
    """1 - (frees + 1) / (mallocs - frees + 2), clipped to 0..1 (Scalene 2023, section 3.4); NaN without mallocs."""
    score = np.clip(1 - (frees + 1) / (mallocs - frees + 2), 0.0, 1.0)
    return np.where(mallocs > 0, score, np.nan)


LIKELIHOOD = 0.95
GROWTH = 0.01
"""The paper's filters: sites below this likelihood, and programs that grow by less than this, have no leaks."""

EXACT = 0.05
"""A block whose estimated part is less than this share of it stands for itself."""

NEAREST = 4
"""Number of blocks before and after a release that are searched for the larger one."""

TAIL = 0.1
"""Part of the run at its end whose blocks are pending: they are too recent to be judged."""


class LeakDefinition(Protocol):
    """Decides which groups of blocks leak."""

    @property
    def name(self) -> str:
        """Name of the definition for ``--leaks``."""
        ...

    def judge(self, histories: Histories) -> Verdicts:
        """The verdict on each group."""
        ...


@dataclass(frozen=True, slots=True)
class PaperScore:
    """The score of the paper (Scalene 2023, section 3.4), with the tail left out.

    Every followed block counts as a malloc, and as a free if it was given back before the end. A line whose score is
    high enough leaks, if the program as a whole grows.
    """

    name: str = LeakRule.PAPER
    tail: float = TAIL

    def judge(self, histories: Histories) -> Verdicts:
        """The verdict on each group."""
        old = histories.birth <= histories.duration * (1 - self.tail)
        kept = old & np.isinf(histories.death)
        mallocs, frees = histories.counted(old), histories.counted(old & ~kept)
        score = likelihood(mallocs, frees)
        leaking = (score >= LIKELIHOOD) & (histories.growth >= GROWTH)
        elapsed = np.full(histories.groups, histories.duration * (1 - self.tail))
        return _verdicts(histories, mallocs, frees, score, leaking, kept, elapsed)


@dataclass(frozen=True, slots=True)
class Growth:
    """The paper's score for blocks that had time to be given back, and growth that never stops.

    See docs/explanation/leaks.md for why each condition is there.
    """

    name: str = LeakRule.DEFAULT
    tail: float = TAIL
    grown_up: float = 0.1
    """A block that lives for less than this part of the run is a temporary, and says nothing about a leak."""
    moved_within: float = 0.05
    """Seconds within which a container has moved to its larger block."""
    container: float = 8.0
    """A block so many times as large as most kept ones is the container, and not its contents."""
    least_third: float = 0.12
    """Least share of the kept bytes in each third of a site's time (even growth: a third)."""
    least_net: float = 0.5
    """Share of the bytes kept in the last third by which the site must have grown in it."""
    least_share: float = 0.01
    """Least share of the highest footprint that the kept bytes must have."""
    least_s: float = 1.0
    """Seconds for which a site must have gone on: what is built up in less is no evidence of what comes later.

    Time in which its thread was held up by other programs is none.
    """
    level: float = 0.25
    """Part of its highest level that a cache holds at all times, and that others replace in its last two thirds."""
    trend: float = 1 / 3
    """Change of what a cache holds from one of these thirds to the next. What only grows changes by 2/5."""
    chance: float = 2.0
    """Standard deviations by which a level changes without a trend."""
    entries: int = 8
    """Fewest blocks that a cache holds."""
    rounds: int = 3
    """Fewest moments at which entries of a cache made room: twice may be by chance at the same level."""

    def judge(self, histories: Histories) -> Verdicts:
        """The verdict on each group."""
        duration = histories.duration
        cut = duration * (1 - self.tail)
        old = histories.birth <= cut
        kept = old & np.isinf(histories.death)
        lived = np.minimum(histories.death, duration) - histories.birth
        grown_up = old & (lived >= self.grown_up * duration)
        freed = grown_up & ~kept

        first = _first(histories)
        begin = np.where(np.isinf(first), cut, first)
        span = np.maximum(cut - begin, 0.0)
        third = np.clip((histories.birth - begin[histories.group]) * 3, 0.0, None)
        third = np.minimum(third / np.maximum(span[histories.group], 1e-12), 2.0).astype(np.int64)
        parts = [kept & (third == number) for number in range(3)]
        # Bytes, because some blocks are sampled more finely than others; and more than one block, because of chance.
        survived = np.stack([histories.weighed(part) for part in parts])
        counts = np.stack([histories.counted(part) for part in parts])
        goes_on = ((survived >= self.least_third * survived.sum(axis=0)) & (counts >= 2)).all(axis=0)

        last_third = (begin + span * 2 / 3)[histories.group]
        lost = grown_up & (histories.death >= last_third) & np.isfinite(histories.death)
        gained = grown_up & (third == 2)
        net = histories.weighed(gained) - histories.weighed(lost)
        grows = net >= self.least_net * histories.weighed(kept & (third == 2))

        moved = moves(histories, freed & (goes_on & grows)[histories.group], self.moved_within)
        # The larger block that a container moved to may not be in the sample: its size tells the container as well.
        moved |= freed & (histories.size > self.container * _typical(histories, kept)[histories.group])
        mallocs, frees = histories.counted(grown_up & ~moved), histories.counted(freed & ~moved)
        score = likelihood(mallocs, frees)
        leaked = histories.weighed(kept)
        leaking = (score >= LIKELIHOOD) & (histories.growth >= GROWTH) & goes_on & grows
        leaking &= (
            (leaked >= self.least_share * histories.peak) & (span >= 2 * self.tail * duration) & (span >= self.least_s)
        )
        # What importing modules leaves behind (code, types, caches of the interpreter) is there to stay.
        leaking &= histories.weighed(kept & histories.importing) < 0.5 * leaked
        leaking = self._unhindered(histories, leaking, begin, cut)
        # The first block is where the clock starts: n blocks lie in n - 1 steps of it.
        blocks = histories.counted(kept)
        elapsed = span * blocks / np.maximum(blocks - 1, 1)
        verdicts = _verdicts(histories, mallocs, frees, score, leaking, kept, elapsed)
        lasting = histories.counted(grown_up & (histories.death <= cut)) > 0
        bounded = lasting & (histories.counted(kept) >= self.entries) & ~leaking & (span >= self.least_s)
        bounded[bounded] = self._bounded(histories, grown_up, bounded, begin, cut)
        return self._with_containers(histories, replace(verdicts, bounded=bounded), begin, span)

    def _unhindered(
        self, histories: Histories, leaking: NDArray[np.bool_], begin: _Floats, cut: float
    ) -> NDArray[np.bool_]:
        """``leaking``, without groups whose thread was held up for most of their time."""
        result = leaking.copy()
        for group in np.flatnonzero(leaking).tolist():
            result[group] = histories.unhindered(group, float(begin[group]), cut) >= self.least_s
        return result

    def _bounded(
        self,
        histories: Histories,
        lasting: NDArray[np.bool_],
        candidates: NDArray[np.bool_],
        begin: _Floats,
        cut: float,
    ) -> NDArray[np.bool_]:
        """True for those of the ``candidates`` that are as level as a cache."""
        numbers = np.cumsum(candidates) - 1
        mine = lasting & candidates[histories.group]
        blocks = Lasting(
            group=numbers[histories.group[mine]],
            groups=int(np.count_nonzero(candidates)),
            birth=histories.birth[mine],
            death=histories.death[mine],
            weight=histories.weight[mine],
            duration=histories.duration,
        )
        return are_bounded(
            blocks, begin[candidates], cut, level=self.level, trend=self.trend, chance=self.chance, rounds=self.rounds
        )

    def _with_containers(self, histories: Histories, verdicts: Verdicts, begin: _Floats, span: _Floats) -> Verdicts:
        """The verdicts, with groups that hold one block each that grows where it is: each step is the evidence."""
        cut = histories.duration * (1 - self.tail)
        before, after = reallocations(histories)
        group = histories.group
        step = np.zeros(len(group))
        step[after] = histories.size[after] - histories.size[before]
        ends = np.zeros(len(group), np.bool_)
        ends[after] = True
        ends[before] = False
        gone = ends & np.isfinite(histories.death)
        # A block that grew and was released has lost all that it had.
        when = np.where(gone, histories.death, histories.birth)
        judged = when <= cut
        third = np.clip((when - begin[group]) * 3 / np.maximum(span[group], 1e-12), 0.0, 2.0).astype(np.int64)
        up, down = judged & (step > 0), judged & ((step < 0) | gone)
        rises = np.stack([histories.weighed(up & (third == number), step) for number in range(3)])
        lost = histories.weighed(down & (third == 2), np.where(gone, histories.size, -step))
        mallocs, frees = histories.counted(up) + histories.counted(down), histories.counted(down)
        score = likelihood(mallocs, frees)
        kept = ends & ~gone
        held = histories.weighed(kept, histories.size)
        leaking = (score >= LIKELIHOOD) & (histories.growth >= GROWTH) & ~verdicts.leaking
        leaking &= (rises >= self.least_third * rises.sum(axis=0)).all(axis=0)
        leaking &= rises[2] - lost >= self.least_net * rises[2]
        leaking &= (held >= self.least_share * histories.peak) & (held > 0)
        leaking &= (span >= 2 * self.tail * histories.duration) & (span >= self.least_s)
        leaking &= histories.weighed(kept & histories.importing) < 0.5 * np.maximum(held, 1.0)
        leaking = self._unhindered(histories, leaking, begin, cut)

        def chosen(containers: _Floats, others: _Floats) -> _Floats:
            return np.where(leaking, containers, others)

        return replace(
            verdicts,
            mallocs=chosen(mallocs, verdicts.mallocs),
            frees=chosen(frees, verdicts.frees),
            likelihood=chosen(score, verdicts.likelihood),
            leaking=verdicts.leaking | leaking,
            leaked=chosen(held, verdicts.leaked),
            beyond=chosen(np.zeros_like(held), verdicts.beyond),
            variance=chosen(np.zeros_like(held), verdicts.variance),
            blocks=chosen(histories.counted(kept), verdicts.blocks),
            elapsed=chosen(np.maximum(histories.duration - begin, 1e-9), verdicts.elapsed),
            bounded=None if verdicts.bounded is None else verdicts.bounded & ~leaking,
        )


DEFINITIONS: tuple[LeakDefinition, ...] = (Growth(), PaperScore())
"""The definitions that ``--leaks`` offers; the first is the default."""


def definition_named(name: str) -> LeakDefinition:
    """The definition of that name.

    Errors:
        FormatError: there is none.
    """
    for definition in DEFINITIONS:
        if definition.name == name:
            return definition
    choices = ", ".join(definition.name for definition in DEFINITIONS)
    raise FormatError(f"there is no definition of leaks named {name!r}: choose from {choices}")


def moves(histories: Histories, freed: NDArray[np.bool_], within: float) -> NDArray[np.bool_]:
    """True for freed blocks that a container gave back when it moved to a larger block of the same site.

    Its thread then allocated a larger one there at about the same time (realloc, a dict that is resized).
    """
    result = np.zeros(len(freed), np.bool_)
    if not freed.any():
        return result
    concerned = np.zeros(histories.groups, np.bool_)
    concerned[histories.group[freed]] = True
    inside = np.flatnonzero(concerned[histories.group])
    candidates = np.flatnonzero(freed[inside])
    # Births are in order within a group and thread; times are kept apart by an offset for each of them.
    group, thread = histories.group[inside], histories.thread[inside]
    birth, death, size = histories.birth[inside], histories.death[inside], histories.size[inside]
    _, rank = np.unique(group * (int(thread.max()) + 2) + thread + 1, return_inverse=True)
    step = 4 * histories.duration + 4 * within + 1.0
    order = np.argsort(rank, kind="stable")
    births = (birth + rank * step)[order]
    when = death[candidates] + rank[candidates] * step
    place = np.searchsorted(births, when)
    # Between the two calls of the allocator its thread does nothing else: the larger block is among the nearest.
    for offset in range(-NEAREST, NEAREST):
        near = np.clip(place + offset, 0, len(births) - 1)
        larger = size[order[near]] > 1.05 * size[candidates]
        result[inside[candidates]] |= larger & (np.abs(births[near] - when) <= within)
    return result


def reallocations(histories: Histories) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of blocks before and after a realloc: one ends at the very time at which the other begins.

    Estimated blocks stand for many, and are left out.
    """
    exact = np.flatnonzero(histories.weight <= (1 + EXACT) * histories.size)
    dying = exact[np.isfinite(histories.death[exact])]
    block = np.concatenate((dying, exact))
    time = np.concatenate((histories.death[dying], histories.birth[exact]))
    is_birth = np.arange(len(block)) >= len(dying)
    order = np.lexsort((is_birth, time, histories.group[block]))
    block, time, is_birth = block[order], time[order], is_birth[order]
    group = histories.group[block]
    pair = (time[1:] == time[:-1]) & (group[1:] == group[:-1]) & is_birth[1:] & ~is_birth[:-1]
    places = np.flatnonzero(pair)
    before, after = block[places], block[places + 1]
    other = before != after
    return before[other], after[other]


def _typical(histories: Histories, kept: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Median size of the blocks of each group that were kept; infinite where there are none."""
    index = np.flatnonzero(kept)
    index = index[np.lexsort((histories.size[index], histories.group[index]))]
    group = histories.group[index]
    typical = np.full(histories.groups, np.inf)
    groups, first, count = np.unique(group, return_index=True, return_counts=True)
    typical[groups] = histories.size[index[first + count // 2]]
    return typical


def _first(histories: Histories) -> NDArray[np.float64]:
    first = np.full(histories.groups, np.inf)
    np.minimum.at(first, histories.group, histories.birth)
    return first


def _verdicts(
    histories: Histories,
    mallocs: NDArray[np.float64],
    frees: NDArray[np.float64],
    score: NDArray[np.float64],
    leaking: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    elapsed: NDArray[np.float64],
) -> Verdicts:
    beyond = histories.weight - histories.size
    return Verdicts(
        mallocs=mallocs,
        frees=frees,
        likelihood=score,
        leaking=leaking,
        leaked=histories.weighed(kept),
        beyond=histories.weighed(kept, beyond),
        variance=histories.weighed(kept, histories.variance),
        blocks=histories.counted(kept),
        first=_first(histories),
        elapsed=np.maximum(elapsed, 1e-9),
    )
