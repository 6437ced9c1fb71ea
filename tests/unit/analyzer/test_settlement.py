"""What is held at a moment agrees with the counters, and what is surely held is not changed for what is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tachograph.analyzer import Profile
from tachograph.analyzer.conclusions.memory.blocks import NEVER, Blocks, beyond, thinned
from tachograph.analyzer.conclusions.memory.calibration import Parts, missed_variance, moment_variance, settle
from tachograph.analyzer.statistics.intervals import poisson_sums, shared_out
from unit.analyzer.recordings import Builder

MB = 1_000_000
HIGHEST = 4.0


def parts(estimates: list[float], variances: list[float], missed: float = 0.0) -> Parts:
    beyond_ = np.array(estimates, np.float64)
    return Parts(np.zeros(len(beyond_)), beyond_, np.array(variances, np.float64), missed)


@pytest.mark.parametrize(
    ("estimates", "variances", "missed", "bounds", "settled", "in_no_row"),
    [
        ([6, 10], [0.1, 9.9], 0, (20, 20), [6.04, 13.96], 0),  # in proportion to the variances
        ([6, 10], [0.1, 9.9], 0, (12, 12), [5.96, 6.04], 0),
        ([6, 10], [0.1, 9.9], 0, (15, 17), [6, 10], 0),  # within the bounds
        ([6, 2], [0.1, 9.9], 0, (5, 5), [5, 0], 0),  # one part ends at nothing
        ([6, 2], [0.1, 9.9], 0, (20, 20), [12, 8], 0),  # or at HIGHEST times itself
        ([6, 10], [0.0, 0.0], 0, (8, 8), [3, 5], 0),  # nothing is less sure than the rest
        ([6, 10], [0.1, 0.0], 0, (8, 8), [0, 8], 0),
        ([6], [1.0], 0, (100, 100), [24], 0),
        ([6], [1.0], 0, (0, 0), [0], 0),
        ([6], [0.1], 9.9, (16, 16), [6.1], 9.9),  # what is held may be in no row
        ([6], [0.1], 9.9, (4, 4), [4], 0),
        ([], [], 1, (5, 5), [], 0),
    ],
)
def test_a_difference_is_shared_out(
    estimates: list[float],
    variances: list[float],
    missed: float,
    bounds: tuple[float, float],
    settled: list[float],
    in_no_row: float,
) -> None:
    factors, left = settle(parts(estimates, variances, missed), *bounds, HIGHEST)
    assert (factors * estimates).tolist() == pytest.approx(settled)
    assert left == pytest.approx(in_no_row)


def population(
    size: NDArray[np.float64], birth: NDArray[np.int64], death: NDArray[np.int64], mean: float, weight: float
) -> Blocks:
    """Rows of blocks of these sizes, of one site each 64 bytes' size class, that stand for ``weight`` bytes each."""
    count, ones = len(size), np.ones(len(size))
    whole = np.full(count, weight)
    return Blocks(
        birth_ns=birth,
        death_ns=death,
        process=np.zeros(count, np.int32),
        thread=np.zeros(count, np.int32),
        site=np.where(death == NEVER, 0, 1),
        native_frame=np.full(count, -1, np.int32),
        domain=np.full(count, 4, np.uint8),
        followed=np.ones(count, np.bool_),
        certain=size,
        beyond=whole - size,
        variance=whole * beyond(size, ones * mean),
        scale=np.zeros(count, np.int8),
        requested=ones,
        native_stack=np.full(count, -1, np.int32),
        native_path=np.zeros(count, np.uint8),
        number=np.arange(count),
        span=np.full(count, -1, np.int32),
    )


def test_rows_that_stand_for_many_are_less_sure_of_a_moment_than_of_a_sum() -> None:
    size, birth = np.full(4, 64.0), np.array([0, 10, 20, 30])
    death = np.array([5, 15, 25, NEVER])
    blocks = population(size, birth, death, 1000.0, 9000.0)
    rest = thinned(blocks)
    assert rest == pytest.approx(9000 - 1000, rel=0.05)
    alive = blocks.alive(22)
    assert alive.tolist() == [False, False, True, False]
    # A third of what the site has allocated is held: the other two thirds are the chance that the row is not.
    (found,) = moment_variance(blocks, blocks, alive, rest, 2)
    assert found == pytest.approx(blocks.variance[2] + 9000 * rest[2] * 2 / 3)
    # What holds all it allocated is in its rows, whichever of them there are.
    (found,) = moment_variance(blocks, blocks, blocks.alive(40), rest, 2)
    assert found == blocks.variance[3]
    # Each of the two rows that are not held was, for 5 of 40.
    assert missed_variance(blocks, alive, rest, 0, 40) == pytest.approx(2 * 9000 * rest[0] * 5 / 40)


