"""Times walks over a stack of Python that C called that Python called: ``walking.py JUDGE FRAMES``, JSON out.

JUDGE is the library of tests/native/judge, which has the unwinder in it.
"""

import ctypes
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Found = TypeVar("Found")
ROUNDS = {"warm": 4000, "cold": 200}
DEEPEST = 12


def below(levels: int, body: Callable[[], Found]) -> Found:
    """What `body` returns below so many calls of C that call Python."""
    if levels == 0:
        return body()
    found: list[Found] = []

    def key(_: int) -> int:
        found.append(below(levels - 1, body))
        return 0

    sorted([0], key=key)
    return found[0]


def timed(judge: Any, rounds: int, *, evict: bool) -> tuple[int, list[float]]:
    """The frames of a walk from here, and the nanoseconds of each walk, sorted."""
    count, times = ctypes.c_uint32(), (ctypes.c_double * rounds)()
    judge.judge_time(rounds, int(evict), times, ctypes.byref(count))
    return count.value, sorted(times)


def walks(judge: Any, frames: int) -> list[dict[str, Any]]:
    """Warm and cold walks at the first depth of at least so many frames, and at the one before."""
    depth = 0
    while depth < DEEPEST and below(depth, lambda: timed(judge, 1, evict=False))[0] < frames:
        depth += 1
    found = []
    for caches, rounds in ROUNDS.items():
        for levels in (depth - 1, depth):
            count, times = below(levels, partial(timed, judge, rounds, evict=caches == "cold"))
            middle, fast = times[rounds // 2] / 1e3, times[rounds // 10] / 1e3
            found.append({"caches": caches, "frames": count, "middle_us": middle, "fast_us": fast, "walks": rounds})
    return found


if __name__ == "__main__":
    library = ctypes.PyDLL(sys.argv[1])
    if library.judge_open() != 0 or library.judge_refresh() != 0:
        sys.exit("the unwinder could not begin")
    print(json.dumps(walks(library, int(sys.argv[2]))))
