"""Intervals for shares that were estimated from samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .distributions import beta_quantile, gamma_factor

CONFIDENCE = 0.95
"""Of the intervals that are shown."""

Z95 = 1.959963984540054
"""Quantile of the normal distribution for a two-sided 95 % interval."""

LEAST_SHAPE = 1e-9


def effective_samples(weight: float, weight_squared: float) -> float:
    """Kish's effective number of samples, (sum w)^2 / sum w^2: how many equal samples would tell as much."""
    return weight * weight / weight_squared if weight_squared > 0 else 0.0


def wilson(
    shares: NDArray[np.float64], samples: float, z: float = Z95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper ends of Wilson's score interval for shares (0..1) of ``samples`` samples; NaN without samples.

    It holds for shares near 0 and 1 and for few samples, where the usual p +- z sqrt(p(1-p)/n) is far too narrow.
    """
    shares = np.clip(np.asarray(shares, np.float64), 0.0, 1.0)
    if samples <= 0:
        return np.full(shares.shape, math.nan), np.full(shares.shape, math.nan)
    square = z * z / samples
    centre = shares + square / 2
    reach = z * np.sqrt(shares * (1 - shares) / samples + square / (4 * samples))
    # The ends of the range are exact, but rounding puts them a hair inside or outside of it.
    low = np.where(shares <= 0, 0.0, (centre - reach) / (1 + square))
    high = np.where(shares >= 1, 1.0, (centre + reach) / (1 + square))
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def poisson_sums(
    certain: NDArray[np.float64], beyond: NDArray[np.float64], variance: NDArray[np.float64], z: float = Z95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of intervals for sums of sampled values (``certain``) and of the rest that they stand for (``beyond``).

    Fay and Feuer's gamma interval for weighted sums of Poisson counts (1997), with the mean weight in place of the
    largest, and quantiles by Wilson and Hilferty: a sum of one small sample reaches from 0.01 to 5.6 times its
    estimate, where the normal distribution would have it from below 0 to 3. No sum is less than what was sampled. An
    estimate without variance is exact.
    """
    whole = certain + beyond
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = whole**2 / variance
        low = whole * gamma_factor(samples, -z)
        more = samples + 1
        high = whole * more / samples * gamma_factor(more, z)
    exact = (variance <= 0) | (whole <= 0)
    return np.where(exact, whole, np.maximum(low, certain)), np.where(exact, whole, high)


def none_seen(weight: NDArray[np.float64], z: float = Z95) -> NDArray[np.float64]:
    """Upper end for a sum without any sample: that of a Poisson count of 0, times the weight of a sample.

    The same formula as in ``poisson_sums``: 3.7 samples' worth, the two-sided form of the rule of three. NaN for weight
    NaN.
    """
    return weight * gamma_factor(np.ones(()), z)


def parts_of_sum(
    estimated: NDArray[np.float64], variance: NDArray[np.float64], whole: tuple[float, float], z: float = Z95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of intervals for parts of a sum of samples that was scaled to what is known exactly.

    ``variance`` is the sum of the squared weights behind each part, ``whole`` the sum and the variance of all parts.
    A part that has the share p of the sum varies by V (1 - p)^2 + (W - V) p^2 (the ratio estimator); the share has
    Clopper and Pearson's interval for as many equal samples as vary like that (Korn and Graubard 1998). It is as skewed
    as few samples are, and a part that has all samples may have less than the whole: another may have none.
    """
    total, all_variance = whole
    if total <= 0 or all_variance <= 0:
        return estimated.copy(), estimated.copy()
    share = np.clip(estimated / total, 0.0, 1.0)
    own = variance * (1 - share) ** 2 + np.maximum(all_variance - variance, 0.0) * share**2
    alike = total**2 / all_variance
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = np.where((share > 0) & (share < 1) & (own > 0), share * (1 - share) * total**2 / own, alike)
    hits, misses = share * samples, (1 - share) * samples
    some, others = np.maximum(hits, LEAST_SHAPE), np.maximum(misses, LEAST_SHAPE)
    low = np.where(hits > LEAST_SHAPE, total * beta_quantile(some, misses + 1, -z), 0.0)
    high = np.where(misses > LEAST_SHAPE, total * beta_quantile(hits + 1, others, z), total)
    none = (estimated <= 0) & (variance <= 0)
    return np.where(none, 0.0, np.minimum(low, estimated)), np.where(none, 0.0, np.maximum(high, estimated))


def shared_out(
    variance: NDArray[np.float64], whole: float | None, sample: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """Variances of parts of a sum that is known exactly; ``whole`` is the variance of its estimate, None: unknown.

    V_a - V_a^2 / V, the residual of the regression estimator. A part that has all of the samples would have no
    variance, but another may have some of the sum and no sample: V has one sample more, whose variance is ``sample``
    (as Agresti and Coull add observations, 1998).
    """
    if whole is None or whole <= 0:
        return variance
    return np.asarray(np.maximum(variance * (1 - variance / (whole + np.nan_to_num(sample))), 0.0), np.float64)
