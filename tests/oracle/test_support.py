"""The oracle's own arithmetic: a tolerance that shrinks to one percentage point, and markers that are found."""

import math
import random

import pytest

from oracle import memory, support


def test_tolerance_is_a_point_and_the_score_interval() -> None:
    n, p, z = 900, 0.25, 3.0
    by_hand = 0.01 + z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert support.tolerance(p, n) == pytest.approx(by_hand)


def test_tolerance_goes_to_one_point() -> None:
    assert support.tolerance(0.5, 10**8) == pytest.approx(0.01, abs=2e-4)
    assert support.tolerance(0.0, 10**8) == pytest.approx(0.01, abs=1e-6)


def test_tolerance_would_catch_a_wrong_share() -> None:
    """With the runs' usual thousand samples, a fifth reported as a quarter is an error."""
    assert support.tolerance(0.20, 1000) < 0.05


def test_no_samples_prove_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        support.tolerance(0.5, 0)


def test_marker_is_a_whole_name() -> None:
    program = support.PROGRAMS / "while_bodies.py"
    assert len(support.marked(program, "head")) == 2
    assert not support.marked(program, "digest-large") & support.marked(program, "digest-small")
    with pytest.raises(LookupError, match="digest"):
        support.marked(program, "digest")


def test_sampling_error_is_that_of_poisson_sampling() -> None:
    """Against sampling by hand; blocks much larger than the mean have none."""
    source, size, count, mean = random.Random(7), 100_000, 400, memory.BLOCK_MEAN
    part = 1 - math.exp(-size / mean)
    sums = [sum(source.random() < part for _ in range(count)) * size / part for _ in range(400)]
    middle = sum(sums) / len(sums)
    deviation = math.sqrt(sum((found - middle) ** 2 for found in sums) / len(sums))
    assert 3 * deviation == pytest.approx(memory.sampling_error(count, size), rel=0.15)
    assert memory.sampling_error(1, 64 * mean) < 1
