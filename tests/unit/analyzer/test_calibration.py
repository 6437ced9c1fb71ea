"""Sampled blocks are unbiased, agree with the counters, and their intervals hold, on populations that are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tachograph.analyzer.conclusions.memory.blocks import NEVER, Blocks, beyond, scales
from tachograph.analyzer.conclusions.memory.calibration import MAX_FACTOR, calibrate, groups, raking
from tachograph.analyzer.conclusions.memory.counters import Counters
from tachograph.analyzer.statistics.intervals import poisson_sums, shared_out
from tachograph.format.enumerations import MemoryEvent

pytestmark = pytest.mark.broad

MEAN = 524_288
RUNS = 400
OBJ = 4


@dataclass
class Population:
    """All blocks that a program allocated: site, size, birth, death (NEVER: kept), and the mean of its sampling."""

    site: NDArray[np.int64]
    size: NDArray[np.float64]
    birth: NDArray[np.int64]
    death: NDArray[np.int64]
    mean: NDArray[np.float64]

    def counters(self, times: list[int]) -> Counters:
        """The exact counters with rows at these times."""
        count = len(times)
        flows = np.zeros((2, count, 5))
        for which, moments in enumerate((self.birth, self.death)):
            seen = moments <= times[-1]
            flows[which, :, OBJ] = np.bincount(
                np.searchsorted(times, moments[seen]), weights=self.size[seen], minlength=count
            )
        held = np.cumsum(flows[0].sum(axis=1) - flows[1].sum(axis=1))
        ids, unknown = np.zeros(count, np.int64), np.full(count, np.nan)
        event = np.array([MemoryEvent.START, *[MemoryEvent.THRESHOLD] * (count - 2), MemoryEvent.END])
        return Counters(
            np.array(times),
            ids,
            ids - 1,
            event,
            held,
            held,
            flows[0],
            flows[1],
            unknown,
            unknown,
            unknown,
            ids - 1,
            ids - 1,
        )

    def sample(self, random: np.random.Generator) -> Blocks:
        """The blocks that Poisson sampling draws."""
        drawn = np.flatnonzero(random.random(len(self.size)) < -np.expm1(-self.size / self.mean))
        size, mean, count = self.size[drawn], self.mean[drawn], len(drawn)
        rest = beyond(size, mean)
        return Blocks(
            birth_ns=self.birth[drawn],
            death_ns=self.death[drawn],
            process=np.zeros(count, np.int32),
            thread=np.zeros(count, np.int32),
            site=self.site[drawn],
            native_frame=np.full(count, -1, np.int32),
            domain=np.full(count, OBJ, np.uint8),
            followed=np.ones(count, np.bool_),
            certain=size,
            beyond=rest,
            variance=rest * (size + rest),
            scale=np.rint(np.log2(mean)).astype(np.int8),
            requested=np.ones(count),
            native_stack=np.full(count, -1, np.int32),
            native_path=np.zeros(count, np.uint8),
            number=np.full(count, -1),
            span=np.full(count, -1, np.int32),
        )


def two_sites(random: np.random.Generator) -> Population:
    """Site 0 builds a structure of blocks of all sizes and keeps it; site 1 makes temporaries, sampled coarsely."""
    kept, short = 30_000, 60_000
    birth = np.sort(random.integers(1, 1000, kept + short))
    site = np.zeros(kept + short, np.int64)
    site[random.permutation(kept + short)[:short]] = 1
    size = np.where(random.random(len(site)) < 0.001, 2e6, random.choice([64.0, 512.0, 4096.0], len(site)))
    death = np.where(site == 0, NEVER, birth + 1)
    return Population(site, size, birth, death, np.where(site == 0, MEAN, 8.0 * MEAN))


def estimates(
    sites: Callable[[np.random.Generator], Population], calibrated: bool, measure: str, rows: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What many samples say about the sites, and the truth; ``rows`` are left of each stretch of time."""
    return _estimates(sites, calibrated, rows)[measure]


