"""A cache that is there when a snapshot is asked for, and is emptied before the end."""

import time

from memory_truth import MemoryTruth

from tachograph.recorder import snapshot

CACHE: dict[int, bytearray] = {}


def main() -> None:
    truth = MemoryTruth()
    for number in range(100):
        CACHE[number] = bytearray(b"x" * 300_000)  # @kept
    time.sleep(1.2)  # the sampled blocks have rows
    truth.facts["asked"] = int(snapshot())
    time.sleep(1.5)
    CACHE.clear()
    truth.write()


if __name__ == "__main__":
    main()
