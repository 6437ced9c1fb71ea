"""Four threads with known, different loads, which they share the GIL to do."""

import threading
import time

from truth import Clocks, seconds


def first(quota_ns: int) -> int:
    total = 0
    while time.thread_time_ns() < quota_ns:  # @first
        for index in range(5000):  # @first
            total += index & 7  # @first
    return total


def second(quota_ns: int) -> int:
    total = 0
    while time.thread_time_ns() < quota_ns:  # @second
        for index in range(5000):  # @second
            total += index & 7  # @second
    return total


def third(quota_ns: int) -> int:
    total = 0
    while time.thread_time_ns() < quota_ns:  # @third
        for index in range(5000):  # @third
            total += index & 7  # @third
    return total


def fourth(quota_ns: int) -> int:
    total = 0
    while time.thread_time_ns() < quota_ns:  # @fourth
        for index in range(5000):  # @fourth
            total += index & 7  # @fourth
    return total


LOADS = {"first": first, "second": second, "third": third, "fourth": fourth}


def main() -> None:
    clocks = Clocks()
    unit = seconds(4.0) / 10 * 1e9
    tids: dict[str, int] = {}

    def body(name: str, quota_ns: int) -> None:
        tids[name] = threading.get_native_id()
        LOADS[name](quota_ns)
        clocks.spent[name] = time.thread_time_ns()  # all of the thread's life but its last moments

    threads = [
        threading.Thread(target=body, name=f"oracle-{name}", args=(name, int(unit * part)))
        for part, name in enumerate(LOADS, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clocks.facts["tids"] = tids
    clocks.write()


if __name__ == "__main__":
    main()
