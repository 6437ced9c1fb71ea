"""Four threads with known, different loads, which they share the GIL to do."""

import threading
import time

from truth import Clocks, seconds


def load(quota_ns: int) -> int:
    total = 0
    while time.thread_time_ns() < quota_ns:
        for index in range(5000):  # @load
            total += index & 7  # @load
    return total


def first(quota_ns: int) -> None:
    load(quota_ns)  # @first


def second(quota_ns: int) -> None:
    load(quota_ns)  # @second


def third(quota_ns: int) -> None:
    load(quota_ns)  # @third


def fourth(quota_ns: int) -> None:
    load(quota_ns)  # @fourth


def main() -> None:
    clocks = Clocks()
    unit = seconds(5.0) / 10 * 1e9
    tids: dict[str, int] = {}

    def body(name: str, quota_ns: int) -> None:
        tids[name] = threading.get_native_id()
        {"first": first, "second": second, "third": third, "fourth": fourth}[name](quota_ns)
        clocks.spent[name] = time.thread_time_ns()  # all of the thread's life but its last moments

    threads = [
        threading.Thread(target=body, name=f"oracle-{name}", args=(name, int(unit * part)))
        for part, name in enumerate(("first", "second", "third", "fourth"), 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clocks.facts["tids"] = tids
    clocks.write()


if __name__ == "__main__":
    main()
