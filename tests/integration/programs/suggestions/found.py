"""Programs with one thing each that a rule is certain about. Arguments are names of functions; each runs for a while.

The line that the suggestion belongs to is marked with the function's name, ``# @name``.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

SECONDS = 0.2


def rounds(seconds: float = SECONDS) -> Iterator[int]:
    """Counts until so much CPU time of this thread is spent."""
    end, number = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        yield number
        number += 1


def apply_rows() -> None:
    import pandas as pd

    table = pd.DataFrame({"price": range(3000), "count": range(3000)})
    for _ in rounds():
        table.apply(lambda row: row["price"] * row["count"], axis=1)  # @apply_rows


def iterrows() -> None:
    import pandas as pd

    table = pd.DataFrame({"price": range(3000), "count": range(3000)})
    for _ in rounds():
        total = 0
        for _index, row in table.iterrows():  # @iterrows
            total += row["price"]


def chained_indexing() -> None:
    import pandas as pd

    table = pd.DataFrame({(a, b): range(2000) for a in "xyz" for b in "uvw"})
    for _ in rounds():
        total = 0
        for number in range(300):
            total += table["x"]["v"][number]  # @chained_indexing


def element_by_element() -> None:
    import numpy as np

    image = np.zeros((200, 200))
    for _ in rounds():
        for y in range(image.shape[0]):
            for x in range(image.shape[1]):
                image[y, x] = image[y, x] * 0.5 + 1.0  # @element_by_element


def array_grown() -> None:
    import numpy as np

    for _ in rounds():
        collected = np.zeros(0)
        for number in range(3000):
            collected = np.append(collected, number)  # @array_grown


def frame_grown() -> None:
    import pandas as pd

    part = pd.DataFrame({"price": range(10), "count": range(10)})
    for _ in rounds():
        table = part
        for _number in range(50):
            table = pd.concat([table, part])  # @frame_grown


def mixed_precision() -> None:
    import numpy as np

    weights = np.ones((1000, 1000), dtype=np.float32)
    values = np.ones(1000)
    for _ in rounds():
        weights @ values  # @mixed_precision


class Log:
    def __init__(self) -> None:
        self.text = ""

    def write(self, lines: int) -> None:
        for number in range(lines):
            self.text = self.text + f"line {number}\n"  # @text_grown


def text_grown() -> None:
    for _ in rounds():
        Log().write(4000)


def bytes_grown() -> None:
    for _ in rounds():
        body = b""
        for number in range(10_000):
            body += b"%08d" % number  # @bytes_grown


def cut_from_front() -> None:
    for _ in rounds():
        data = bytes(1_000_000)
        while data:
            data = data[1000:]  # @cut_from_front


def pattern_in_loop() -> None:
    lines = [f"{number} GET /index.html" for number in range(5000)]
    for _ in rounds(4 * SECONDS):  # looking a pattern up is a third of it
        for line in lines:
            re.match(r"\d+ GET", line)  # @pattern_in_loop


def pattern_compiled_again() -> None:
    words = [f"word{number}" for number in range(600)]
    lines = ["a line with word17 in it", "another one"]
    for _ in rounds():
        for line in lines:
            for word in words:
                re.search(rf"\b{word}\b", line)  # @pattern_compiled_again


def in_list() -> None:
    seen = []
    for number in range(2000):
        seen.append(str(number))
    for _ in rounds():
        for number in range(100):
            if str(number + 1950) in seen:  # @in_list
                pass


def converted() -> None:
    import numpy as np

    table = [float(number) for number in range(20_000)]
    for _ in rounds():
        values = np.array(table)  # @converted
        values.sum()


def bytes_of_slice() -> None:
    buffer = bytearray(4_000_000)
    for _ in rounds():
        for start in range(0, len(buffer), 1_000_000):
            bytes(buffer[start : start + 1_000_000])  # @bytes_of_slice


class Node:
    def __init__(self) -> None:
        self.me = self


def collector() -> None:
    import gc

    kept = [[number] for number in range(300_000)]
    gc.set_threshold(200, 2, 1)
    for _ in rounds(1.5):
        for _number in range(1000):
            Node()
    gc.set_threshold(700, 10, 10)
    assert kept


def together(work: Callable[[], None], threads: int = 3) -> None:
    """Runs work in several threads."""
    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def python_threads() -> None:
    def spin() -> None:
        sum(number * number for number in range(4_000_000))  # @python_threads

    together(spin)


LOCK = threading.Lock()


def held_lock() -> None:
    def guarded() -> None:
        for _ in range(12):
            with LOCK:  # @held_lock
                time.sleep(0.03)

    together(guarded)


def apply_elements() -> None:
    import pandas as pd

    dates = pd.Series(["2026-11-27", "2026-11-28"] * 200)
    for _ in rounds():
        dates.apply(pd.to_datetime)  # @apply_elements


def object_column() -> None:
    import pandas as pd

    cities = pd.Series(["Ulm", "Bonn", "Kiel"] * 20_000, dtype=object)
    for _ in rounds():
        (cities == "Bonn").sum()  # @object_column


def list_front() -> None:
    for _ in rounds():
        jobs = list(range(60_000))
        while len(jobs) > 50_000:
            jobs.pop(0)  # @list_front


def iso_date() -> None:
    from datetime import datetime

    for _ in rounds():
        for _number in range(1000):
            datetime.strptime("2026-11-27 10:15:00", "%Y-%m-%d %H:%M:%S")  # @iso_date  # noqa: DTZ007


def other_date() -> None:
    from datetime import datetime

    for _ in rounds():
        for _number in range(1000):
            datetime.strptime("27.11.2026", "%d.%m.%Y")  # @other_date  # noqa: DTZ007


def log_not_shown() -> None:
    log = logging.getLogger("shop")
    row = {name: name * 5 for name in "abcdefghij"}
    for _ in rounds():
        for _number in range(1000):
            log.debug(f"a row: {row}")  # @log_not_shown


def blocked_loop() -> None:
    import asyncio

    async def answer() -> None:
        time.sleep(0.1)  # @blocked_loop

    async def answers() -> None:
        await asyncio.gather(*(answer() for _ in range(10)))

    asyncio.run(answers())


def pickled() -> None:
    from concurrent.futures import ProcessPoolExecutor

    data = [str(number) for number in range(400_000)]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(len, [data] * 12))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
