"""Marks a loop of the program, whose calls are watched: Listing 1 of the paper on Paikana (Palkar et al., section 3.2).

This module is imported in the profiled process and therefore imports next to nothing itself, not even typing.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from typing import TypeVar

    Item = TypeVar("Item")


def loop(iterable: Iterable[Item], /) -> Iterator[Item]:
    """Iterate over ``iterable`` and have the calls of Python functions counted and timed meanwhile.

    ``for line in loop(file):`` watches all threads while the loop runs. Before each item it is decided anew which
    functions are worth watching. Outside a recording this is ``iter(iterable)``.
    """
    arm = sys.modules.get("tachograph.recorder.inprocess.arm")
    step = None if arm is None else arm.loop_step()
    return iter(iterable) if step is None else _watched(iterable, step)


def _watched(iterable: Iterable[Item], step: Callable[[int], None]) -> Generator[Item]:
    step(1)
    try:
        for item in iterable:
            step(0)
            yield item
    finally:
        step(-1)
