"""Quantiles from buckets, added up over parts, against those of the values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tachograph.analyzer.statistics.relative_buckets import ERROR, buckets, quantile


@pytest.mark.parametrize("part", [0.0, 0.5, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 3e4])
def test_quantiles_are_within_the_error_whatever_the_values(part: float, scale: float) -> None:
    values = np.random.default_rng(7).lognormal(0, 2, 5001) * scale
    truth = np.sort(values)[round(part * 5000)]
    found = [np.unique(buckets(each), return_counts=True) for each in np.array_split(values, 7)]
    bucket, count = (np.concatenate(each) for each in zip(*found, strict=True))
    assert quantile(bucket, count.astype(float), part) == pytest.approx(truth, rel=ERROR * 1.0001)


def test_no_value_has_no_quantile() -> None:
    assert math.isnan(quantile(np.zeros(0, np.int64), np.zeros(0), 0.5))