def test_a_list_keeps_its_bytes_beside_temporaries_that_are_hardly_ever_in_a_row() -> None:
    """6 MB are held and sampled finely. Temporaries, 10 MB at a time, have a row for each 8 MB in a second."""
    random = np.random.default_rng(1)
    covered, off, scaled = 0, [], []
    runs = 400
    for _ in range(runs):
        kept = random.poisson(6 * MB / 32_768)
        rows = 75
        birth = np.concatenate((np.zeros(kept, np.int64), random.integers(0, 1_000_000, rows)))
        order = np.argsort(birth, kind="stable")
        death = np.concatenate((np.full(kept, NEVER), birth[kept:] + 16_667))
        fine = population(np.full(kept, 64.0), birth[:kept], death[:kept], 32_768.0, 32_768.0)
        coarse = population(np.full(rows, 64.0), birth[kept:], death[kept:], 524_288.0, 8.0 * MB)
        blocks = Blocks(*(np.concatenate((getattr(fine, name), getattr(coarse, name)))[order] for name in vars(fine)))
        alive, rest = blocks.alive(500_000), thinned(blocks)
        variance = moment_variance(blocks, blocks, alive, rest, 2)
        missed = missed_variance(blocks, alive, rest, 0, 1_000_000)
        about = Parts(blocks.certain[alive], blocks.beyond[alive], variance, missed)
        factors, _ = settle(about, 16.0 * MB, 16.0 * MB, HIGHEST)
        mine = blocks.site[alive] == 0
        held = float(about.certain[mine].sum() + (about.beyond * factors)[mine].sum())
        own = shared_out(np.array([variance[mine].sum()]), float(variance.sum()) + missed)
        low, high = poisson_sums(np.zeros(1), np.array([held]), own)
        covered += bool(low[0] <= 6 * MB <= high[0])
        off.append(held / (6 * MB) - 1)
        scaled.append(mine.sum() * 32_768.0 * 16 * MB / blocks.bytes[alive].sum() / (6 * MB) - 1)
    assert covered >= 0.93 * runs
    assert abs(float(np.mean(off))) < 0.03
    assert float(np.std(off)) < 0.1
    # All scaled alike, as if each were as sure as the other, it was off by the chance that temporaries had.
    assert float(np.std(scaled)) > 3 * float(np.std(off))


def test_what_is_held_and_in_no_row_has_a_row_of_its_own(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    kept, passing = (builder.stack((code, line)) for line in range(2))
    builder.memory("start", 0, 0)
    for number in range(100):
        builder.block(kept, 64, 1 + number / 10, mean=60_000, weight_bytes=60_000)
    for number in range(40):
        # None of them is held at the peak, at 500 ms, when there are 10 MB of their like.
        builder.block(passing, 64, 20 * number, 20 * number + 9, mean=60_000, weight_bytes=8 * MB)
    builder.memory("threshold", 515, 16 * MB, obj_allocated_bytes=(6 + 160 + 10) * MB, obj_freed_bytes=160 * MB)
    builder.memory("end", 1000, 6 * MB, obj_allocated_bytes=150 * MB, obj_freed_bytes=160 * MB)
    answer = profile()
    held = answer.lines.set_index("function")["live_at_peak_bytes"]
    assert answer.totals.live_at_peak_bytes == 16 * MB
    assert held.sum() == pytest.approx(16 * MB)
    line = answer.lines.set_index("line").loc[1]
    assert line["live_at_peak_bytes_low"] <= 6 * MB <= line["live_at_peak_bytes_high"]
    assert line["live_at_peak_bytes"] == pytest.approx(6 * MB, rel=0.15)
    assert held["<not sampled>"] > MB
    assert "<before recording>" not in held.index or held["<before recording>"] == pytest.approx(0, abs=MB / 10)


def test_fine_rows_do_not_take_up_what_rows_that_stand_for_many_lack(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """Two lines that grow one after the other by half a megabyte at a time; of the second one in eleven has a row."""
    code = builder.code(builder.file("/srv/a.py"))
    first, second = (builder.stack((code, line)) for line in range(2))
    mean, step, count = 524_288, 524_293, 100
    builder.memory("start", 0, 0)
    for number in range(1, 2 * count + 1):
        if number <= count:
            builder.block(first, 4096, number, mean=mean)
        elif number % 11 == 0:
            builder.block(second, 4096, number, mean=mean, weight_bytes=11 * step)
        if number % 20 == 10:
            builder.memory(
                "threshold", number + 0.5, number * step, obj_allocated_bytes=(10 if number == 10 else 20) * step
            )
    builder.memory("end", 2 * count + 1, 2 * count * step, obj_allocated_bytes=10 * step)
    lines = profile().lines
    found = lines[lines["line"] == 1]["live_at_end_bytes"].iloc[0]
    assert found == pytest.approx(count * step, rel=0.005)
