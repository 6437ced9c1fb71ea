"""``fleet when``: since which version, day or other label a function takes more or less."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...statistics.distributions import WRONG
from ...statistics.ratios import FEWEST, pooled, ratios
from .selection import Selection
from .top import amounts_by_group, find_place, groups_of, metric_named, weights_of, with_spans

SHUFFLES = 999
MAX_CELLS = 500_000
"""Numbers that are shuffled at a time: they fit into a processor's cache, which is twice as fast."""

_SEED = 20_261_123
_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moved:
    """Where a function moved.

    ``groups``: group, first (when its first recording began), value, low, high, recordings; in the order of time.
    ``since`` is the first group of the part that differs, None if none does; ``before`` and ``after`` are the values of
    the two parts, ``p`` how likely a step as large as the largest is if recordings were in any other order.
    """

    name: str
    file: str | None
    groups: pd.DataFrame
    since: str | None
    before: float
    after: float
    p: float


def when(
    selection: Selection,
    function: str,
    *,
    by: str = "version",
    metric: str = "cpu",
    total: bool = False,
    per: str | None = None,
    anyway: bool = False,
) -> Moved:
    """The first group (of a label, or ``day``) since which a function's share is another one.

    The function is named by its name, or FILE:NAME; FILE:LINE names a line. Groups are in the order of their first
    recordings. The step between two groups is where the two parts of the fleet differ most (the largest t of all
    steps). How likely that is by chance is found by shuffling the recordings (of 5 hosts or more: the hosts of each
    group), so that looking at many steps is accounted for. If there is a step, the part before it is looked at in the
    same way, and so on: the first one counts.

    Errors:
        FormatError: there is no such function or label, or the recordings were made in different ways.
    """
    measure = metric_named(metric)
    selection.refuse_mixed(*measure.needs, anyway=anyway)
    column = measure.total() if total else measure.column
    selection = with_spans(selection, per)
    level, place = find_place(selection, function, column)
    groups = _in_time([(value, each) for value, each in groups_of(selection, by)])
    sides = [each for _, each, _ in groups]
    amounts = [each[0] for each in amounts_by_group(sides, selection, level, column, [place] * len(sides))]
    weights = [weights_of(each, measure, per) for _, each, _ in groups]
    # Recordings of one host are alike: of a group they are one unit.
    by_host = selection.hosts >= FEWEST
    pools = [
        pooled(amount[None, :], weight, each.units(by_host=by_host))
        for each, amount, weight in zip(sides, amounts, weights, strict=True)
    ]
    amounts, weights = [amount[0] for amount, _ in pools], [weight for _, weight in pools]
    shares = [ratios(amount[None, :], weight) for amount, weight in zip(amounts, weights, strict=True)]
    frame = pd.DataFrame(
        {
            "group": [value for value, _, _ in groups],
            "first": [first for _, _, first in groups],
            "value": [float(each.value[0]) for each in shares],
            "low": [float(each.low[0]) for each in shares],
            "high": [float(each.high[0]) for each in shares],
            "recordings": [len(each) for _, each, _ in groups],
        }
    )
    step, p = _first_step(amounts, weights)
    before, after = np.nan, np.nan
    if step is not None:
        parts = slice(step), slice(step, None)
        before, after = (sum(map(np.sum, amounts[part])) / sum(map(np.sum, weights[part])) for part in parts)
    since = None if step is None else groups[step][0]
    file = place["file"].iat[0]
    return Moved(place["name"].iat[0], file if isinstance(file, str) else None, frame, since, before, after, p)


def _in_time(groups: list[tuple[str, Selection]]) -> list[tuple[str, Selection, str | None]]:
    """The groups by the beginning of their first recordings; those of which it is not known come last, by name."""
    firsts = []
    for value, each in groups:
        begun = each.frame["created_utc"].dropna()
        firsts.append((value, each, None if begun.empty else str(begun.min())))
    return sorted(firsts, key=lambda each: (each[2] is None, each[2] or "", each[0]))


def _first_step(amounts: list[_Array], weights: list[_Array]) -> tuple[int | None, float]:
    """The number of the first group after the first step, and the p-value of the largest step."""
    step, p = _largest_step(amounts, weights)
    first = step
    while first is not None and first > 1:
        earlier, _ = _largest_step(amounts[:first], weights[:first], whole=False)
        if earlier is None:
            break
        first = earlier
    return first, p


def _largest_step(amounts: list[_Array], weights: list[_Array], *, whole: bool = True) -> tuple[int | None, float]:
    """The number of the group after the largest step, if there is one, and its p-value.

    Without ``whole`` shuffling ends as soon as there is none for certain; then the p-value is the least it can be.
    """
    sizes = np.array([len(each) for each in amounts])
    ends = np.cumsum(sizes)[:-1]
    units, groups = int(sizes.sum()), len(sizes)
    possible = (ends >= 2) & (units - ends >= 2)
    if units < FEWEST or not possible.any():
        return None, np.nan
    x, y = np.concatenate(amounts), np.concatenate(weights)
    features = np.stack([x, y, x * x, x * y, y * y])
    group = np.repeat(np.arange(groups), sizes)
    own = np.where(possible, _steps(_sums(features, group[None, :], groups), ends, units)[0], 0.0)
    chance = np.random.default_rng(_SEED)
    as_far, rows = 0, max(1, MAX_CELLS // units)
    for start in range(0, SHUFFLES, rows):
        # Only the assignment of recordings to groups matters: groups are shuffled, and not their values.
        shuffled = chance.permuted(np.tile(group, (min(rows, SHUFFLES - start), 1)), axis=1)
        largest = np.where(possible, _steps(_sums(features, shuffled, groups), ends, units), 0.0).max(axis=1)
        as_far += int((largest >= own.max() * (1 - 1e-9)).sum())
        if not whole and 1 + as_far > WRONG * (SHUFFLES + 1):
            break
    p = (1 + as_far) / (SHUFFLES + 1)
    return (int(own.argmax()) + 1 if p <= WRONG else None), p


def _sums(features: _Array, group: NDArray[np.int64], groups: int) -> _Array:
    """The features (features by recordings) added up by group, for each order (orders by recordings) of the groups.

    Returns features by orders by groups.
    """
    orders = len(group)
    cell = (group + groups * np.arange(orders)[:, None]).ravel()
    sums = [np.bincount(cell, np.tile(each, orders), orders * groups) for each in features]
    return np.stack(sums).astype(np.float64).reshape(len(features), orders, groups)


def _steps(sums: _Array, ends: NDArray[np.int64], units: int) -> _Array:
    """For each order and each end of a first part: how far the two parts differ, as |t|. ``sums`` as of ``_sums``."""
    running = np.cumsum(sums, axis=2)
    left = running[:, :, :-1]
    values, variances = [], []
    for count, (x, y, xx, xy, yy) in ((ends, left), (units - ends, running[:, :, -1:] - left)):
        with np.errstate(divide="ignore", invalid="ignore"):
            value = x / y
            squares = xx - 2 * value * xy + value**2 * yy
            variances.append(np.maximum(squares, 0) / y**2 * count / np.maximum(count - 1, 1))
        values.append(value)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A floor, so that a part without any spread is not infinitely certain.
        floor = 1e-12 * (np.square(values[0]) + np.square(values[1])) + 1e-300
        t = np.abs(values[1] - values[0]) / np.sqrt(variances[0] + variances[1] + floor)
    return np.asarray(np.nan_to_num(t), np.float64)