@cache
def _estimates(
    make: Callable[[np.random.Generator], Population], calibrated: bool, rows: int | None
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The same by measure: each test looks at the same samples."""
    population, random = make(np.random.default_rng(1)), np.random.default_rng(7)
    counters, sites = population.counters(list(range(0, 1001, 50))), int(population.site.max()) + 1
    found: dict[str, list[NDArray[np.float64]]] = {"allocated": [], "live": []}
    for _ in range(RUNS):
        blocks = population.sample(random)
        if rows is not None:
            blocks = thinned(random, blocks, rows)
        if calibrated:
            blocks = calibrate(blocks, counters).blocks
        for measure, chosen in (("allocated", np.ones(len(blocks), np.bool_)), ("live", blocks.alive(600))):
            found[measure].append(
                np.bincount(blocks.site[chosen], weights=blocks.bytes[chosen], minlength=sites).astype(np.float64)
            )
    alive = (population.birth <= 600) & (population.death > 600)
    truth = {
        measure: np.bincount(population.site[there], weights=population.size[there], minlength=sites)
        for measure, there in (("allocated", np.ones(len(population.size), np.bool_)), ("live", alive))
    }
    return {measure: (np.array(each, np.float64), truth[measure].astype(np.float64)) for measure, each in found.items()}


@pytest.mark.parametrize("measure", ["allocated", "live"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_estimates_are_unbiased(measure: str, calibrated: bool) -> None:
    found, truth = estimates(two_sites, calibrated, measure)
    error = found.std(axis=0) / math.sqrt(RUNS)
    # A ratio of sums has a bias of the order of 1 / samples, which a tenth of a percent of the truth allows for.
    assert (np.abs(found.mean(axis=0) - truth) <= 4 * error + (0.001 * truth if calibrated else 0)).all()


def many_sites(random: np.random.Generator) -> Population:
    """Two sites with much, of which one keeps it, and thirty with little, which keep a part."""
    count = 60_000
    birth = np.sort(random.integers(1, 1000, count))
    site = np.where(random.random(count) < 0.8, random.integers(0, 2, count), random.integers(2, 32, count))
    size = np.where(random.random(count) < 0.0005, 2e6, random.choice([64.0, 512.0, 4096.0], count))
    kept = np.where(site < 2, site == 0, random.random(count) < 0.3)
    return Population(site, size, birth, np.where(kept, NEVER, birth + 3), np.full(count, float(MEAN)))


def thinned(random: np.random.Generator, blocks: Blocks, rows: int) -> Blocks:
    """What the recorder leaves of a sample (native/shim/memory/thinning.cpp), which looks at the sampled blocks of each
    stretch of time together, apart at those that have died and those that live, and leaves ``rows`` of them in."""
    weight, mean = blocks.bytes.copy(), np.full(len(blocks), float(MEAN))
    stretch = (blocks.birth_ns // 200) * 2 + (blocks.death_ns == NEVER)
    for each in np.unique(stretch):
        here = np.flatnonzero(stretch == each)
        if len(here) <= rows:
            continue
        own = np.zeros(len(here), np.bool_)
        while True:
            step = weight[here[~own]].sum() / (rows - own.sum())
            if (own == (weight[here] >= step)).all():
                break
            own = weight[here] >= step
        shared, pooled = here[~own], []
        for site in np.unique(blocks.site[shared]):
            mine = shared[blocks.site[shared] == site]
            total = float(weight[mine].sum())
            if total < step:
                mean[mine] += step - total
                pooled.append(mine)
            else:
                _choose(random, weight, mine, total / math.floor(total / step))
        if pooled:
            _choose(random, weight, np.concatenate(pooled), step)
    size = blocks.certain
    rest = weight - size
    left = replace(
        blocks, beyond=rest, variance=weight * beyond(size, mean), scale=scales(np.full(len(blocks), float(MEAN)), rest)
    )
    return left.where(weight > 0)


def _choose(random: np.random.Generator, weight: NDArray[np.float64], mine: NDArray[np.int64], step: float) -> None:
    """One of them for each ``step`` of their weights, from a random beginning on."""
    reached = np.floor((np.cumsum(weight[mine]) - random.random() * step) / step)
    weight[mine] = np.where(np.diff(reached, prepend=-1.0) > 0, step, 0.0)


@pytest.mark.parametrize("measure", ["allocated", "live"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_estimates_are_unbiased_with_few_rows(measure: str, calibrated: bool) -> None:
    found, truth = estimates(many_sites, calibrated, measure, rows=15)
    error = found.std(axis=0) / math.sqrt(RUNS)
    assert (np.abs(found.mean(axis=0) - truth) <= 4 * error + (0.001 * truth if calibrated else 0)).all()


def test_few_rows_say_as_much_of_what_matters_as_many() -> None:
    whole, _ = estimates(many_sites, calibrated=False, measure="allocated")
    few, truth = estimates(many_sites, calibrated=False, measure="allocated", rows=15)
    assert few[:, :2].std(axis=0) == pytest.approx(whole[:, :2].std(axis=0), rel=0.2)
    assert (few[:, :2].std(axis=0) < 0.1 * truth[:2]).all()


def test_intervals_of_few_rows_cover_the_truth() -> None:
    """Of the sites with much, of those with little together, and of each of these if it has a row at all."""
    population, random = many_sites(np.random.default_rng(1)), np.random.default_rng(9)
    group = np.concatenate((population.site, np.where(population.site < 2, 33, 32)))
    truth = np.bincount(group, weights=np.tile(population.size, 2))
    covered, seen = [], []
    for _ in range(RUNS):
        blocks = thinned(random, population.sample(random), 15)
        of = np.concatenate((blocks.site, np.where(blocks.site < 2, 33, 32)))
        certain, rest, variance = (
            np.bincount(of, weights=np.tile(values, 2), minlength=34).astype(np.float64)
            for values in (blocks.certain, blocks.beyond, blocks.variance)
        )
        low, high = poisson_sums(certain, rest, variance)
        covered.append((low <= truth) & (truth <= high))
        seen.append(certain > 0)
    assert (np.mean(covered, axis=0)[[0, 1, 32, 33]] > 0.92).all()
    assert np.array(covered)[np.array(seen)].mean() > 0.92


def test_calibration_takes_most_of_the_variance_away() -> None:
    plain, truth = estimates(two_sites, calibrated=False, measure="allocated")
    better, _ = estimates(two_sites, calibrated=True, measure="allocated")
    assert (better.std(axis=0) < 0.3 * plain.std(axis=0)).all()
    # Temporaries, sampled eight times as coarsely, make next to no noise in what is built beside them.
    assert better[:, 0].std() < 0.01 * truth[0]


def test_a_structure_beside_temporaries_is_exact() -> None:
    """`for i in range(n): store[i] = i * 0.5`: only the sum of both would be known without the counters of releases."""
    count = 200_000
    birth = np.repeat(np.arange(1, count // 2 + 1), 2)
    site = np.tile([0, 1], count // 2)
    death = np.where(site == 0, NEVER, birth + 1)
    everything = np.full(count, 1.0)
    population = Population(site, everything * 320, birth, death, everything * MEAN)
    rows = list(range(0, count // 2 + 100, 10_000))
    blocks = calibrate(population.sample(np.random.default_rng(3)), population.counters(rows)).blocks
    found = np.bincount(blocks.site, weights=blocks.bytes, minlength=2)
    assert found == pytest.approx([160 * count, 160 * count], rel=0.005)


def test_the_sums_are_those_of_the_books() -> None:
    population = two_sites(np.random.default_rng(1))
    counters = population.counters(list(range(0, 1001, 50)))
    calibrated = calibrate(population.sample(np.random.default_rng(2)), counters)
    assert calibrated.blocks.bytes.sum() == pytest.approx(population.size.sum(), rel=1e-6)
    assert calibrated.unseen.sum() == pytest.approx(0, abs=1)
    # No block stands for less than itself.
    assert (calibrated.blocks.beyond >= 0).all()


def test_memory_without_samples_is_reported_as_not_sampled() -> None:
    population = two_sites(np.random.default_rng(1))
    nothing = population.sample(np.random.default_rng(2)).where(
        np.zeros(len(population.sample(np.random.default_rng(2))), np.bool_)
    )
    counters = population.counters(list(range(0, 1001, 50)))
    assert calibrate(nothing, counters).unseen.sum() == pytest.approx(population.size.sum())


def test_groups_depend_on_the_books_alone() -> None:
    # Twenty samples are expected in every fifth of the bytes; what is left over belongs to the last whole group.
    assert groups(np.full(10, 1.0), 100).tolist() == [1, 3, 5, 7, 9]
    assert groups(np.full(11, 1.0), 100).tolist() == [2, 5, 10]
    assert groups(np.array([0.0, 1, 100, 1, 100, 1, 1, 1]), 60).tolist() == [2, 7]
    assert groups(np.zeros(5), 0).tolist() == [4]
    assert len(groups(np.ones(100_000), 10**7)) <= 2001
    # A small row is never left alone before a large one.
    assert groups(np.array([1.0, 99, 1, 99]), 40).tolist() == [1, 3]


@pytest.mark.parametrize("wanted", [0.0, 10.0, 90.0, 150.0, 200.0, 399.0])
def test_raking_adds_up(wanted: float) -> None:
    rests, scales = [50.0, 30.0, 20.0], [19, 20, 25]
    factors = raking(rests, scales, wanted)
    assert sum(rest * factor for rest, factor in zip(rests, factors, strict=True)) == pytest.approx(wanted, abs=1e-6)
    assert all(0 <= factor <= MAX_FACTOR for factor in factors)
    # Coarse samples take up most of the difference.
    distances = [abs(factor - 1) for factor in factors]
    assert distances == sorted(distances) or wanted == 0 or max(factors) == pytest.approx(MAX_FACTOR)


def test_raking_has_limits() -> None:
    assert raking([10.0, 10.0], [19, 20], 1000.0) == [MAX_FACTOR, MAX_FACTOR]
    assert raking([], [], 5.0) == []
    assert raking([10.0], [19], 15.0) == [1.5]


@pytest.mark.parametrize("size", [64.0, 300_000.0, 1_000_000.0])
def test_intervals_cover_the_truth(size: float) -> None:
    random = np.random.default_rng(5)
    count = int(20 * MEAN / size)
    kept = random.binomial(count, -math.expm1(-size / MEAN), 5000).astype(np.float64)
    rest = float(beyond(np.array([size]), np.array([float(MEAN)]))[0])
    low, high = poisson_sums(kept * size, kept * rest, kept * rest * (size + rest))
    assert ((low <= count * size) & (count * size <= high)).mean() > 0.93
    assert (high - low).mean() < 1.5 * size * count


def test_intervals_of_next_to_no_samples() -> None:
    none = np.zeros(3)
    low, high = poisson_sums(none, np.array([MEAN, 0.0, 1e6]), np.array([float(MEAN) ** 2, 0.0, 1e6]))
    assert low[0] < 0.03 * MEAN
    assert high[0] == pytest.approx(5.57 * MEAN, rel=0.02)
    assert (low[1], high[1]) == (0.0, 0.0)
    assert (low[2], high[2]) == pytest.approx((1e6 - 1960, 1e6 + 1960), abs=2)
    # What was sampled is there.
    assert poisson_sums(np.array([90.0]), np.array([10.0]), np.array([900.0]))[0] == [90.0]


def test_a_part_that_has_all_samples_may_not_have_all() -> None:
    assert shared_out(np.array([4.0, 0.0, 2.0]), 4.0).tolist() == [0.0, 0.0, 1.0]
    assert shared_out(np.array([4.0, 0.0]), 4.0, np.array([4.0, 0.0])).tolist() == [2.0, 0.0]
    assert shared_out(np.array([400.0]), 400.0, 4.0)[0] == pytest.approx(4.0, rel=0.02)
    assert shared_out(np.array([4.0]), None).tolist() == [4.0]
