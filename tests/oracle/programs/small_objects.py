"""Many small objects, built and dropped, and built again by another line.

Arguments after the first: how many (floats; half as many dicts, and strings), and ``traced`` for the truth:
what tracemalloc says about each line, by the difference before and after it. The lists are there before their items, and
no line makes anything that it does not keep, so that what it allocates is what tracemalloc finds.
"""

import sys
import tracemalloc

from memory_truth import MemoryTruth, fence

COUNT = int(sys.argv[2])
HEAD, TAIL = "head " * 3, "and a tail " * 3


class Meter:
    """The bytes that tracemalloc has seen, added up by name."""

    def __init__(self, truth: MemoryTruth, traced: bool) -> None:
        self.truth = truth
        self.traced = traced
        self.before = 0

    def begin(self) -> None:
        if self.traced:
            tracemalloc.start()
            self.before = tracemalloc.get_traced_memory()[0]

    def end(self, name: str) -> None:
        if self.traced:
            self.truth.add(name, tracemalloc.get_traced_memory()[0] - self.before)
            tracemalloc.stop()


def build_floats(meter: Meter) -> None:
    store: list[float | None] = [None] * COUNT
    meter.begin()
    for index in range(COUNT):
        store[index] = index * 0.5  # @floats
    meter.end("floats")
    store[:] = [None] * COUNT
    meter.begin()
    for index in range(COUNT):
        store[index] = index * 0.25  # @floats-again
    meter.end("floats-again")


def build_dicts(meter: Meter) -> None:
    store: list[dict[str, int] | None] = [None] * (COUNT // 2)
    meter.begin()
    for index in range(COUNT // 2):
        store[index] = {"key": 1}  # @dicts
    meter.end("dicts")
    store[:] = [None] * (COUNT // 2)
    meter.begin()
    for index in range(COUNT // 2):
        store[index] = {"key": 1, "other": 2}  # @dicts-again
    meter.end("dicts-again")


def build_strings(meter: Meter) -> None:
    store: list[str | None] = [None] * (COUNT // 2)
    meter.begin()
    for index in range(COUNT // 2):
        store[index] = HEAD + TAIL  # @strings
    meter.end("strings")
    store[:] = [None] * (COUNT // 2)
    meter.begin()
    for index in range(COUNT // 2):
        store[index] = TAIL + TAIL  # @strings-again
    meter.end("strings-again")


def main() -> None:
    truth = MemoryTruth()
    meter = Meter(truth, "traced" in sys.argv)
    for build in (build_floats, build_dicts, build_strings):
        fence()
        build(meter)
    truth.write()


if __name__ == "__main__":
    main()
