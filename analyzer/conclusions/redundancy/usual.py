"""How much of what native code does again is usual, and what a measured share is beyond.

In ordinary code most loads are redundant (Witch, ASPLOS 2018), so a share alone says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import numpy as np

from ...statistics.intervals import wilson
from .candidates import Kind

ORDINARY: dict[Kind, float] = {"load": 0.80, "store": 0.36, "result": 0.36}
"""Redundant shares of ordinary code, medians of Witch's published measurements (SPEC CPU2006). Of results none were
published: a block that is filled again with the same was stored to again with the same.
"""
DOUBT = 0.025
"""On each side, as in the intervals of shares."""
Z_BEYOND = 1.6449
"""Of the test that a share is beyond the usual one: it has one side, of 5 %."""


def usual_share(kind: Kind, others: Iterable[float]) -> float:
    """The share above which a line stands out.

    ``others`` has the lower ends of the 95 % intervals of the shares of the library's other lines. Usual is ordinary
    code's share, or the lower end of the 95 % interval of the median over these if that is higher (by the sign test,
    Thompson 1936): fewer than six lines have none.
    """
    ordered = sorted(others)
    count = len(ordered)
    below, place = 0, 0
    # The median is below the n-th smallest with the probability that less than n of as many coins show heads.
    while place < count:
        below += comb(count, place)
        if below > DOUBT * 2**count:
            break
        place += 1
    return max(ORDINARY[kind], ordered[place - 1]) if place else ORDINARY[kind]


def beyond(share: float, traps: int) -> float:
    """What a share of so many traps is beyond, with 95 %."""
    return float(wilson(np.array([share]), traps, Z_BEYOND)[0][0]) if traps else 0.0
