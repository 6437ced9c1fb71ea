"""Threads of about three milliseconds each, one after another: shorter than the time between two samples.

Each does its work in two halves of equal length: where in a thread the time was must not matter.
"""

import threading
import time

from truth import Clocks

THREADS = 700
HALF_NS = 1_500_000


def main() -> None:
    clocks = Clocks()

    def early() -> None:
        end = time.thread_time_ns() + HALF_NS
        while time.thread_time_ns() < end:  # @early
            pass  # @early

    def late() -> None:
        end = time.thread_time_ns() + HALF_NS
        while time.thread_time_ns() < end:  # @late
            pass  # @late

    def work() -> None:
        begin = time.thread_time_ns()
        early()
        middle = time.thread_time_ns()
        late()
        clocks.add("early", middle - begin)
        clocks.add("late", time.thread_time_ns() - middle)

    for _ in range(THREADS):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    clocks.write()


if __name__ == "__main__":
    main()
