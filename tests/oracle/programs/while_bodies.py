"""A while loop whose body has lines of very different cost: each is charged to itself, not to the loop's head."""

import hashlib
import time

from truth import Clocks, seconds

TEXT = bytes(700_000)


def native_bodies(rounds: int, clocks: Clocks) -> None:
    clock = time.thread_time_ns
    index = 0
    while index < rounds:  # @head
        index += 1
        start = clock()
        hashlib.sha256(TEXT)  # @digest-large
        middle = clock()
        hashlib.sha256(TEXT[:300_000])  # @digest-small
        end = clock()
        clocks.add("digest-large", middle - start)
        clocks.add("digest-small", end - middle)


def python_bodies(rounds: int, clocks: Clocks) -> None:
    clock = time.thread_time_ns
    index = 0
    while index < rounds:  # @head
        index += 1
        start = clock()
        [item + item for item in range(9000)]  # @list-large
        middle = clock()
        [item + item for item in range(3000)]  # @list-small
        end = clock()
        clocks.add("list-large", middle - start)
        clocks.add("list-small", end - middle)


def main() -> None:
    clocks = Clocks()
    end = time.thread_time_ns() + int(seconds(4.0) * 1e9)
    while time.thread_time_ns() < end:
        native_bodies(clocks.random.randint(5, 15), clocks)
        python_bodies(clocks.random.randint(10, 30), clocks)
    clocks.spent["head"] = 0
    clocks.write()


if __name__ == "__main__":
    main()
