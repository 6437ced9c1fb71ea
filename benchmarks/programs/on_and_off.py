"""Does the same work again and again, recorded and paused in turn, and says what each turn took.

    tachograph record on_and_off.py WORK SECONDS ANSWERS

WORK is one of those below, or a program of native_code.py. A turn is about 40 ms of CPU time, or one pass of such a
program, if that is more. Three turns make a comparison: one way, the other way, and the first way again; which
way comes first is drawn by lot. The file ANSWERS is JSON: `ratios`, CPU time of the main thread recorded over paused,
one for each comparison; `own_ms_per_s`, the CPU time of the other threads while recording, by second of the main one.
"""

import heapq
import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tachograph import recorder

TURN_S = 0.04
DEEP = 100


class _Point:
    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y

    def product(self, other: "_Point") -> float:
        return self.x * other.x + self.y * other.y


def objects(times: int) -> float:
    """Calls of methods, and objects that are born and die."""
    fixed, total, seen = _Point(1.0, 2.0), 0.0, {}
    for number in range(times):
        total += fixed.product(_Point(number, total))
        seen[number & 255] = (number, total)
    return total


def deep(times: int, depth: int = DEEP) -> float:
    """The same under a hundred frames."""
    return objects(times) if depth == 0 else deep(times, depth - 1)


def native(times: int) -> int:
    """Native code that calls back: sorting by a key, and a heap."""
    words = [str(number * 7919 % 10007) for number in range(200)]
    length = 0
    for _ in range(times // 100):
        length += len(sorted(words, key=lambda word: word[::-1])) + len(heapq.nsmallest(5, words))
    return length


WORKS: dict[str, Callable[[int], object]] = {"objects": objects, "deep": deep, "native": native}


def prepared(name: str) -> tuple[Callable[[int], object], int]:
    """A work that is done so many times, and how often it is done to find out how long that takes."""
    if name in WORKS:
        return WORKS[name], 10_000
    one_pass = importlib.import_module("native_code").PROGRAMS[name]()  # beside this program when it runs
    one_pass()

    def passes(times: int) -> None:
        for _ in range(times):
            one_pass()

    return passes, 1


def main() -> None:
    """Takes turns for as long as it was told to."""
    (work, some), seconds, answers = prepared(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    begin = time.thread_time()
    work(some)
    times = max(int(some * TURN_S / (time.thread_time() - begin)), 1)

    def turn(*, on: bool) -> tuple[float, float]:
        (recorder.resume if on else recorder.pause)()
        own, all_of_them = time.thread_time(), time.process_time()
        work(times)
        own = time.thread_time() - own
        return own, time.process_time() - all_of_them - own

    ratios: list[float] = []
    recorded_s = others_s = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        first = random.random() < 0.5
        turns = [(on, *turn(on=on)) for on in (first, not first, first)]
        own = {on: [taken for way, taken, _ in turns if way == on] for on in (True, False)}
        ratios.append(sum(own[True]) / len(own[True]) * len(own[False]) / sum(own[False]))
        recorded_s += sum(own[True])
        others_s += sum(taken for way, _, taken in turns if way)
    answers.write_text(json.dumps({"ratios": ratios, "own_ms_per_s": 1000 * others_s / recorded_s}), encoding="utf-8")


if __name__ == "__main__":
    main()
