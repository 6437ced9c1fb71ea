"""Programs that look like what rules are about, and are right as they are. Arguments are names of functions."""

import asyncio
import csv
import functools
import hashlib
import io
import json
import logging
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

SECONDS = 0.5


def rounds(seconds: float = SECONDS) -> Iterator[int]:
    """Counts until so much CPU time of this thread is spent."""
    end, number = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        yield number
        number += 1


def member_of_set() -> None:
    known = {str(number) for number in range(5000)}
    for number in rounds():
        for other in range(1000):
            assert (str(other + number) in known) == (other + number < 5000)


def member_of_few() -> None:
    for number in rounds():
        for _ in range(1000):
            assert str(number) not in ("GET", "PUT", "POST")


def member_of_new_list() -> None:
    for _ in rounds():
        for number in range(300):
            parts = f"a,b,c,{number}".split(",")
            assert "c" in parts


def joined_text() -> None:
    for _ in rounds():
        text = "".join(f"{number}," for number in range(2000))
        assert text


def short_text_grown() -> None:
    for _ in rounds():
        for number in range(200):
            row = ""
            for column in range(5):
                row += f"{number * column};"
            assert row


def bytearray_grown() -> None:
    for _ in rounds():
        body = bytearray()
        for number in range(2000):
            body += b"%d" % number


def list_grown() -> None:
    for _ in rounds():
        rows = []
        for number in range(2000):
            rows += [number, number]


def array_of_list() -> None:
    import numpy as np

    for _ in rounds():
        values = []
        for number in range(2000):
            values.append(number * 0.5)
        np.array(values)


def pairs_concatenated() -> None:
    import numpy as np

    parts = [np.ones(1000) for _ in range(10)]
    for number in rounds():
        whole = np.concatenate([parts[number % 10], parts[3]])
        whole = np.concatenate([whole, parts[5]])
        assert len(whole) == 3000


def frames_made_anew() -> None:
    import pandas as pd

    extra = pd.DataFrame({"price": [1.0], "count": [2.0]})
    for number in rounds():
        table = pd.DataFrame({"price": range(number, number + 10), "count": range(10)})
        table = pd.concat([table, extra])


def apply_to_columns() -> None:
    import pandas as pd

    table = pd.DataFrame({"price": range(1000), "count": range(1000)})
    for _ in rounds():
        table.apply(lambda column: column.sum(), axis=0)


def apply_something_slow() -> None:
    import pandas as pd

    texts = [json.dumps({"a": list(range(500))})] * 20
    table = pd.DataFrame({"text": texts, "count": range(20)})
    for _ in rounds():
        table.apply(lambda row: len(json.loads(row["text"])["a"]), axis=1)


def tuples_of_rows() -> None:
    import pandas as pd

    table = pd.DataFrame({"price": range(1000), "count": range(1000)})
    for _ in rounds():
        sum(row.price * row.count for row in table.itertuples(index=False))


def few_rows() -> None:
    import pandas as pd

    table = pd.DataFrame({"name": ["a", "b"], "size": [200_000, 300_000]})
    for _ in rounds():
        for _index, row in table.iterrows():
            hashlib.sha256(bytes(row["size"])).hexdigest()


def column_then_index() -> None:
    import pandas as pd

    tables = [pd.DataFrame({"price": range(first, first + 2000)}) for first in range(5)]
    for number in rounds():
        column = tables[number % 5]["price"].to_numpy()
        for place in range(500):
            assert column[place] == number % 5 + place


def pattern_of_module() -> None:
    pattern = re.compile(r"\d+ GET")
    lines = [f"{number} GET /index.html" for number in range(1000)]
    for _ in rounds():
        for line in lines:
            assert pattern.match(line)


def patterns_once() -> None:
    for number in rounds():
        re.compile(f"word{number}")


def pattern_on_long_text() -> None:
    text = "a line without a match " * 2000
    for _ in rounds():
        assert re.search(r"\d+ GET", text) is None


def lists_of_lists() -> None:
    grid = [[float(x * y) for x in range(100)] for y in range(100)]
    for _ in rounds():
        for y in range(len(grid)):
            for x in range(len(grid[y])):
                grid[y][x] = grid[y][x] * 0.5 + 1.0


def whole_arrays() -> None:
    import numpy as np

    image = np.zeros((300, 300))
    for _ in rounds():
        image = image * 0.5 + 1.0


def blocks_of_array() -> None:
    import numpy as np

    values = np.ones(1_000_000)
    for _ in rounds():
        for start in range(0, values.shape[0], 50_000):
            values[start : start + 50_000] *= 0.999


def rows_of_array() -> None:
    import numpy as np

    matrix = np.ones((100, 20_000))
    for _ in rounds():
        for row in range(matrix.shape[0]):
            matrix[row] = np.sort(matrix[row])


