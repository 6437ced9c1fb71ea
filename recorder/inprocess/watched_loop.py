"""Marks a loop of the program, whose calls are watched: Listing 1 of the paper on Paikana (Palkar et al., section 3.2).

This module is imported in the profiled process and therefore imports next to nothing itself, not even typing.
"""

from __future__ import annotations

from tachograph.recorder import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    Item = TypeVar("Item")


def loop(iterable: Iterable[Item], /) -> Iterator[Item]:
    """Iterate over ``iterable`` and have the calls of Python functions counted and timed meanwhile.

    ``for line in loop(file):`` watches all threads while the loop runs. Which functions are worth
    watching is decided anew all the time. Outside a recording this is ``iter(iterable)``.
    """
    arm = loaded("tachograph.recorder.inprocess.arm")
    mark = None if arm is None else arm.loop_marker()
    return iter(iterable) if mark is None else mark(iterable)
