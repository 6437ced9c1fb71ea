"""Programs that allocate all the time and leak nothing. Argument 2 is which one; each takes about 2.5 seconds."""

import functools
import importlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from memory_truth import MemoryTruth
from pace import RATE, pieces

SECONDS, PIECE = 2.5, 4000


def filled_cache() -> None:
    """A cache that fills up in the first second, and is used from then on."""
    cache: dict[int, bytes] = {}
    for number in pieces(SECONDS, PIECE):
        key = number % 5000
        if key not in cache:
            cache[key] = bytes(PIECE)
        assert len(cache[key]) == PIECE


def sawtooth() -> None:
    """A buffer that is flushed whenever it is full; the program ends while it is filling."""
    buffer: list[bytes] = []
    for _ in pieces(SECONDS, PIECE):
        buffer.append(bytes(PIECE))
        if len(buffer) >= 1800:
            buffer.clear()


def interned() -> None:
    """Words of a vocabulary that is bounded, interned whenever they are met."""
    for number in pieces(SECONDS, 100, RATE / 4):
        sys.intern(f"the word of this number: {number * 7919 % 20_000:050d}")


def bounded_lru() -> None:
    """functools.lru_cache with a bound: it evicts all the time."""

    @functools.lru_cache(maxsize=1500)
    def compute(key: int) -> bytes:
        return bytes(PIECE)

    for number in pieces(SECONDS, PIECE):
        compute(number)


def window() -> None:
    """A moving window over a stream."""
    recent: deque[bytearray] = deque(maxlen=2000)
    for _ in pieces(SECONDS, PIECE):
        recent.append(bytearray(PIECE))


def model() -> None:
    """A large model that is loaded once in many pieces, then work with it."""
    weights = [[float(number) for number in range(1000)] for _ in range(800)]
    for number in pieces(SECONDS, PIECE):
        row = weights[number % len(weights)]
        [value * 2 for value in row[:100]]


def temporaries() -> None:
    """Large arrays that live for one statement."""
    for _ in pieces(SECONDS, 1_200_000, 10 * RATE):
        sum(memoryview(bytearray(1_200_000))[::100_000])


def pool() -> None:
    """Threads that hand work to each other through queues."""
    todo: queue.Queue[bytearray | None] = queue.Queue(50)
    done: queue.Queue[bytes] = queue.Queue()

    def work() -> None:
        while (item := todo.get()) is not None:
            done.put(bytes(item))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in pieces(SECONDS, PIECE):
        todo.put(bytearray(PIECE))
        while not done.empty():
            done.get()
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as executor:
        assert sum(executor.map(len, (bytes(PIECE) for _ in range(500)))) == 500 * PIECE


def pipeline() -> None:
    """Generators over generators, and JSON to and fro."""

    def texts() -> Iterator[str]:
        for number in pieces(SECONDS, PIECE, RATE / 2):
            yield json.dumps({"number": number, "values": list(range(number % 100)), "text": "x" * 1000})

    def records(lines: Iterator[str]) -> Iterator[dict[str, object]]:
        for line in lines:
            yield json.loads(line)

    total = 0
    for record in records(texts()):
        total += len(str(record["text"]).upper())
    assert total


def interpreter() -> None:
    """What the interpreter keeps for itself: modules that are imported, patterns that are compiled, attributes cached."""
    names = ["decimal", "email.message", "http.client", "sqlite3", "unittest.mock", "xml.dom.minidom", "asyncio", "csv"]
    source = random.Random(1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if names:
            importlib.import_module(names.pop())
        for _ in range(5):
            re.compile("|".join(str(source.randrange(10**6)) for _ in range(10))).search("no such number")
        time.sleep(0.02)


def slow_machine() -> None:
    """A list that is filled in a third of a second, by a program that is stopped for most of the time meanwhile."""
    again = f"while kill -CONT {os.getpid()}; do sleep 0.3; done 2>/dev/null"
    with subprocess.Popen(["/bin/sh", "-c", again]) as going_on:
        filled: list[bytes] = []
        while len(filled) < 30_000:
            filled.append(bytes(PIECE))
            if len(filled) % 3000 == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
        going_on.terminate()
    globals()["filled"] = filled  # to the end


PROGRAMS = {
    program.__name__: program
    for program in (
        filled_cache,
        sawtooth,
        interned,
        bounded_lru,
        window,
        model,
        temporaries,
        pool,
        pipeline,
        interpreter,
        slow_machine,
    )
}


def main() -> None:
    truth = MemoryTruth()
    PROGRAMS[sys.argv[2]]()
    truth.write()


if __name__ == "__main__":
    main()
