"""Functions whose numbers of calls and times per call are known: what is said at the end, one line of JSON.

    python known_rates.py SECONDS SEED

Times are by a clock around each call; `tiny` has none, which would take longer than it does.
"""

import json
import random
import sys
from collections.abc import Callable
from time import perf_counter_ns, process_time


def tiny() -> None:
    pass


def constant() -> int:
    return sum(range(400))


def bimodal(number: int) -> int:
    return sum(range(6000 if number % 10 == 0 else 100))


def heavy(size: int) -> int:
    return sum(range(size))


def early() -> int:
    return sum(range(300))


def late() -> int:
    return sum(range(300))


class Known:
    """Calls and their times, by function."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self.sum_ns: dict[str, int] = {}

    def timed(self, function: Callable[..., int], *arguments: int) -> None:
        begin = perf_counter_ns()
        function(*arguments)
        took = perf_counter_ns() - begin
        name = function.__name__
        self.calls[name] = self.calls.get(name, 0) + 1
        self.sum_ns[name] = self.sum_ns.get(name, 0) + took


def main(seconds: float, seed: int) -> None:
    chance, known, tinies = random.Random(seed), Known(), 0
    begin = process_time()
    while (passed := process_time() - begin) < seconds:
        # The phase changes once, at a moment that no period of observation knows.
        second = passed > 0.43 * seconds
        for number in range(50):
            for _ in range(8):
                tiny()
            tinies += 8
            known.timed(constant)
            known.timed(bimodal, number)
            if number % 3 == 0:
                known.timed(heavy, min(int(60 * chance.paretovariate(1.5)), 200_000))
            if not second:
                known.timed(early)
            elif number % 5 == 0:
                known.timed(late)
    means = {name: known.sum_ns[name] / calls / 1e9 for name, calls in known.calls.items()}
    print(json.dumps({"calls": {**known.calls, "tiny": tinies}, "mean_s": means}))


main(float(sys.argv[1]), int(sys.argv[2]))
