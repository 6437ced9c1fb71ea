"""What share of redundant pairs is usual, which a line has to be above.

In ordinary code most loads are redundant already. A library may repeat more than that whatever it is called for: tables
of constants, a lookup of types at each call. It shows on lines that have no other reason to repeat themselves. Those of
few pairs say nothing of it, so they count with the lower end of their intervals; and a few lines are no more than a
few lines: the usual share is raised by what most of the library's lines repeat beyond doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

from tachograph.format.enumerations import Access

ORDINARY = {Access.LOAD: 0.80, Access.STORE: 0.36}
"""Redundant shares of ordinary code, medians of Witch's published measurements (SPEC CPU2006)."""
DOUBT = 0.025
"""On each side, as in the intervals of shares."""


def usual_share(kind: Access, others: Iterable[float]) -> float:
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
