"""Normal, Student's t and gamma distributions, the level of many verdicts, and derivatives of log gamma.

They are written out here because scipy is not worth its weight for them: scipy 1.17 adds 143 MB to an installation, and
``import scipy.special`` alone costs 0.2 s of CPU, more than half of what pandas costs. statsmodels needs scipy.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[np.float64]

WRONG = 0.01
"""The share of verdicts that may be wrong, on average; if nothing changed, the part of all comparisons with a verdict.
"""

_STEPS = 200
_TINY = 1e-300
_PRECISION = 1e-12
_HALVINGS = 60
_NEWTON_STEPS = 60
_MOST_LOG_T = math.log(1e150)

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def normal_two_sided(z: _Array) -> _Array:
    """The probability that a standard normal variable is further from 0 than ``z``."""
    return np.asarray(_erfc(np.abs(z) / math.sqrt(2.0)), np.float64)


def normal_quantile(alpha: float) -> float:
    """The z that a standard normal variable exceeds, either way, with probability ``alpha`` in (0, 1)."""
    return -NormalDist().inv_cdf(max(alpha, _TINY) / 2)


def t_two_sided(t: _Array, freedom: _Array) -> _Array:
    """The probability that Student's t with ``freedom`` (> 0) degrees of freedom is further from 0 than ``t``."""
    t, freedom = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(freedom, np.float64))
    with np.errstate(divide="ignore", over="ignore"):
        x = freedom / (freedom + np.square(t))
    return _regularised_beta(x, freedom / 2, 0.5)


def t_quantile(alpha: float, freedom: _Array) -> _Array:
    """The t that Student's t exceeds, either way, with probability ``alpha``; for each of ``freedom`` (> 0).

    With infinitely many degrees of freedom it is the normal quantile; NaN for NaN.
    """
    whole = np.asarray(freedom, np.float64)
    quantile = np.where(np.isnan(whole), np.nan, normal_quantile(alpha))
    finite = np.isfinite(whole)
    quantile[finite] = _finite_t_quantile(alpha, whole[finite])
    return quantile


def _finite_t_quantile(alpha: float, freedom: _Array) -> _Array:
    distinct, index = np.unique(freedom, return_inverse=True)
    logarithm = np.full(len(distinct), math.log(max(normal_quantile(alpha), _TINY)))
    for _ in range(_NEWTON_STEPS):
        t = np.exp(logarithm)
        tail = np.maximum(t_two_sided(t, distinct), _TINY)
        # Of log(tail) by log(t): concave, and the normal quantile is below the root. So each step is towards it.
        slope = -2 * t * _t_density(t, distinct) / tail
        step = (math.log(alpha) - np.log(tail)) / np.minimum(slope, -_TINY)
        logarithm = np.minimum(logarithm + step, _MOST_LOG_T)
        if np.all(np.abs(step) < _PRECISION):
            break
    return np.asarray(np.exp(logarithm)[index], np.float64).reshape(np.shape(freedom))


def gamma_factor(shape: _Array, z: float) -> _Array:
    """The quantile of the gamma distribution with ``shape``, divided by its mean, at the normal quantile ``z``.

    By Wilson and Hilferty's approximation; 0 where that is below 0.
    """
    return np.asarray(np.maximum(1 - 1 / (9 * shape) + z / (3 * np.sqrt(shape)), 0.0) ** 3, np.float64)


def beta_quantile(a: _Array, b: _Array, z: float) -> _Array:
    """The quantile of the beta distribution with shapes ``a`` and ``b`` (> 0), at the normal quantile ``z``.

    By Paulson's approximation of the F distribution, which is Wilson and Hilferty's of both its parts; 0 or 1 where
    that has no solution.
    """
    of_a, of_b = 1 / (9 * np.asarray(a, np.float64)), 1 / (9 * np.asarray(b, np.float64))
    # The cube root of F solves (1 - of_b) x - (1 - of_a) = z sqrt(of_b x^2 + of_a).
    square = (1 - of_b) ** 2 - z * z * of_b
    half = (1 - of_a) * (1 - of_b)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(half**2 - square * ((1 - of_a) ** 2 - z * z * of_a), 0.0))
        ratio = a / b * np.maximum((half + math.copysign(1.0, z) * root) / square, 0.0) ** 3
        quantile = ratio / (1 + ratio)
    return np.where(square > 0, quantile, 1.0 if z > 0 else 0.0)


def adjusted_alpha(p_values: _Array, rate: float = WRONG) -> float:
    """The level at which each row is to be judged: ``p <= alpha`` is a verdict, and intervals have 1 - alpha.

    ``p_values`` are those of all rows that were compared (NaN: not compared, and not counted).
    """
    ordered = np.sort(p_values[~np.isnan(p_values)])
    if not len(ordered):
        return rate
    bounds = rate * np.arange(1, len(ordered) + 1) / len(ordered)
    below = np.flatnonzero(ordered <= bounds)
    return float(bounds[below[-1]] if len(below) else bounds[0])


def _t_density(t: _Array, freedom: _Array) -> _Array:
    front = _lgamma((freedom + 1) / 2) - _lgamma(freedom / 2) - np.log(freedom * math.pi) / 2
    # By hypot, for a square of t may be too large.
    return np.asarray(np.exp(front - (freedom + 1) * np.log(np.hypot(1.0, t / np.sqrt(freedom)))), np.float64)


def _regularised_beta(x: _Array, a: _Array, b: float) -> _Array:
    """I_x(a, b) by its continued fraction (Lentz's method), which converges fast below (a + 1) / (a + b + 2)."""
    other = np.full_like(a, b)
    swap = x > (a + 1) / (a + b + 2)
    value, first, second = np.where(swap, 1 - x, x), np.where(swap, other, a), np.where(swap, a, other)
    part = _beta_fraction(value, first, second)
    result = np.where(swap, 1 - part, part)
    return np.asarray(np.clip(np.where(x <= 0, 0.0, np.where(x >= 1, 1.0, result)), 0.0, 1.0), np.float64)


_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def _beta_fraction(x: _Array, a: _Array, b: _Array) -> _Array:
    with np.errstate(divide="ignore"):
        logs = a * np.log(np.maximum(x, _TINY)) + b * np.log(np.maximum(1 - x, _TINY))
    front = np.exp(logs + _lgamma(a + b) - _lgamma(a) - _lgamma(b)) / a
    c = np.ones_like(x)
    d = 1 / _off_zero(1 - (a + b) * x / (a + 1))
    result = d.copy()
    for step in range(1, _STEPS):
        for factor in (
            step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)),
        ):
            d = 1 / _off_zero(1 + factor * d)
            c = _off_zero(1 + factor / c)
            result *= c * d
        if np.all(np.abs(c * d - 1) < _PRECISION):
            break
    return np.asarray(front * result, np.float64)


def _off_zero(values: _Array) -> _Array:
    return np.where(np.abs(values) < _TINY, _TINY, values)


def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, for x > 0: recurrence, then the asymptotic series."""
    result = 0.0
    while x < 10:
        result -= 1 / x
        x += 1
    square = 1 / (x * x)
    return result + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252))


def trigamma(x: float) -> float:
    """The derivative of ``digamma``, in the same way."""
    result = 0.0
    while x < 10:
        result += 1 / (x * x)
        x += 1
    square = 1 / (x * x)
    return result + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square / 42))


def inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = ``value``, which falls from infinity to 0."""
    low, high = 1e-6, 1e6
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return high
