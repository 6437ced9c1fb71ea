"""Blocks of a C library that keeps its own count: on Python's threads and on its own, resized, handed over, kept.

The library is the second argument.
"""

import sys
import threading

from memory_truth import MemoryTruth
from library import load

MB = 1 << 20


def main() -> None:
    truth = MemoryTruth()
    library = load(sys.argv[2])

    def counted(name: str) -> None:
        """The library's counts since the last call."""
        now = library.oracle_allocated(), library.oracle_freed()
        truth.facts[name] = [now[0] - before[0], now[1] - before[1]]
        before[:] = now

    library.oracle_worker_end(
        library.oracle_worker_start(1, 100), 1
    )  # the C library keeps a thread's stack for the next
    before = [library.oracle_allocated(), library.oracle_freed()]
    with truth.window("forms"):
        library.oracle_forms(60, 40_000)  # @forms
    counted("forms")
    with truth.window("resized"):
        library.oracle_resize(1, 4000, 100_000)  # @resized
    counted("resized")
    with truth.window("grown"):
        grown = library.oracle_grow(60 * MB)  # @grown
    counted("grown")
    with truth.window("shrunk"):
        grown = library.oracle_realloc(grown, 20 * MB)  # @shrunk
    counted("shrunk")
    with truth.window("kept"):
        kept = library.oracle_malloc(30 * MB)  # @kept
    counted("kept")

    with truth.window("worker"):
        worker = library.oracle_worker_start(50, MB)  # @worker
        truth.facts["keeper"] = library.oracle_worker_tid(worker)
        library.oracle_worker_end(worker, 1)
    counted("worker")

    with truth.window("handed-over"):
        worker = library.oracle_worker_start(50, MB)
        truth.facts["giver"] = library.oracle_worker_tid(worker)
        library.oracle_worker_end(worker, 0)
    counted("handed-over")

    handed: list[bytearray] = []

    def produce() -> None:
        for _ in range(40):
            handed.append(bytearray(MB))  # @produced
            truth.add("produced", MB)

    with truth.window("produced"):
        thread = threading.Thread(target=produce, name="oracle-producer")
        thread.start()
        thread.join()
        handed.clear()

    truth.facts["live"] = {"shrunk": 20 * MB, "kept": 30 * MB}
    truth.facts["pointers"] = [grown, kept]
    truth.write()


if __name__ == "__main__":
    main()