def copy_that_is_changed() -> None:
    import numpy as np

    base = np.ones(100_000)
    for number in rounds():
        work = base.copy()
        work[number % 100] = 0.0
        work += 1.0


def list_that_is_changed() -> None:
    base = [3, 1, 2] * 5000
    for _ in rounds():
        work = list(base)
        work.sort()


def conversion_of_each() -> None:
    import numpy as np

    rows = [[float(number)] * 2000 for number in range(20)]
    for _ in rounds():
        for row in rows:
            values = np.array(row)
            assert values.sum() >= 0


def one_precision() -> None:
    import numpy as np

    weights = np.ones((500, 500), dtype=np.float32)
    values = np.ones(500, dtype=np.float32)
    for _ in rounds():
        weights @ values


def sorted_each_time() -> None:
    for number in rounds():
        sorted(range(2000, 0, -1), key=lambda value: value ^ number)


def slices_of_list() -> None:
    for _ in rounds():
        waiting = list(range(300))
        while waiting:
            waiting = waiting[10:]


def parsed_bytes() -> None:
    data = b"".join(b"%08d" % number for number in range(2000))
    for _ in rounds():
        position = 0
        while position < len(data):
            int(data[position : position + 8])
            position += 8


def bounded_cache() -> None:
    @functools.lru_cache(maxsize=500)
    def squared(number: int) -> bytes:
        return bytes(number % 1000)

    for number in rounds():
        squared(number % 2000)


def window_of_stream() -> None:
    recent: deque[bytes] = deque(maxlen=200)
    for _ in rounds():
        recent.append(bytes(2000))


def words_counted() -> None:
    text = "the quick brown fox jumps over the lazy dog " * 100
    for _ in rounds():
        Counter(text.split()).most_common(3)


def csv_and_json() -> None:
    rows = io.StringIO("a,b,c\n" + "1,2,3\n" * 500).getvalue()
    for _ in rounds():
        json.dumps(list(csv.DictReader(io.StringIO(rows))))


class Particle:
    def __init__(self, speed: float) -> None:
        self.place, self.speed = 0.0, speed

    def step(self) -> None:
        self.place += self.speed * 0.01


def simulation() -> None:
    particles = [Particle(float(number)) for number in range(500)]
    for _ in rounds():
        for particle in particles:
            particle.step()


def pages_in_order() -> None:
    """Each answer says what to ask next."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        while theirs.recv(100):
            time.sleep(0.02)
            theirs.sendall(b"next")

    thread = threading.Thread(target=serve)
    thread.start()
    for _ in range(30):
        ours.sendall(b"more")
        ours.recv(100)
    ours.close()
    thread.join()


def waits_together() -> None:
    async def wait() -> None:
        await asyncio.gather(*(asyncio.sleep(0.3) for _ in range(20)))

    asyncio.run(wait())


def threads_that_wait() -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(time.sleep, [0.05] * 24))


def threads_that_hash() -> None:
    """Native code that lets go of the GIL."""
    data = bytes(3_000_000)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: hashlib.sha256(data).digest(), range(30)))


def lock_held_shortly() -> None:
    lock, total = threading.Lock(), [0]

    def work() -> None:
        for _ in range(100):
            time.sleep(0.003)
            with lock:
                total[0] += 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def dates_of_another_form() -> None:
    from datetime import datetime

    parsed = functools.lru_cache(lambda text: datetime.strptime(text, "%d.%m.%Y"))  # noqa: DTZ007
    for _ in rounds():
        for number in range(1000):
            parsed(f"{number % 28 + 1}.11.2026")


def messages_made_when_shown() -> None:
    log = logging.getLogger("shop")
    row = {name: name * 5 for name in "abcdefghij"}
    for _ in rounds():
        for _number in range(1000):
            log.debug("a row: %s", row)


def messages_that_are_shown() -> None:
    log = logging.getLogger("shown")
    log.addHandler(logging.StreamHandler(io.StringIO()))
    log.setLevel(logging.DEBUG)
    log.propagate = False
    for _ in rounds():
        for number in range(1000):
            log.debug(f"a row: {number}")


def coroutine_that_awaits() -> None:
    async def answer() -> None:
        await asyncio.sleep(0.1)
        await asyncio.to_thread(time.sleep, 0.4)

    async def answers() -> None:
        await asyncio.gather(*(answer() for _ in range(4)))

    asyncio.run(answers())


def list_end() -> None:
    for _ in rounds():
        jobs = list(range(60_000))
        while jobs:
            jobs.pop()


def elements_of_two_columns() -> None:
    import pandas as pd

    names = pd.Series(["anna", "otto"] * 1000)
    for _ in rounds():
        names.map({"anna": 1, "otto": 2}).sum()


def little_between_processes() -> None:
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(2) as pool:
        list(pool.map(sum, [range(3_000_000)] * 12))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
